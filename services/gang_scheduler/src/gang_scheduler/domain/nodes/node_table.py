"""All nodes as integer vectors: what each has, what of it is used, its labels and taints. Grows and shrinks in place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.node_labels import NodeLabels
from gang_scheduler.domain.columns.vectors import ChangeLog, Ids, Ints, Mask, Slots
from gang_scheduler.domain.devices.cards import implied
from gang_scheduler.domain.devices.devices import Devices
from gang_scheduler.domain.nodes.node_load import NodeLoad
from gang_scheduler.domain.pods.pod_shape import PodShape, ResourceRows
from gang_scheduler.domain.terms.load_estimate import Load
from gang_scheduler.domain.terms.load_policy import MEASURED, LoadPolicy
from gang_scheduler.domain.terms.node_rules import Taint, taints_of
from gang_scheduler.domain.terms.pod_requests import PODS
from kube import Object
from kube.lent_resources import current
from resources import Amounts, QuantityError, parse_amounts

LARGEST_SUPPLY = 1 << 53
"""No node has more of anything: keeps sums over all nodes within 63 bits."""

DEFAULT_PODS = 110
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")


@dataclass(slots=True)
class NodeTable:
    """Node ``i`` is column ``i`` of ``allocatable`` and ``used``, whose rows are resources.

    ``room`` logs every change of what is free, ``rules`` every change of a node itself; cached vectors catch up with them.
    """

    resources: ResourceRows
    names: list[str] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    room: ChangeLog = field(default_factory=ChangeLog)
    rules: ChangeLog = field(default_factory=ChangeLog)
    labels: NodeLabels = field(default_factory=lambda: NodeLabels(16))
    exists: Mask = field(default_factory=lambda: np.zeros(16, np.bool_))
    allocatable: Ints = field(default_factory=lambda: np.zeros((4, 16), np.int64))
    used: Ints = field(default_factory=lambda: np.zeros((4, 16), np.int64))
    taint_ids: Ids = field(default_factory=lambda: np.zeros(16, np.int32))
    taint_sets: list[tuple[Taint, ...]] = field(default_factory=lambda: [()])
    devices: Devices = field(default_factory=Devices)
    load: NodeLoad = field(default_factory=lambda: NodeLoad(LoadPolicy()))
    held: dict[int, dict[int, int]] = field(default_factory=dict)
    """By slot and row: what of ``used`` nobody uses yet, because it is kept for somebody."""

    version: int = 0
    """Counts the changes of nodes themselves, not of what is used of them."""

    _taint_numbers: dict[tuple[Taint, ...], int] = field(default_factory=lambda: {(): 0})
    _free_slots: list[int] = field(default_factory=list)
    _rank: Ints | None = None
    _totals: Amounts | None = None
    _labels_of: dict[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many places there are, taken or not."""
        return len(self.exists)

    def put(self, node: Object, more: Iterable[Taint] = ()) -> int:
        """Take in a node's newest version, with ``more`` taints than it tells; returns its slot."""
        slot = self.slots.get(node.name)
        if slot is None:
            slot = self._new_slot(node.name)
        self._put_allocatable(slot, node)
        self.labels.put(slot, self._labels_of.get(slot, {}), node.labels)
        self._labels_of[slot] = node.labels
        self.taint_ids[slot] = self._taint_number(tuple(sorted({*effective_taints(node), *more})))
        self._changed(slot)
        return slot

    def remove(self, name: str) -> int:
        """Forget a node and what was used of it; returns the slot that it had, or -1."""
        slot = self.slots.pop(name, -1)
        if slot < 0:
            return slot
        self.exists[slot] = False
        self.allocatable[:, slot] = 0
        self.used[:, slot] = 0
        self.devices.remove(slot)
        self.load.forget(slot)
        self.held.pop(slot, None)
        self.labels.put(slot, self._labels_of.pop(slot), {})
        self.taint_ids[slot] = 0
        self._free_slots.append(slot)
        self._changed(slot)
        return slot

    def take(self, shape: PodShape, slot: int, count: int) -> None:
        """``count`` more pods of ``shape`` are on the node; a negative count takes them away."""
        rows = self.rows_for(shape)
        used = self.used.data  # which is faster, number by number
        for row, need in zip(rows, shape.needs, strict=True):
            used[row, slot] += need * count
        if self.devices.amplified and (surcharge := self.devices.surcharge(shape.devices, slot)):
            self.used[self.resources.row("cpu"), slot] += surcharge * count
        self.room.add(slot)

    def use(self, slot: int, amounts: Mapping[int, int]) -> None:
        """So much more (by row, all of which exist) of the node is used; of negative amounts less."""
        used = self.used.data
        for row, amount in amounts.items():
            used[row, slot] += amount
        self.room.add(slot)

    def hold(self, slot: int, amounts: Mapping[int, int]) -> None:
        """Keep ``amounts`` (by row) of the node for somebody, instead of what was kept before."""
        before = self.held.get(slot, {})
        if before == amounts:
            return
        for row in before.keys() | amounts.keys():
            self.used[row, slot] += amounts.get(row, 0) - before.get(row, 0)
        if amounts:
            self.held[slot] = dict(amounts)
        else:
            del self.held[slot]
        self.room.add(slot)

    def reserve(self, slot: int, amounts: Mapping[str, int], sign: int) -> None:
        """Hold ``amounts`` of a node for the owners of a reservation; a negative ``sign`` lets go of them."""
        for name, amount in amounts.items():
            row = self.resources.row(name)
            if row >= len(self.used):
                self._grow_rows(row)
            self.used[row, slot] += sign * min(amount, LARGEST_SUPPLY)
        self.room.add(slot)

    def rank(self) -> Ints:
        """For each slot the place of its name in the order of names: what decides between equal nodes.

        It stays when nodes go, as it is part of keys that were made before: only order counts, gaps do no harm.
        """
        if self._rank is None:
            self._rank = np.zeros(self.size, np.int64)
            order = [self.slots[name] for name in sorted(self.slots)]
            self._rank[order] = np.arange(len(order))
        return self._rank

    def labels_at(self, slot: int) -> Mapping[str, str]:
        """The labels of the node there."""
        return self._labels_of.get(slot, {})

    def rows_for(self, shape: PodShape) -> list[int]:
        """The rows of the resources that ``shape`` asks for, all of which exist then."""
        if shape.rows and max(shape.rows) >= len(self.used):
            self._grow_rows(max(shape.rows))
        return list(shape.rows)

    def amplified(self, shape: PodShape, slots: Slots, *, empty: bool = False) -> Ints | None:
        """How many copies the cpu of nodes allows on which CPUs of a pod's own count for more; None where nowhere."""
        surcharge = self.devices.surcharges(shape.devices, slots)
        if surcharge is None:
            return None
        row = self.resources.row("cpu")
        used = 0 if empty else self.used[row, slots]
        limit: Ints = np.maximum(0, (self.allocatable[row, slots] - used) // (shape.devices.cpu + surcharge))
        return limit

    def measured_of(self, slot: int) -> Load:
        """What a node has of what is measured."""
        rows = (self.resources.row(name) for name in MEASURED)
        cpu, memory = (int(self.allocatable[row, slot]) if row < len(self.allocatable) else 0 for row in rows)
        return Load(cpu, memory)

    def row_of(self, name: str) -> int:
        """The row of a resource, which exists then."""
        row = self.resources.row(name)
        if row >= len(self.used):
            self._grow_rows(row)
        return row

    def totals(self) -> Amounts:
        """What all nodes that take pods have together."""
        if self._totals is None:
            closed = [any(taint in (UNSCHEDULABLE, NOT_READY) for taint in taints) for taints in self.taint_sets]
            mask = self.exists & ~np.array(closed)[self.taint_ids]
            rows = self.allocatable[:, mask].sum(axis=1)
            self._totals = {
                name: int(rows[row]) for name, row in self.resources.rows.items() if row < len(rows) and rows[row]
            }
        return self._totals

    def _put_allocatable(self, slot: int, node: Object) -> None:
        try:
            amounts = current(parse_amounts(node.status.get("allocatable") or node.status.get("capacity")))
        except QuantityError:
            amounts = {}
        amounts = {PODS: DEFAULT_PODS, **amounts, **implied(amounts)}
        self.allocatable[:, slot] = 0
        for name, amount in amounts.items():
            row = self.resources.row(name)
            if row >= len(self.allocatable):
                self._grow_rows(row)
            self.allocatable[row, slot] = max(0, min(amount, LARGEST_SUPPLY))

    def _taint_number(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_numbers.get(taints)
        if number is None:
            number = self._taint_numbers[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return number

    def _changed(self, slot: int) -> None:
        self.version += 1
        self._totals = None
        self.rules.add(slot)

    def _new_slot(self, name: str) -> int:
        slot = self._free_slots.pop() if self._free_slots else len(self.names)
        if slot == len(self.names):
            self.names.append(name)
            if slot >= self.size:
                self._grow_nodes(self.size + max(16, self.size // 4))
        self.names[slot] = name
        self.slots[name] = slot
        self.exists[slot] = True
        self._rank = None
        # Equal scores are decided by the order of names, which is another one now.
        self.rules.forget()
        return slot

    def _grow_nodes(self, size: int) -> None:
        more = size - self.size
        rows = len(self.used)
        self.allocatable = np.concatenate([self.allocatable, np.zeros((rows, more), np.int64)], axis=1)
        self.used = np.concatenate([self.used, np.zeros((rows, more), np.int64)], axis=1)
        self.exists = np.concatenate([self.exists, np.zeros(more, np.bool_)])
        self.taint_ids = np.concatenate([self.taint_ids, np.zeros(more, np.int32)])
        self.labels.grow(size)
        self.load.resize(size)
        self.devices.resize(size)

    def _grow_rows(self, row: int) -> None:
        more = max(4, row + 1 - len(self.used), len(self.used))
        extra = np.zeros((more, self.size), np.int64)
        self.allocatable = np.concatenate([self.allocatable, extra])
        self.used = np.concatenate([self.used, extra])


def effective_taints(node: Object) -> tuple[Taint, ...]:
    """A node's taints, with those that Kubernetes gives to a cordoned or unready node, sorted."""
    taints = set(taints_of(node.spec))
    if node.spec.get("unschedulable") or node.deleting:
        taints.add(UNSCHEDULABLE)
    for condition in node.status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            taints.add(NOT_READY)
    return tuple(sorted(taints))
