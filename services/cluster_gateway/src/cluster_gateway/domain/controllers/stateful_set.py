"""StatefulSet: numbered pods that keep their names, made and given up in order.

An update replaces pods from the highest number down to the partition, one after the other. A pod that has to be made
again is made of the newest template.
"""

from cluster_gateway.domain.controllers.made_pods import is_active, pod_manifest, ready_since
from cluster_gateway.domain.controllers.templates import REVISION_HASH, template_hash
from cluster_gateway.domain.controllers.work import Work, whole
from kube import Key, Manifest, Object
from kube.pods import is_finished, is_ready

STATEFUL_SET = "StatefulSet.apps"
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"


def reconcile_stateful_set(item: Object, work: Work) -> None:
    """The next steps of ``item``, and its status."""
    if item.deleting:
        return
    revision = f"{item.name}-{template_hash(item.spec.get('template') or {})}"
    pods = {number: pod for pod in work.pods_of(item) if (number := _number(item, pod)) is not None}
    in_turn = item.spec.get("podManagementPolicy") != "Parallel"
    _replace_finished(pods, work)
    settled = _fill(item, pods, revision, work, in_turn=in_turn)
    if settled or not in_turn:
        settled = _give_up(item, pods, work, in_turn=in_turn) and settled
    if settled:
        _update(item, pods, revision, work)
    _report(item, pods, revision, work)


def _numbers(item: Object) -> range:
    start = whole((item.spec.get("ordinals") or {}).get("start"), 0)
    return range(start, start + whole(item.spec.get("replicas"), 1))


def _number(item: Object, pod: Object) -> int | None:
    text = pod.name.removeprefix(f"{item.name}-")
    return int(text) if text.isdigit() else None


def _replace_finished(pods: dict[int, Object], work: Work) -> None:
    """Delete pods that have come to their end, so that their names are free again."""
    for pod in pods.values():
        if is_finished(pod):
            work.delete(pod)


def _serves(item: Object, pod: Object | None, work: Work) -> bool:
    """Whether the pod is there to stay and has been ready long enough."""
    if pod is None or not is_active(pod):
        return False
    since = ready_since(pod)
    if since is None:
        return False
    at = since + whole(item.spec.get("minReadySeconds"), 0) * 1000
    if at > work.now:
        work.look_again(at)
    return at <= work.now


def _fill(item: Object, pods: dict[int, Object], revision: str, work: Work, *, in_turn: bool) -> bool:
    """Make the pods that are missing; in turn, each when those before it serve. Returns whether all serve."""
    settled = True
    for number in _numbers(item):
        if number not in pods:
            _make(item, number, revision, work)
        if not _serves(item, pods.get(number), work):
            settled = False
            if in_turn:
                break
    return settled


def _give_up(item: Object, pods: dict[int, Object], work: Work, *, in_turn: bool) -> bool:
    """Delete the pods beyond the wanted numbers, the highest first, in turn each when the one before is gone."""
    numbers = _numbers(item)
    beyond = [pods[number] for number in sorted(pods, reverse=True) if number not in numbers]
    for pod in beyond[:1] if in_turn else beyond:
        work.delete(pod)
    return not beyond


def _update(item: Object, pods: dict[int, Object], revision: str, work: Work) -> None:
    """Delete the highest pod of an older template, when all serve; it comes back of the newest one."""
    strategy = item.spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    partition = whole((strategy.get("rollingUpdate") or {}).get("partition"), 0)
    for number in sorted(pods, reverse=True):
        if number >= partition and pods[number].labels.get(REVISION_HASH) != revision:
            work.delete(pods[number])
            return


def _make(item: Object, number: int, revision: str, work: Work) -> None:
    name = f"{item.name}-{number}"
    template = item.spec.get("template") or {}
    claims = {
        str((claim.get("metadata") or {}).get("name")): claim for claim in item.spec.get("volumeClaimTemplates") or ()
    }
    for claim_name, claim in claims.items():
        _make_claim(item, f"{claim_name}-{name}", claim, work)
    own = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
    others = [
        volume for volume in (template.get("spec") or {}).get("volumes") or () if volume.get("name") not in claims
    ]
    spec: Manifest = {"hostname": name, "subdomain": str(item.spec.get("serviceName") or "")}
    if claims:
        spec["volumes"] = [*others, *own]
    labels = {_POD_NAME: name, _POD_INDEX: str(number), REVISION_HASH: revision}
    work.create(pod_manifest(item, template, name, labels=labels, spec=spec))


def _make_claim(item: Object, name: str, template: Manifest, work: Work) -> None:
    """A claim outlives the pod and the set, so it has no owner."""
    if work.store.get(Key("PersistentVolumeClaim", item.namespace, name)) is not None:
        return
    metadata = {**(template.get("metadata") or {}), "name": name, "namespace": item.namespace}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    work.create({**manifest, "spec": template.get("spec") or {}})


def _report(item: Object, pods: dict[int, Object], revision: str, work: Work) -> None:
    there = [pods[number] for number in sorted(pods) if is_active(pods[number])]
    updated = sum(pod.labels.get(REVISION_HASH) == revision for pod in there)
    wanted = len(_numbers(item))
    before = str(item.status.get("currentRevision") or revision)
    current = revision if updated == len(there) == wanted else before
    work.status(
        item,
        {
            "replicas": len(there),
            "readyReplicas": sum(map(is_ready, there)),
            "availableReplicas": sum(_serves(item, pod, work) for pod in there),
            "updatedReplicas": updated,
            "currentReplicas": sum(pod.labels.get(REVISION_HASH) == current for pod in there),
            "currentRevision": current,
            "updateRevision": revision,
            "observedGeneration": whole(item.metadata.get("generation"), 1),
        },
    )
