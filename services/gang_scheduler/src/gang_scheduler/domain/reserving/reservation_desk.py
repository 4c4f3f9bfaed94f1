"""Reservations in a pass: those that wait get a place, those that stand are used up, expire and are cleared away.

A reservation is placed like the pod that its template describes, by the same rules, in the order of priority and age among
those who wait now. It takes only what is free, or, where it says so, what will be when pods that run have left: nobody is
evicted for it, it is nobody's victim, and it is charged to no queue (its owners are when they come).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.reasons.explain import node_report
from gang_scheduler.domain.reservations.reservation import AVAILABLE, OVER, WAITING, Reservation
from gang_scheduler.domain.reserving.pre_allocation import Ahead, place_ahead
from gang_scheduler.domain.reserving.reservation_status import (
    available,
    cleared,
    expired,
    free_at_last,
    observed,
    succeeded,
    unplaced,
    waiting,
)
from gang_scheduler.domain.room.rearrangement import ranked
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.shape_view import NO_NODE
from kube import Decision, Key, parse_time

KEPT_MS = 24 * 3_600_000
"""How long a reservation that is over is kept for people to look at."""

Rank = tuple[int, str]
"""Priority, the highest first, then age."""


@dataclass(slots=True)
class ReservationDesk:
    """``told`` is what the reservations that wait were last told."""

    cluster: Cluster
    told: dict[str, str] = field(default_factory=dict)
    _placed: list[tuple[Reservation, Ahead]] = field(default_factory=list)
    _waiting: list[Reservation] = field(default_factory=list)
    _seen: tuple[int, int] = (-1, -1)
    _resized: dict[str, None] = field(default_factory=dict)
    """Those that stand and are to be larger than there was room for."""

    _ends: dict[str, int] = field(default_factory=dict)

    def open(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """Begin a pass: see to what changed and what is due. What waits is placed between others, by ``place``."""
        reserved = self.cluster.room.reserved
        changed, reserved.changed = reserved.changed, {}
        table = self.cluster.room.table
        moved = self._seen != (table.room.end, table.rules.end)
        if moved:
            changed |= self._resized
        made: list[Decision] = []
        for name in [*changed, *(name for name, end in self._ends.items() if end <= now and name not in changed)]:
            found = reserved.by_name.get(name)
            self._ends.pop(name, None)
            self._resized.pop(name, None)
            if found is None:
                self.told.pop(name, None)
                continue
            end = self._end_of(found)
            if end is not None and end > now:
                self._ends[name] = end
            if found.item.key in in_flight:
                reserved.changed[name] = None
            else:
                made += self._look_at(found, end, now)
        unplaced_ones = [item for item in reserved.by_name.values() if item.waits and item.item.key not in in_flight]
        gone = {decision.subject for decision in made}
        if changed or moved:
            self._waiting = sorted((item for item in unplaced_ones if item.item.key not in gone), key=_rank)
        else:
            self._waiting = []
        return made

    @property
    def busy(self) -> bool:
        """Whether any wait to be placed in this pass."""
        return bool(self._waiting)

    def place(self, before: Rank | None = None) -> None:
        """Place those who wait and come before ``before`` (None: all)."""
        while self._waiting and (before is None or _rank(self._waiting[0])[:2] <= before):
            found = self._waiting.pop(0)
            place = self._place_for(found)
            if place is not None:
                self.cluster.room.reserved.assume(found.name, place.node, place.pods)
                self._placed.append((found, place))
                self.told.pop(found.name, None)
            else:
                self.told[found.name] = why_waiting(self.cluster.room, found)

    def close(self, now: int, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        """What came of those who waited. What was placed is taken back until the decision about it is assumed."""
        reserved = self.cluster.room.reserved
        placed, self._placed = self._placed, []
        for found, _ in placed:
            reserved.unassume(found.name)
        for found, place in placed:
            yield waiting(found, place, now) if place.pods else available(found, place.node, now)
        for name, message in self.told.items():
            one = reserved.by_name.get(name)
            if one is None or not one.waits or one.item.key in in_flight:
                continue
            if decision := unplaced(one, message, now):
                yield decision

    def seen(self) -> None:
        """The pass is over; what it did and took back is no news."""
        table = self.cluster.room.table
        self._seen = (table.room.end, table.rules.end)

    def put_off(self) -> None:
        """Nobody was placed in this pass: whoever waits is looked at in the next one, though nothing happens until then."""
        self._seen = (-1, -1)

    def deadline(self) -> int | None:
        """When the next reservation expires or is cleared away."""
        return min(self._ends.values(), default=None)

    def _look_at(self, found: Reservation, end: int | None, now: int) -> Iterator[Decision]:
        if found.phase in OVER:
            if end is not None and end <= now:
                yield cleared(found)
            return
        if end is not None and end <= now:
            yield expired(found, f"its time was over at {_spoken(found)}", now)
        elif found.phase in (AVAILABLE, WAITING) and found.node and found.node not in self.cluster.nodes:
            yield expired(found, f"its node {found.node} is gone", now)
        elif found.phase == WAITING and not found.owners:
            yield free_at_last(found, now)
        elif found.phase == AVAILABLE and found.terms.once and self._has_come(found):
            yield succeeded(found, now)
        elif found.phase in (AVAILABLE, WAITING) and (decision := observed(found, self._may_grow(found))):
            yield decision

    @staticmethod
    def _has_come(found: Reservation) -> bool:
        return any(not owner.assumed for owner in found.owners.values())

    def _may_grow(self, found: Reservation) -> bool:
        """Whether the reservation may be as large as its template says now: what it has more than before has to be free."""
        asked, table = found.record.shape.requests, self.cluster.room.table
        if any(amount > found.amounts.get(name, 0) for name, amount in asked.items()):
            self._resized[found.name] = None
        return found.slot >= 0 and all(
            int(table.allocatable[row, found.slot] - table.used[row, found.slot])
            >= asked[name] - found.amounts.get(name, 0)
            for name, row in zip(asked, table.rows_for(found.record.shape), strict=True)
            if asked[name] > found.amounts.get(name, 0)
        )

    @staticmethod
    def _end_of(found: Reservation) -> int | None:
        """When it expires, or is cleared away if it is over."""
        return _over_since(found) + KEPT_MS if found.phase in OVER else found.terms.expires_at

    def _place_for(self, found: Reservation) -> Ahead | None:
        """Free room, else, if it may wait there for pods to leave, room over some."""
        if node := self._node_for(found):
            return Ahead(node, ())
        if not found.terms.ahead:
            return None
        return place_ahead(self.cluster.room, found, list(self.cluster.placed()))

    def _node_for(self, found: Reservation) -> str:
        """The best node for the template, "" for none; where the template names one, only that."""
        room, record = self.cluster.room, found.record
        keys = ranked(room, record, 1)
        wanted = str(record.pod.spec.get("nodeName") or "")
        if wanted:
            only = np.full(len(keys), NO_NODE, np.int64)
            slot = room.table.slots.get(wanted, -1)
            if slot >= 0:
                only[slot] = keys[slot]
            keys = only
        slot = int(keys.argmax())
        return room.table.names[slot] if keys[slot] >= 0 else ""


def why_waiting(room: Room, found: Reservation) -> str:
    """Why a reservation has no place."""
    sentence = node_report(room, found.record).sentence()
    if not found.terms.ahead:
        return sentence
    which = "flagged for it" if found.terms.flagged else "of its owners"
    number = "any number of pods" if found.terms.several else "one pod"
    return f"{sentence} Nor would it fit on any node after {number} {which} had left"


def _rank(found: Reservation) -> tuple[int, str, str]:
    return -found.record.form.priority, found.item.created, found.name


def _over_since(found: Reservation) -> int:
    times = [str(item.get("lastTransitionTime") or "") for item in found.item.status.get("conditions") or ()]
    try:
        return parse_time(max(filter(None, times), default="") or found.item.created)
    except ValueError:
        return 0


def _spoken(found: Reservation) -> str:
    return str(found.item.spec.get("expires") or f"{found.item.spec.get('ttl') or '24h'} after its creation")
