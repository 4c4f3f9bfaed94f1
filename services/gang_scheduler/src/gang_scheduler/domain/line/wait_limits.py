"""How long a gang wants to wait, and how long it wants to be passed over.

A gang whose waiting time is over gives up the room that is reserved for it and has none reserved any more, until it is made
anew; nothing else was held for it (Koordinator: ``waiting-time``, coscheduling: ``scheduleTimeoutSeconds``). One whose
service level is at stake has room reserved from then on, wherever it stands in its queue (Volcano: ``sla-waiting-time``).
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.terms.gang_terms import KOORDINATOR, SIGS_GROUPS
from kube import parse_duration, parse_time

WAITING_TIME = KOORDINATOR + "waiting-time"
SLA = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


@dataclass(slots=True)
class WaitLimits:
    """Moments (ms since the epoch) by unit, of those that wait for room and set themselves a limit."""

    until: dict[Unit, int] = field(default_factory=dict)
    """When the waiting time is over."""
    urgent: dict[Unit, int] = field(default_factory=dict)
    """When the unit has been passed over for long enough."""
    _heap: list[tuple[int, Unit]] = field(default_factory=list)

    def wait(self, unit: Unit, groups: Iterable[Group]) -> None:
        """The unit waits for room; its limits count from when the last of it was made."""
        members = list(groups)
        since = max((_since(group) for group in members), default=0)
        self._note(self.until, unit, since, _shortest(waiting_time(group) for group in members))
        self._note(self.urgent, unit, since, _shortest(sla(group) for group in members))

    def leave(self, unit: Unit) -> None:
        """The unit waits no more."""
        self.until.pop(unit, None)
        self.urgent.pop(unit, None)

    def over(self, unit: Unit, now: int) -> bool:
        """Whether the unit has waited as long as it wanted to."""
        return unit in self.until and self.until[unit] <= now

    def pressing(self, now: int) -> list[Unit]:
        """The units for which room has to be reserved by now, the most urgent first."""
        found = [(at, unit) for unit, at in self.urgent.items() if at <= now and not self.over(unit, now)]
        return [unit for _, unit in sorted(found)]

    def take(self, now: int) -> list[Unit]:
        """Those for whom a moment has come since this was asked last."""
        found: dict[Unit, None] = {}
        while self._heap and self._heap[0][0] <= now:
            at, unit = heapq.heappop(self._heap)
            if at in (self.until.get(unit), self.urgent.get(unit)):
                found[unit] = None
        return list(found)

    @property
    def next(self) -> int | None:
        """When the next moment comes."""
        while self._heap:
            at, unit = self._heap[0]
            if at in (self.until.get(unit), self.urgent.get(unit)):
                return at
            heapq.heappop(self._heap)
        return None

    def _note(self, moments: dict[Unit, int], unit: Unit, since: int, length: int | None) -> None:
        if length is None:
            moments.pop(unit, None)
        elif moments.get(unit) != since + length:
            moments[unit] = since + length
            heapq.heappush(self._heap, (since + length, unit))


def waiting_time(group: Group) -> int | None:
    """How long the gang wants to wait, in milliseconds; None for as long as it takes."""
    item = group.pod_group
    if item is not None and item.kind in SIGS_GROUPS:
        seconds = item.spec.get("scheduleTimeoutSeconds")
        if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
            return seconds * 1000
    return _shortest(_duration(text) for text in _said(group, (WAITING_TIME,)))


def sla(group: Group) -> int | None:
    """How long the gang may be passed over, in milliseconds; None where it does not say."""
    return _shortest(_duration(text) for text in _said(group, SLA))


def _said(group: Group, names: tuple[str, ...]) -> list[str]:
    """What the PodGroup says under one of the names, else what its members that wait say."""
    items = [group.pod_group] if group.pod_group is not None else []
    items += [record.pod for record in group.pending.values()]
    for item in items:
        found = [str(item.annotations[name]) for name in names if name in item.annotations]
        if found:
            return found
    return []


def _since(group: Group) -> int:
    times = [record.pod.created for record in group.pending.values()]
    latest = max([*times, group.created])
    return parse_time(latest) if latest else 0


def _shortest(lengths: Iterable[int | None]) -> int | None:
    return min((length for length in lengths if length is not None), default=None)


def _duration(text: str) -> int | None:
    try:
        return parse_duration(text) or None
    except ValueError:
        return None
