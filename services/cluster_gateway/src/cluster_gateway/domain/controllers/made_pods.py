"""Pods of a template: making them, telling how far they are, and choosing which to give up."""

from collections.abc import Sequence

from cluster_gateway.domain.controllers.work import Work, condition_of
from kube import Manifest, Object, parse_time
from kube.owners import owner_reference
from kube.pods import is_finished, is_ready

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
OWNER_MINIMUM = "scheduling.volcano.sh/group-min-member"
"""On a workload: how many of its pods have to start together."""
_GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_GANG = "gang.scheduling.koordinator.sh/"


def pod_manifest(
    owner: Object,
    template: Manifest,
    name: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: Manifest | None = None,
) -> Manifest:
    """The pod ``name`` of ``template``, controlled by ``owner``. ``spec`` overrides fields of the template's spec."""
    given = template.get("metadata") or {}
    metadata: Manifest = {
        "name": name,
        "namespace": owner.namespace,
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "ownerReferences": [owner_reference(owner)],
    }
    notes = {**(given.get("annotations") or {}), **(annotations or {})}
    if not any(name in notes for name in _GROUP_NAMES):
        notes = {**_gang_of(owner), **notes}
    if notes:
        metadata["annotations"] = notes
    wanted = template.get("spec") or {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**wanted, **spec} if spec else wanted}


def _gang_of(owner: Object) -> dict[str, str]:
    """The marks of the gang that the owner's pods are; none where it asks for no minimum."""
    minimum = owner.annotations.get(OWNER_MINIMUM)
    return {_GANG + "name": f"podgroup-{owner.uid}", _GANG + "min-available": minimum} if minimum else {}


def is_active(pod: Object) -> bool:
    """Whether the pod counts as one of its owner's: not finished and not being deleted."""
    return not pod.deleting and not is_finished(pod)


def ready_since(pod: Object) -> int | None:
    """Since when (ms) the pod has been ready; None while it is not. 0 when nobody wrote down the time."""
    if not is_ready(pod):
        return None
    condition = condition_of(pod.status, "Ready") or {}
    return parse_time(str(condition["lastTransitionTime"])) if condition.get("lastTransitionTime") else 0


def available_count(pods: Sequence[Object], min_ready_seconds: int, work: Work) -> int:
    """How many pods have been ready long enough; the work comes back when the next one will have been."""
    count = 0
    for pod in pods:
        since = ready_since(pod)
        if since is None:
            continue
        if since + min_ready_seconds * 1000 <= work.now:
            count += 1
        else:
            work.look_again(since + min_ready_seconds * 1000)
    return count


def least_missed(pods: Sequence[Object], count: int) -> list[Object]:
    """The ``count`` pods that are given up first: without a node, not running, not ready, cheap, crowded, young."""
    crowd: dict[str, int] = {}
    for pod in pods:
        node = str(pod.spec.get("nodeName") or "")
        crowd[node] = crowd.get(node, 0) + 1

    def loss(pod: Object) -> tuple[object, ...]:
        node = str(pod.spec.get("nodeName") or "")
        running = pod.status.get("phase") == "Running"
        return (bool(node), running, is_ready(pod), _cost(pod), -crowd[node], _age(pod.created), pod.key)

    return sorted(pods, key=loss)[:count]


def _cost(pod: Object) -> int:
    text = str(pod.annotations.get(DELETION_COST, "0"))
    return int(text) if text.lstrip("-").isdigit() else 0


def _age(created: str) -> int:
    """Larger for the older."""
    return -parse_time(created) if created else 0
