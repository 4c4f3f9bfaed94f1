"""Nodes that are lent at some hours only: Volcano's revocable zones (its plugin ``tdm``).

A node with the label ``volcano.sh/revocable-zone: z`` takes pods only within the hours of its zone, and only such as can be
sent away again: those with the annotation ``volcano.sh/revocable-zone: "*"``, and those that say they are preemptable. Of two
nodes that fit they take the one that is lent. Zones without hours are always closed; where no zone has hours, the label
means nothing. Hours are in UTC, and may go over midnight.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.terms.node_rules import Taint
from gang_scheduler.domain.terms.revocable_pods import ZONE

CLOSED_ZONE = "volcano.sh/revocable-zone-closed"
"""Key of the taint of nodes out of their hours, which nobody is asked to tolerate."""

DAY_MS, MINUTE_MS = 86_400_000, 60_000
_HOURS = re.compile(r"([^=]+)=(\d\d):(\d\d)-(\d\d):(\d\d)")


class Window(NamedTuple):
    """Hours of every day, as milliseconds since midnight; the same twice is all day."""

    start: int
    end: int

    def open_at(self, now: int) -> bool:
        """Whether the moment ``now`` (milliseconds since the epoch) is within it."""
        since = (now - self.start) % DAY_MS
        return since < ((self.end - self.start) % DAY_MS or DAY_MS)

    def next_change(self, now: int) -> int:
        """When it opens or closes next."""
        return min(now + DAY_MS - (now - edge) % DAY_MS for edge in (self.start, self.end))


def windows_of(text: str) -> dict[str, Window]:
    """The hours of zones, written as ``day=08:00-20:00,night=22:00-06:00``; raises ValueError for anything else."""
    found: dict[str, Window] = {}
    for part in filter(None, text.split(",")):
        read = _HOURS.fullmatch(part.strip())
        if read is None:
            raise ValueError(f"revocable zones: {part!r} is not written as zone=08:00-20:00")
        hours = [int(digits) for digits in read.groups()[1:]]
        if max(hours[::2]) > 23 or max(hours[1::2]) > 59:
            raise ValueError(f"revocable zones: {part!r} names a time that there is not")
        start, end = ((60 * hours[at] + hours[at + 1]) * MINUTE_MS for at in (0, 2))
        found[read[1].strip()] = Window(start, end)
    return found


@dataclass(slots=True)
class RevocableZones:
    """``now`` is the time as of which nodes are open or closed, in milliseconds since the epoch."""

    windows: Mapping[str, Window]
    nodes: dict[str, str] = field(default_factory=dict)
    """The zone of every node that is in one."""

    now: int = 0

    def put(self, node: str, zone: str) -> None:
        """A node is in this zone now, "" for none."""
        self.nodes.pop(node, None)
        if zone and self.windows:
            self.nodes[node] = zone

    def taints(self, node: str) -> tuple[Taint, ...]:
        """What keeps pods off a node."""
        zone = self.nodes.get(node)
        if zone is None:
            return ()
        return (Taint(ZONE if self._open(zone, self.now) else CLOSED_ZONE, zone, "NoSchedule"),)

    def closed(self, node: str) -> bool:
        """Whether a node is in a zone, and out of its hours."""
        zone = self.nodes.get(node)
        return zone is not None and not self._open(zone, self.now)

    def advance(self, now: int) -> list[str]:
        """It is ``now``; returns the nodes that open or close by that."""
        before, self.now = self.now, now
        changed = {zone for zone in self.windows if self._open(zone, before) != self._open(zone, now)}
        return [node for node, zone in self.nodes.items() if zone in changed]

    def next_change(self) -> int | None:
        """When nodes open or close next."""
        return min((window.next_change(self.now) for window in self._used()), default=None)

    def _used(self) -> Iterator[Window]:
        return (self.windows[zone] for zone in set(self.nodes.values()) if zone in self.windows)

    def _open(self, zone: str, now: int) -> bool:
        return zone in self.windows and self.windows[zone].open_at(now)
