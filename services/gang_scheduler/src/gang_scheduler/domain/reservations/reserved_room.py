"""Room that Reservations hold on nodes for their owners.

The plain rule: a reservation that stands on a node holds there what it reserved less what its owners take, whoever else
wants it. An owner may take what it holds and what is free besides; of the resources that it restricts, only what it holds.
So a node is looked at as if the reservation were not there, and then less is held.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.devices.allotments import NOTHING
from gang_scheduler.domain.devices.node_devices import Tenant
from gang_scheduler.domain.nodes.host_ports import PortIndex
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reservations.reservation import AVAILABLE, WAITING, Reservation
from gang_scheduler.domain.reservations.reservation_terms import (
    accepts,
    allocatable_of,
    fits_exactly,
    reservation_of,
    reservation_uid_of,
    terms_of_reservation,
    wish_of,
)
from gang_scheduler.domain.terms.pod_requests import PODS
from kube import Key, Object


@dataclass(slots=True)
class ReservedRoom:
    """All reservations, and their effect on ``table`` and ``ports``. ``changed`` are those whose owners or terms changed."""

    table: NodeTable
    ports: PortIndex
    by_name: dict[str, Reservation] = field(default_factory=dict)
    standing: dict[str, Reservation] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    version: int = 0
    """Grows whenever a reservation comes to stand, changes or is over."""

    _matches: dict[int, tuple[int, Object, tuple[str, ...]]] = field(default_factory=dict)

    def put(self, item: Object, record: PodRecord, owners: Mapping[Key, PodRecord]) -> None:
        """A reservation came or changed; ``owners`` are the pods on its node that were given it."""
        before = self.by_name.get(item.name)
        found = Reservation(item, record, terms_of_reservation(item))
        if before is not None:
            if before.assumed and before.item.uid == item.uid:
                owners = before.owners
            self._take_down(before)
            if before.assumed and before.item.uid == item.uid:
                found.node, found.assumed, found.ahead = before.node, True, before.ahead
        if found.phase in (AVAILABLE, WAITING):
            found.node, found.assumed = str(item.status.get("nodeName") or ""), False
            found.ahead = found.phase == WAITING
        given = allocatable_of(item)
        asked = record.shape.requests
        found.amounts = dict(asked) if given is None or found.assumed else {PODS: asked.get(PODS, 0), **given}
        self.by_name[item.name] = found
        self._stand(found, owners)

    def remove(self, name: str) -> None:
        """A reservation is gone: what nobody took of it is free."""
        found = self.by_name.pop(name, None)
        if found is not None:
            self._take_down(found)
            self._changed(name)

    def assume(self, name: str, node: str, over: Sequence[PodRecord] = ()) -> None:
        """A decision on its way makes the reservation stand on ``node``, there ``over`` pods that have the room as yet."""
        found = self.by_name.get(name)
        if found is not None and not found.node:
            found.node, found.assumed, found.ahead = node, True, bool(over)
            for record in over:
                record.reservation = name
            self._stand(found, {record.key: record for record in over})

    def unassume(self, name: str) -> None:
        """It did not come to stand there."""
        found = self.by_name.get(name)
        if found is not None and found.assumed:
            for record in found.owners.values() if found.ahead else ():
                record.reservation = reservation_of(record.pod.annotations)
            self._take_down(found)
            found.node, found.assumed, found.ahead = "", False, False
            self._changed(name)

    def node_gone(self, node: str) -> None:
        """A node is about to leave the table: what its reservations hold goes with it."""
        for found in [item for item in self.by_name.values() if item.node == node]:
            self._take_down(found)
            self._changed(found.name)

    def node_came(self, node: str, owners: Mapping[Key, PodRecord]) -> None:
        """A node came, with the pods that were given reservations there."""
        for found in [item for item in self.by_name.values() if item.node == node]:
            self._take_down(found)
            self._stand(found, owners)

    def hold_again(self, slot: int) -> None:
        """The devices of a node are others now: its reservations hold theirs of them."""
        for found in self.standing.values():
            if found.slot == slot:
                self._hold(found)

    def give_way(self, record: PodRecord, slot: int) -> None:
        """The reservation of a pod that is about to come holds nothing until it has come."""
        found = self._given_to(record)
        if found is not None and found.slot == slot:
            self._release(found)

    def move(self, record: PodRecord, slot: int, sign: int) -> None:
        """A pod comes to a node, or leaves it; if it was given a reservation there, that holds less, or more again."""
        found = self._given_to(record)
        if found is None:
            return
        if sign > 0 and found.slot == slot:
            found.owners[record.key] = record
        elif sign < 0 and found.owners.get(record.key) is record:
            del found.owners[record.key]
        else:
            return
        self.changed[found.name] = None
        self._hold(found)

    def note(self, name: str) -> None:
        """One of its owners is bound for certain now."""
        if name in self.by_name:
            self.changed[name] = None

    def lift(self, found: Reservation, *, up: bool) -> None:
        """For a moment hold nothing for it, or hold it again."""
        found.lifted = up
        self._hold(found)

    def concerns(self, record: PodRecord) -> bool:
        """Whether reservations bear on where the pod goes."""
        if wish_of(record.pod).required:
            return True
        if not self.standing:
            return False
        return wish_of(record.pod).ignores or bool(self.matching(record))

    def matching(self, record: PodRecord) -> tuple[str, ...]:
        """The reservations that stand and may be used by the pod, whether they have room for it or not; by name."""
        if not self.standing:
            return ()
        known = self._matches.get(id(record))
        if known is not None and known[0] == self.version and known[1] is record.pod:
            return known[2]
        found = tuple(name for name in sorted(self.standing) if not self.objection(self.standing[name], record))
        if len(self._matches) > 65_536:
            self._matches.clear()
        self._matches[id(record)] = (self.version, record.pod, found)
        return found

    def objection(self, found: Reservation, record: PodRecord) -> str:
        """Why a pod may not use a reservation at all; "" when it may."""
        wish = wish_of(record.pod)
        if not any(owner.owns(record.pod) for owner in found.terms.owners):
            return "the pod is none of its owners"
        if wish.ignores:
            return "the pod ignores reservations"
        if found.terms.closed:
            return "it is unschedulable"
        if found.ahead:
            return f"it waits for {', '.join(key.name for key in sorted(found.owners))} to leave {found.node}"
        if not accepts(wish, found.item, found.terms):
            return "the pod's affinity or its taints do not allow it"
        if not fits_exactly(wish.exact, record.shape.requests, found.amounts):
            return "the pod asks for other amounts than are reserved"
        return ""

    def candidates(self, record: PodRecord) -> Iterator[Reservation]:
        """The reservations that the pod may use, the best first: by their order, then the fullest, then by name."""
        found = [self.standing[name] for name in self.matching(record)]
        open_ones = [item for item in found if not item.used_up and not item.lacks(record)]
        yield from sorted(open_ones, key=lambda item: (item.terms.order or 1 << 62, -item.fullness(record), item.name))

    def held_at(self, slot: int) -> dict[str, int]:
        """What all reservations hold at a place of the table."""
        total: dict[str, int] = {}
        for found in self.standing.values():
            if found.slot == slot:
                for name, amount in found.held.items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _stand(self, found: Reservation, owners: Mapping[Key, PodRecord]) -> None:
        found.slot = self.table.slots.get(found.node, -1) if found.node and not found.item.deleting else -1
        if found.slot >= 0:
            self.standing[found.name] = found
            given = (one for one in owners.values() if one.slot == found.slot and self._given_to(one) is found)
            found.owners = {one.key: one for one in given}
            self._hold(found)
        self._changed(found.name)

    def _given_to(self, record: PodRecord) -> Reservation | None:
        """The reservation whose room a pod uses; None for one of the same name that came after it."""
        found = self.by_name.get(record.reservation)
        if found is None or not record.node or record.assumed:
            return found
        uid = reservation_uid_of(record.pod.annotations)
        return found if uid in ("", found.item.uid) else None

    def _take_down(self, found: Reservation) -> None:
        found.owners = {}
        if found.slot >= 0:
            self._release(found)
        found.slot = -1
        self.standing.pop(found.name, None)

    def _changed(self, name: str) -> None:
        self.version += 1
        self.changed[name] = None

    def _hold(self, found: Reservation) -> None:
        """Make the books show what it holds now."""
        self._release(found)
        if found.lifted or found.used_up:
            return
        found.held = {name: amount for name, amount in found.left().items() if amount}
        need = found.devices_left()
        if surcharge := self.table.devices.surcharge(need, found.slot):
            found.held["cpu"] = found.held.get("cpu", 0) + surcharge
        self.table.reserve(found.slot, found.held, 1)
        found.held_ports = found.ports_left()
        self.ports.move(found.held_ports, found.slot, 1)
        if self.table.devices.concern(need):
            tenant = Tenant(found.item.key, need, NOTHING, True, found.record.order, yields=True)
            self.table.devices.take(found.slot, [tenant])

    def _release(self, found: Reservation) -> None:
        if found.held:
            self.table.reserve(found.slot, found.held, -1)
            found.held = {}
        self.ports.move(found.held_ports, found.slot, -1)
        found.held_ports = ()
        self.table.devices.give(found.slot, [found.item.key])
