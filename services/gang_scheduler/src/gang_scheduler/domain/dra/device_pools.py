"""The devices of all nodes, and who has them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from gang_scheduler.domain.columns.vectors import ChangeLog
from gang_scheduler.domain.dra.capacity import told
from gang_scheduler.domain.dra.requests import CLASS, Holding, selectors_of
from gang_scheduler.domain.dra.slices import Device, DeviceId, Slice, slice_of, usable
from gang_scheduler.domain.nodes.filters import term_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.terms.node_rules import NodeTerm
from kube import Event, Key

Counter = tuple[str, str, str]
"""Driver, pool, and ``set/counter``."""


@dataclass(slots=True)
class DevicePools:
    """``changes`` logs the nodes whose devices, or the use of them, changed; ``version`` counts what concerns all nodes."""

    table: NodeTable
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    users: dict[DeviceId, int] = field(default_factory=dict)
    """How many claims have a device for themselves."""

    sharers: dict[DeviceId, int] = field(default_factory=dict)
    """How many parts of a device are given away."""

    drawn: dict[tuple[DeviceId, str], int] = field(default_factory=dict)
    """How much of a capacity of it these are, by full name."""

    left: dict[Counter, int] = field(default_factory=dict)
    total: dict[Counter, int] = field(default_factory=dict)
    changes: ChangeLog = field(default_factory=ChangeLog)
    version: int = 0
    _slices: dict[Key, Slice] = field(default_factory=dict)
    _by_node: dict[str, list[Device]] = field(default_factory=dict)
    _reached: list[Device] = field(default_factory=list)
    _known: dict[DeviceId, Device] = field(default_factory=dict)
    _stale: bool = False

    def fold_slice(self, event: Event) -> None:
        """A driver says what there is."""
        found = slice_of(event.new) if event.new is not None else None
        if found is None:
            self._slices.pop(event.key, None)
        else:
            self._slices[event.key] = found
        self._stale = True
        self.version += 1

    def fold_class(self, event: Event) -> None:
        """A class of devices came, changed or went."""
        assert event.key.kind == CLASS
        if event.new is None:
            self.classes.pop(event.key.name, None)
        else:
            self.classes[event.key.name] = selectors_of(event.new.spec)
        self.version += 1

    def on(self, slot: int) -> list[Device]:
        """The devices that a node reaches, in the order of their names."""
        self._renew()
        own = self._by_node.get(self.table.names[slot], [])
        return own + [one for one in self._reached if self.reaches(one.terms, slot)]

    def reaches(self, terms: tuple[NodeTerm, ...] | None, slot: int) -> bool:
        """Whether a node is one of those of a selector."""
        if terms is None:
            return True
        slots = np.array([slot], np.intp)
        return any(bool(term_mask(term, self.table, slots)[0]) for term in terms)

    def any(self) -> bool:
        """Whether there is any device."""
        self._renew()
        return bool(self._known)

    def hold(self, holding: Holding, sign: int) -> None:
        """Devices are given to a claim (1) or come back (-1)."""
        self._renew()
        for device in holding.devices:
            _count(self.users, device, sign)
            self._draw_counters(device, sign)
            self.note(device)
        for device, taken in holding.shares:
            before = self.sharers.get(device, 0)
            _count(self.sharers, device, sign)
            if not before or not self.sharers.get(device):
                # Its own share of the pool's counters a device takes once, however many share it.
                self._draw_counters(device, sign)
            for name, amount in taken:
                _count(self.drawn, (device, name), sign * amount)
            self.note(device)

    def overdrawn(self) -> Iterator[str]:
        """Devices of which more is given away than there is: those who wait for some of it have to wait for others."""
        for device, users in self.users.items():
            if users > 1:
                yield f"device {device.name} of pool {device.pool} is allocated to {users} claims"
        for (device, name), amount in self.drawn.items():
            known = self._known.get(device)
            capacity = known.capacities.get(name) if known is not None else None
            if capacity is not None and amount > capacity.amount:
                yield f"{told(amount)} of {name} of device {device.name} are given away, it has {told(capacity.amount)}"

        for (driver, pool, name), amount in self.left.items():
            if amount < 0:
                yield f"{told(-amount)} of counter {name} of pool {pool} of {driver} are given away that it has not"

    def _draw_counters(self, device: DeviceId, sign: int) -> None:
        known = self._known.get(device)
        for name, amount in known.consumes if known is not None else ():
            self.left[device.driver, device.pool, name] -= sign * amount

    def note(self, device: DeviceId) -> None:
        """The use of a device changed, or for whom it is kept."""
        known = self._known.get(device)
        slot = self.table.slots.get(known.node, -1) if known is not None and known.node else -1
        if slot >= 0:
            self.changes.add(slot)
        else:
            self.version += 1
        # Also wakes those who wait for anything to change.
        self.table.room.add(max(slot, 0))

    def _renew(self) -> None:
        if not self._stale:
            return
        self._stale = False
        self._by_node, self._reached, self._known, self.left = {}, [], {}, {}
        for one in usable(self._slices[key] for key in sorted(self._slices)):
            for counter, amount in one.counters.items():
                self.left[one.driver, one.pool, counter] = amount
            for device in one.devices:
                self._known[device.id] = device
        self.total = dict(self.left)
        for device in self._known.values():
            (self._by_node.setdefault(device.node, []) if device.node else self._reached).append(device)
            for name, amount in device.consumes:
                key = (device.id.driver, device.id.pool, name)
                uses = self.users.get(device.id, 0) + (device.id in self.sharers)
                self.left[key] = self.left.get(key, 0) - amount * uses


Counted = TypeVar("Counted")


def _count(counts: dict[Counted, int], key: Counted, change: int) -> None:
    """Change a count; those at zero are left out."""
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
