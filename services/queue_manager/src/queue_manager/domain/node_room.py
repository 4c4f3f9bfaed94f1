"""What is free on every node, as far as facts and promises go: enough to tell whether a topology has room for a workload.

The scheduler alone decides where pods go. This is an estimate of the same, so that quota is not given to who finds no place.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Event, Key, Manifest, Object
from kube.pods import is_finished
from queue_manager.domain.members import GROUP, group_named_by
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.queue_tree import amounts_of
from queue_manager.domain.sums import accumulate
from resources import Amounts

Spots = dict[str, Amounts]
"""What is taken, by node."""

DEFAULT_PODS = 110
_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as far as room goes. ``taints`` are those that keep pods away; a closed node takes none at all."""

    labels: Mapping[str, str]
    taints: tuple[Manifest, ...]
    allocatable: Amounts
    closed: bool


@dataclass(slots=True)
class NodeRoom:
    """``freed`` says whether there may be more room than before. ``promised`` is kept for workloads that are not placed yet."""

    nodes: dict[str, NodeView] = field(default_factory=dict)
    used: Spots = field(default_factory=dict)
    promised: dict[Key, Spots] = field(default_factory=dict)
    freed: bool = False
    _pods: dict[Key, tuple[Key, str, Amounts]] = field(default_factory=dict)
    _by_owner: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _requests: PodRequests = field(default_factory=PodRequests)

    def fold_node(self, event: Event) -> None:
        """Take in a change of a node."""
        before = self.nodes.pop(event.key.name, None)
        if event.new is not None:
            self.nodes[event.key.name] = _view(event.new)
        self.freed |= before != self.nodes.get(event.key.name)

    def fold_pod(self, event: Event) -> None:
        """Take in where a pod is; what was promised to its workload is taken by it now."""
        pod, key = event.new, event.key
        node = str(pod.spec.get("nodeName") or "") if pod is not None and not is_finished(pod) else ""
        known = self._pods.get(key)
        if (known[1] if known else "") == node:
            return
        if known is not None:
            self._drop(key, known)
        if node and pod is not None:
            group = group_named_by(pod)
            owner = Key(GROUP, pod.namespace, group) if group else key
            self._pods[key] = (owner, node, self._requests.of(pod))
            self._by_owner.setdefault(owner, {})[key] = None
            accumulate(self.used.setdefault(node, {}), {**self._pods[key][2], "pods": 1}, 1)
            self.promised.pop(owner, None)

    def places(self, owner: Key) -> bool:
        """Whether any pod of the workload has a node."""
        return owner in self._by_owner

    def free(self, without: AbstractSet[Key]) -> Spots:
        """What is left on the nodes that take pods, if the workloads ``without`` were gone."""
        left = {name: dict(view.allocatable) for name, view in self.nodes.items() if not view.closed}
        for name, amounts in self.used.items():
            if name in left:
                accumulate(left[name], amounts, -1)
        for spots in self.promised.values():
            for name, amounts in spots.items():
                if name in left:
                    accumulate(left[name], amounts, -1)
        for owner in without:
            for key in self._by_owner.get(owner, ()):
                _, name, amounts = self._pods[key]
                if name in left:
                    accumulate(left[name], {**amounts, "pods": 1}, 1)
        return left

    def _drop(self, key: Key, known: tuple[Key, str, Amounts]) -> None:
        owner, node, amounts = known
        del self._pods[key], self._by_owner[owner][key]
        if not self._by_owner[owner]:
            del self._by_owner[owner]
        accumulate(self.used[node], {**amounts, "pods": 1}, -1)
        self.freed = True


def _view(node: Object) -> NodeView:
    ready = [
        item.get("status") == "True" for item in node.status.get("conditions") or () if item.get("type") == "Ready"
    ]
    taints = tuple(taint for taint in node.spec.get("taints") or () if taint.get("effect") in _BLOCKING)
    closed = bool(node.spec.get("unschedulable")) or node.deleting or not all(ready)
    allocatable = amounts_of(node.status.get("allocatable") or node.status.get("capacity"))
    return NodeView(node.labels, taints, {"pods": DEFAULT_PODS, **allocatable}, closed)
