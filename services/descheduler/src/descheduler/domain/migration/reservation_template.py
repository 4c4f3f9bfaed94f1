"""The reservation that a migration makes: for pods of the same controller, and never on the node that the pod leaves."""

from descheduler.domain.cluster.pod_traits import node_of
from descheduler.domain.migration.job import Migration
from kube import Manifest, Object
from kube.owners import owner_reference

ORDER = "scheduling.koordinator.sh/reservation-order"
LATER_SECONDS = 600
"""So much longer than its job, and than its pod may take to end, a reservation stands: whoever comes late finds his place."""

_NODE_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_DROPPED = ("nodeName", "hostname", "subdomain", "ephemeralContainers")
"""What belongs to one pod at its place, and would say nothing of the next."""


def reservation_manifest(job: Migration, pod: Object, now: int) -> Manifest:
    """It is taken by the first pod that the controller makes, and goes with the job."""
    options = job.item.spec.get("reservationOptions") or {}
    given = options.get("template") or {}
    metadata, spec = given.get("metadata") or {}, given.get("spec") or {}
    labels = {**(metadata.get("labels") or {}), ORDER: str(now)}
    # The job may go first: to keep it back is a right that nobody has to be given.
    owner = {**owner_reference(job.item), "blockOwnerDeletion": False}
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {**metadata, "name": job.name, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "allocateOnce": True,
            "allocatePolicy": "Aligned",
            "ttl": f"{job.ttl_ms // 1000 + _grace_seconds(pod) + LATER_SECONDS}s",
            "owners": [_owner(pod)],
            **spec,
            "template": _elsewhere(spec.get("template") or _template(pod), node_of(pod), job.target),
        },
    }


def _grace_seconds(pod: Object) -> int:
    given = pod.spec.get("terminationGracePeriodSeconds")
    return given if isinstance(given, int) else 30


def _owner(pod: Object) -> Manifest:
    controller = pod.controller
    if controller is None:
        return {"object": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name}}
    return {"controller": {**controller, "controller": True, "namespace": pod.namespace}}


def _template(pod: Object) -> Manifest:
    metadata = {name: pod.metadata[name] for name in ("labels",) if name in pod.metadata}
    spec = {name: part for name, part in pod.spec.items() if name not in _DROPPED}
    return {"metadata": {"namespace": pod.namespace, **metadata}, "spec": spec}


def _elsewhere(template: Manifest, origin: str, target: str) -> Manifest:
    if target:
        return with_node_field(template, "In", target)
    return with_node_field(template, "NotIn", origin) if origin else template


def with_node_field(template: Manifest, operator: str, node: str) -> Manifest:
    """The template with one more demand on its node's name, in each term: terms are alternatives."""
    spec = template.get("spec") or {}
    affinity = spec.get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    terms = (of_node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    demand = {"key": _NODE_NAME, "operator": operator, "values": [node]}
    narrowed = [{**term, "matchFields": [*(term.get("matchFields") or ()), demand]} for term in terms]
    required = {_REQUIRED: {"nodeSelectorTerms": narrowed}}
    return {**template, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": {**of_node, **required}}}}
