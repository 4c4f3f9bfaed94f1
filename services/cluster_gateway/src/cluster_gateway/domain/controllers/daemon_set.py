"""DaemonSet: one pod on every node that the template fits; the scheduler binds it to the one node that its affinity names."""

from collections.abc import Iterable

from cluster_gateway.domain.controllers.made_pods import available_count, is_active, pod_manifest
from cluster_gateway.domain.controllers.templates import REVISION_HASH, template_hash
from cluster_gateway.domain.controllers.work import Work, share_of, whole
from kube import Manifest, Object
from kube.node_choice import may_run
from kube.pods import is_finished, is_ready

DAEMON_SET = "DaemonSet.apps"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def reconcile_daemon_set(item: Object, work: Work) -> None:
    """Make pods where one is missing, remove those that do not belong, replace old ones, and write the status."""
    if item.deleting:
        return
    spec = daemon_spec(item)
    revision = template_hash(item.spec.get("template") or {})
    nodes = {node.name: node for node in sorted(work.store.of_kind("Node").values(), key=lambda node: node.key)}
    wanted = [name for name, node in nodes.items() if not node.deleting and may_run(spec, node)]
    kept, occupied = _sort_out(item, set(wanted), work)
    for name in wanted:
        if name not in occupied:
            _make(item, name, spec, revision, work)
    _update(item, [kept[name] for name in wanted if name in kept], len(wanted), revision, work)
    _report(item, kept, wanted, revision, work)


def daemon_spec(item: Object) -> Manifest:
    """The spec of its pods, with the tolerations that every daemon has."""
    spec: Manifest = (item.spec.get("template") or {}).get("spec") or {}
    own = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *own]}


def node_of(pod: Object) -> str:
    """The node that the pod is on or meant for."""
    if pod.spec.get("nodeName"):
        return str(pod.spec["nodeName"])
    for term in _terms(pod.spec):
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def _terms(spec: Manifest) -> list[Manifest]:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms: list[Manifest] = required.get("nodeSelectorTerms") or []
    return terms


def _sort_out(item: Object, wanted: set[str], work: Work) -> tuple[dict[str, Object], set[str]]:
    """The pod kept on each node, and the nodes where one is, be it on its way out. All others are deleted."""
    kept: dict[str, Object] = {}
    occupied: set[str] = set()
    for pod in sorted(work.pods_of(item), key=lambda pod: (pod.created, pod.key)):
        node = node_of(pod)
        if is_finished(pod) or node in kept or node not in wanted:
            work.delete(pod)
        elif not pod.deleting:
            kept[node] = pod
        if not is_finished(pod):
            occupied.add(node)
    return kept, occupied


def _make(item: Object, node: str, spec: Manifest, revision: str, work: Work) -> None:
    meant = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = [{**term, "matchFields": meant} for term in _terms(spec) or [{}]]
    affinity = spec.get("affinity") or {}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": terms}}
    own = {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}
    name = work.names.fresh("Pod", item, item.name, work.now)
    template = item.spec.get("template") or {}
    work.create(pod_manifest(item, template, name, labels={REVISION_HASH: revision}, spec=own))


def _update(item: Object, pods: list[Object], wanted: int, revision: str, work: Work) -> None:
    """Delete pods of an older template, as many as may be missing at once; those that are not ready first."""
    strategy = item.spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    most = max(1, share_of((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), wanted, up=True))
    old = [pod for pod in pods if pod.labels.get(REVISION_HASH) != revision]
    missing = wanted - sum(map(is_ready, pods))
    for pod in old:
        if not is_ready(pod):
            work.delete(pod)
    for pod in [pod for pod in old if is_ready(pod)][: max(0, most - missing)]:
        work.delete(pod)


def _report(item: Object, kept: dict[str, Object], wanted: Iterable[str], revision: str, work: Work) -> None:
    names = list(wanted)
    right = [kept[name] for name in names if name in kept and is_active(kept[name])]
    available = available_count(right, whole(item.spec.get("minReadySeconds"), 0), work)
    work.status(
        item,
        {
            "desiredNumberScheduled": len(names),
            "currentNumberScheduled": len(right),
            "numberMisscheduled": 0,
            "numberReady": sum(map(is_ready, right)),
            "updatedNumberScheduled": sum(pod.labels.get(REVISION_HASH) == revision for pod in right),
            "numberAvailable": available,
            "numberUnavailable": len(names) - available,
            "observedGeneration": whole(item.metadata.get("generation"), 1),
        },
    )
