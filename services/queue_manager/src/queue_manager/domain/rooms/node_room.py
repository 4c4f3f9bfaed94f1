"""What is free on every node, as far as facts and promises go: enough to tell whether a topology has room for a workload.

The scheduler alone decides where pods go. This is an estimate of the same, so that quota is not given to who finds no place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kube import Event, Key, Manifest, Object
from kube.lent_resources import current
from kube.pods import is_finished
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.quotas.queue_tree import amounts_of
from queue_manager.domain.workloads.job_workload import holder_of
from resources import Amounts
from topology.levels import Ints

PODS = "pods"
DEFAULT_PODS = 110
LARGEST = 1 << 53
"""More of anything than this counts as this, so that sums over all nodes stay within 63 bits."""

_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as far as room goes. ``taints`` are those that keep pods away; a closed node takes none at all."""

    labels: Mapping[str, str]
    taints: tuple[Manifest, ...]
    allocatable: Amounts
    closed: bool


class Spot(NamedTuple):
    """``amounts`` are taken at each of ``slots``, so many times as ``counts`` says."""

    amounts: tuple[tuple[str, int], ...]
    slots: Ints
    counts: Ints


Spots = tuple[Spot, ...]


@dataclass(slots=True)
class NodeRoom:
    """Nodes by slot: column ``i`` of ``allocatable`` and ``used``, whose rows are resources.

    ``promised`` is kept for workloads that are not placed yet, and counts as used. ``version`` counts the changes of nodes,
    ``revision`` those of anything. ``freed`` says whether there may be more room than when that was last looked at.
    """

    views: dict[int, NodeView] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    allocatable: Ints = field(default_factory=lambda: np.zeros((4, 16), np.int64))
    used: Ints = field(default_factory=lambda: np.zeros((4, 16), np.int64))
    promised: dict[Key, Spots] = field(default_factory=dict)
    version: int = 0
    revision: int = 0
    freed: bool = False
    _slots: dict[str, int] = field(default_factory=dict)
    _rows: dict[str, int] = field(default_factory=dict)
    _pods: dict[Key, tuple[Key, int, Amounts]] = field(default_factory=dict)
    _by_owner: dict[Key, dict[Key, None]] = field(default_factory=dict)
    _requests: PodRequests = field(default_factory=PodRequests)
    _spare: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many slots there are, taken or not."""
        return int(self.used.shape[1])

    def fold_node(self, event: Event) -> None:
        """Take in a change of a node."""
        name = event.key.name
        after = _view(event.new) if event.new is not None else None
        before = self.views.get(self._slots.get(name, -1))
        if before == after:
            return
        slot = self._slot(name)
        self.allocatable[:, slot] = 0
        if after is None:
            del self.views[slot]
        else:
            self.views[slot] = after
            for resource, amount in after.allocatable.items():
                row = self._row(resource)  # may make the table larger
                self.allocatable[row, slot] = min(amount, LARGEST)
        self.version += 1
        self.revision += 1
        self.freed = True
        self._spare_if_empty(slot)

    def fold_pod(self, event: Event) -> None:
        """Take in where a pod is; what was promised to its workload is taken by it now."""
        pod, key = event.new, event.key
        node = str(pod.spec.get("nodeName") or "") if pod is not None and not is_finished(pod) else ""
        known = self._pods.get(key)
        if (self.names[known[1]] if known else "") == node:
            return
        if known is not None:
            self._drop(key, known)
        if node and pod is not None:
            owner = holder_of(pod)
            slot, amounts = self._slot(node), current(self._requests.of(pod))
            self._pods[key] = (owner, slot, amounts)
            self._by_owner.setdefault(owner, {})[key] = None
            self._take(slot, amounts, 1)
            self.release(owner)

    def promise(self, key: Key, spots: Spots) -> None:
        """Keep ``spots`` for a workload."""
        self.promised[key] = spots
        self._move(spots, 1)

    def release(self, key: Key) -> bool:
        """What was kept for a workload is free again, or taken by its pods; returns whether anything was."""
        spots = self.promised.pop(key, None)
        if spots is None:
            return False
        self._move(spots, -1)
        return True

    def places(self, owner: Key) -> bool:
        """Whether any pod of the workload has a node."""
        return owner in self._by_owner

    def free(self, without: Iterable[Key]) -> Ints:
        """What is left by resource and node, if the workloads ``without`` were gone; negative where a node is overfull."""
        left: Ints = self.allocatable - self.used
        for owner in without:
            for key in self._by_owner.get(owner, ()):
                _, slot, amounts = self._pods[key]
                for resource, amount in (*amounts.items(), (PODS, 1)):
                    left[self._rows[resource], slot] += amount
        return left

    def row_of(self, resource: str) -> int:
        """The row of a resource, -1 for one that no node has."""
        return self._rows.get(resource, -1)

    def _take(self, slot: int, amounts: Amounts, sign: int) -> None:
        for resource, amount in (*amounts.items(), (PODS, 1)):
            # The row first: a new one makes another array of ``used``.
            row = self._row(resource)
            self.used[row, slot] += sign * amount
        self.revision += 1

    def _move(self, spots: Spots, sign: int) -> None:
        for spot in spots:
            for resource, amount in spot.amounts:
                row = self._row(resource)
                self.used[row, spot.slots] += sign * amount * spot.counts
        self.revision += 1

    def _drop(self, key: Key, known: tuple[Key, int, Amounts]) -> None:
        owner, slot, amounts = known
        del self._pods[key], self._by_owner[owner][key]
        if not self._by_owner[owner]:
            del self._by_owner[owner]
        self._take(slot, amounts, -1)
        self.freed = True
        self._spare_if_empty(slot)

    def _spare_if_empty(self, slot: int) -> None:
        """A slot of a node that is gone is given to another one once nothing counts there."""
        if slot not in self.views and not self.used[:, slot].any():
            del self._slots[self.names.pop(slot)]
            self._spare.append(slot)

    def _slot(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._spare.pop() if self._spare else len(self._slots)
            if slot >= self.size:
                more = np.zeros((len(self.used), self.size), np.int64)
                self.allocatable, self.used = (
                    np.concatenate([item, more], 1) for item in (self.allocatable, self.used)
                )
            self._slots[name] = slot
            self.names[slot] = name
        return slot

    def _row(self, resource: str) -> int:
        row = self._rows.setdefault(resource, len(self._rows))
        if row >= len(self.used):
            more = np.zeros_like(self.used)
            self.allocatable, self.used = (np.concatenate([item, more]) for item in (self.allocatable, self.used))
        return row


def _view(node: Object) -> NodeView:
    conditions = node.status.get("conditions") or ()
    ready = [item.get("status") == "True" for item in conditions if item.get("type") == "Ready"]
    taints = tuple(taint for taint in node.spec.get("taints") or () if taint.get("effect") in _BLOCKING)
    closed = bool(node.spec.get("unschedulable")) or node.deleting or not all(ready)
    allocatable = current(amounts_of(node.status.get("allocatable") or node.status.get("capacity")))
    return NodeView(node.labels, taints, {PODS: DEFAULT_PODS, **allocatable}, closed)
