"""Who waits, and for what: so that a pass tries only those that may have become placeable since they were tried last.

The plain rule is that every pass tries everybody. A gang is left out only while its attempt would fail for certain:
until there are as many places for its shape as it needs, or until less is used of the queue that refused it. Whoever
waits for anything else is tried again as soon as anything changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.queues.queue_ledger import CLUSTER
from gang_scheduler.domain.reasons.block import Wake
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.terms.gang_terms import GroupId

_Where = TypeVar("_Where", str, int)

Unit = tuple[GroupId, ...]
"""The gangs that start together: one, or a bundle."""


@dataclass(slots=True)
class WaitingLine:
    """``ready`` are tried in the next pass."""

    ready: dict[Unit, None] = field(default_factory=dict)
    _for_room: dict[PodShape, dict[int, dict[Unit, None]]] = field(default_factory=dict)
    _for_queue: dict[str, dict[Unit, None]] = field(default_factory=dict)
    _for_anything: dict[Unit, None] = field(default_factory=dict)
    _parked: dict[Unit, Wake] = field(default_factory=dict)
    _strict: dict[str, dict[Unit, None]] = field(default_factory=dict)
    _stirred: dict[str, None] = field(default_factory=dict)
    """The strict queues that somebody left, or in which somebody is tried again: then all behind are."""

    _seen: tuple[int, int] = (-1, -1)

    def __contains__(self, unit: Unit) -> bool:
        return unit in self.ready or unit in self._parked

    def waits(self) -> bool:
        """Whether anybody was tried in vain."""
        return bool(self._parked)

    def renew(self, unit: Unit) -> None:
        """Something about the unit itself changed: it is tried in the next pass."""
        self._unpark(unit)
        self.ready[unit] = None

    def leave(self, unit: Unit) -> None:
        """The unit waits for nothing any more."""
        self._unpark(unit)
        self.ready.pop(unit, None)

    def park(self, unit: Unit, wake: Wake, strict_queue: str | None) -> None:
        """The unit was tried in vain; it waits for ``wake``. In a strict queue it is tried along with all behind it."""
        self.leave(unit)
        self._parked[unit] = wake
        if strict_queue is not None:
            self._strict.setdefault(strict_queue, {})[unit] = None
        if wake.queue is not None:
            self._for_queue.setdefault(wake.queue, {})[unit] = None
        elif wake.shape is not None:
            self._for_room.setdefault(wake.shape, {}).setdefault(wake.need, {})[unit] = None
        elif not wake.own:
            self._for_anything[unit] = None

    def wake(self, room: Room, strict_queue_of: Callable[[Unit], str | None]) -> None:
        """Make those ready whose attempt may succeed now."""
        now = (room.table.room.end, room.table.rules.end)
        if now != self._seen or room.ledger.released:
            for unit in list(self._for_anything):
                self.renew(unit)
            self._wake_for_room(room)
            self._wake_for_queue(room)
            self._seen = now
        for queue in {*self._stirred, *(queue for unit in self.ready if (queue := strict_queue_of(unit)) is not None)}:
            for unit in list(self._strict.get(queue, ())):
                self.renew(unit)
        self._stirred.clear()

    def seen(self, room: Room) -> None:
        """The pass is over; what it did and took back is no news."""
        self._seen = (room.table.room.end, room.table.rules.end)

    def is_current(self, room: Room) -> bool:
        """Whether nothing has changed on the books since the last pass."""
        return self._seen == (room.table.room.end, room.table.rules.end)

    def _wake_for_room(self, room: Room) -> None:
        for shape, by_need in list(self._for_room.items()):
            total = room.views.of(shape).total
            for need in [need for need in by_need if need <= total]:
                for unit in list(by_need[need]):
                    self.renew(unit)

    def _wake_for_queue(self, room: Room) -> None:
        # What the cluster has may have grown, which only the limits of the cluster as a whole depend on.
        for queue in [name for name in self._for_queue if name == CLUSTER or name in room.ledger.released]:
            for unit in list(self._for_queue[queue]):
                self.renew(unit)

    def _unpark(self, unit: Unit) -> None:
        wake = self._parked.pop(unit, None)
        if wake is None:
            return
        for queue, units in self._strict.items():
            if unit in units:
                del units[unit]
                self._stirred[queue] = None
        self._for_anything.pop(unit, None)
        if wake.queue is not None:
            _discard(self._for_queue, wake.queue, unit)
        elif wake.shape is not None:
            _discard(self._for_room[wake.shape], wake.need, unit)
            if not self._for_room[wake.shape]:
                del self._for_room[wake.shape]


def _discard(index: dict[_Where, dict[Unit, None]], key: _Where, unit: Unit) -> None:
    units = index.get(key)
    if units is not None:
        units.pop(unit, None)
        if not units:
            del index[key]
