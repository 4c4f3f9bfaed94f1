"""What the agents beside kubelets have to know: the pods of their node, without what only a kubelet needs, and its rules."""

from collections.abc import Iterable, Mapping

from cluster_gateway.domain.assignments import NodeAssignment, described, node_rules
from cluster_gateway.domain.node_objects import MANAGED_BY, METRIC, TIDEGATE
from kube import Event, Key, Manifest, Object, Store
from kube.node_slo import NODE_SLO
from kube.pods import is_finished

_TOLD_METADATA = ("creationTimestamp", "deletionTimestamp", "labels")
_TOLD_ANNOTATIONS = "koordinator.sh/"
_CONTAINERS = ("initContainers", "containers")
_STATUSES = ("initContainerStatuses", "containerStatuses")


class KubeletRules:
    """Which nodes have an agent of ours, what is on them, and for whom something is new."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents: set[str] = set()
        self._pods: dict[str, dict[Key, None]] = {}
        self._changed: dict[str, None] = {}

    def heard(self, node: str) -> None:
        """The agent of ``node`` has reported: it wants to know."""
        if node not in self._agents:
            self._agents.add(node)
            self._changed[node] = None

    def fold(self, events: Iterable[Event]) -> None:
        """Take what happened to pods, nodes and their rules."""
        for event in events:
            kind, name = event.key.kind, event.key.name
            if kind == "Pod":
                self._fold_pod(event)
            elif kind == METRIC:
                self._fold_metric(event)
            elif name in self._agents and (kind == NODE_SLO or (kind == "Node" and _is_other(event.old, event.new))):
                self._changed[name] = None

    def take(self) -> list[NodeAssignment]:
        """The assignments that are new since the last call."""
        changed, self._changed = self._changed, {}
        return [self._of(node) for node in changed]

    def _of(self, node: str) -> NodeAssignment:
        found = (self._store.get(key) for key in sorted(self._pods.get(node, {})))
        pods = tuple(told(pod) for pod in found if pod is not None and not is_finished(pod))
        return NodeAssignment(node, pods, {}, (), *node_rules(self._store, node))

    def _fold_metric(self, event: Event) -> None:
        """A NodeMetric of ours shows that the node has an agent: a gateway that starts anew knows it by that."""
        if event.new is not None and event.new.labels.get(MANAGED_BY) == TIDEGATE:
            self.heard(event.key.name)

    def _fold_pod(self, event: Event) -> None:
        before, after = (
            str(pod.spec.get("nodeName") or "") if pod is not None else "" for pod in (event.old, event.new)
        )
        if before and before != after:
            self._pods.get(before, {}).pop(event.key, None)
        if after:
            self._pods.setdefault(after, {})[event.key] = None
        if before != after or _is_other_pod(event.old, event.new):
            self._changed |= {name: None for name in (before, after) if name in self._agents}


def told(pod: Object) -> Manifest:
    """What of a pod is told: nothing that its programs are given, such as variables."""
    metadata = {name: pod.metadata[name] for name in _TOLD_METADATA if name in pod.metadata}
    annotations = {name: text for name, text in pod.annotations.items() if _TOLD_ANNOTATIONS in name}
    spec = {name: [_container(one) for one in pod.spec.get(name) or ()] for name in _CONTAINERS}
    return {
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": annotations,
            **metadata,
        },
        "spec": {**spec, **{name: pod.spec[name] for name in ("priority", "overhead") if name in pod.spec}},
        "status": {
            name: [
                {"name": container, "containerID": identity} for container, identity in _containers(pod.status, name)
            ]
            for name in _STATUSES
        },
    }


def _container(one: Manifest) -> Manifest:
    return {name: one[name] for name in ("name", "resources", "restartPolicy") if name in one}


def _containers(status: Manifest, name: str) -> list[tuple[str, str]]:
    listed = status.get(name) or ()
    return [(str(one.get("name")), str(one.get("containerID"))) for one in listed if one.get("containerID")]


def _is_other_pod(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None or old.metadata is not new.metadata or old.body is not new.body:
        return True
    return is_finished(old) != is_finished(new) or any(
        _containers(old.status, name) != _containers(new.status, name) for name in _STATUSES
    )


def _is_other(old: Object | None, new: Object | None) -> bool:
    seen: list[Mapping[str, object]] = [described(one) if one is not None else {} for one in (old, new)]
    return seen[0] != seen[1]
