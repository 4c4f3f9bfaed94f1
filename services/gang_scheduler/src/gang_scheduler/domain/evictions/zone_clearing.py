"""Sending pods away from nodes whose hours are over: Volcano's ``tdm``, one round a minute.

In a round a gang loses as many of its pods there as ``volcano.sh/jdb-max-unavailable`` or ``jdb-min-available`` of its PodGroup
or its pods let go; where neither is given, one that it can spare, or all of it once there is none: a gang keeps its minimum or
goes whole. Who is never evicted stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.victims import holding_of
from gang_scheduler.domain.nodes.revocable_zones import MINUTE_MS, RevocableZones
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import FINISHED, PodRecord, Standing, in_order
from kube import Decision, Mutation, Verb
from kube.words import counted, verb

MAX_UNAVAILABLE, MIN_AVAILABLE = "volcano.sh/jdb-max-unavailable", "volcano.sh/jdb-min-available"
PERIOD_MS = MINUTE_MS
NAME = "ZoneCleared"


@dataclass(slots=True)
class ZoneClearing:
    """``last`` is when the last round was, ``planned`` when the one that was decided last, in milliseconds since the epoch."""

    cluster: Cluster
    last: int = 0
    planned: int = 0

    def clear(self, now: int) -> Iterator[Decision]:
        """The evictions of a round, if it is time for one."""
        if not self._zones.nodes or now < self.last + PERIOD_MS:
            return
        groups = {id(record.group): record.group for record in self._left()}
        made = [decision for group in groups.values() if (decision := self._sent_away(group)) is not None]
        if made:
            self.planned = now
        yield from sorted(made, key=lambda decision: decision.subject)

    def note(self, decision: Decision) -> None:
        """A decision is on its way."""
        if decision.name == NAME:
            self.last = self.planned

    def deadline(self) -> int | None:
        """When the next round is, if anybody is left."""
        return self.last + PERIOD_MS if any(True for _ in self._left()) else None

    @property
    def _zones(self) -> RevocableZones:
        return self.cluster.zones

    def _left(self) -> Iterator[PodRecord]:
        """The pods that run out of the hours of their node."""
        for node in self._zones.nodes:
            if self._zones.closed(node):
                yield from (r for r in self.cluster.on_node.get(node, {}).values() if r.standing is Standing.RUNNING)

    def _sent_away(self, group: Group) -> Decision | None:
        holding = holding_of([group], self.cluster)
        there = [record for record in holding.movable if self._zones.closed(record.node)]
        there = [record for record in there if record.standing is Standing.RUNNING]
        if not there:
            return None
        allowed = _allowed(group)
        if allowed is not None:
            victims = in_order(there)[::-1][:allowed]
        elif holding.spare:
            spare = [r for r in there if holding.spares(1, r.role, 1)]
            victims = in_order(spare)[::-1][:1]
        else:
            victims = holding.movable if holding.whole else []
        if not victims:
            return None
        zones = ", ".join(sorted({self._zones.nodes[record.node] for record in there}))
        who = counted(len(victims), "pod")
        message = f"{who} of {group.name} {verb(len(victims))} evicted: the hours of revocable zone {zones} are over"
        mutations = tuple(Mutation(Verb.EVICT, record.key, record.pod.uid) for record in in_order(victims))
        return Decision(NAME, group.key, group.uid, "RevocableZoneClosed", message, mutations)


def _allowed(group: Group) -> int | None:
    """How many may go by the budget of the job; None where it has none."""
    members = list(group.members.values())
    running = sum(record.standing is Standing.RUNNING for record in members)
    ended = sum(record.standing in FINISHED for record in members)
    most = _budget(group, MAX_UNAVAILABLE)
    if most is not None:
        return max(0, _count(most, len(members)) - (len(members) - ended - running))
    least = _budget(group, MIN_AVAILABLE)
    return None if least is None else max(0, running - _count(least, len(members)))


def _budget(group: Group, name: str) -> str | None:
    items = [group.pod_group] if group.pod_group is not None else []
    items += [group.members[key].pod for key in sorted(group.members)[:1]]
    said = (item.annotations.get(name) for item in items)
    return next((text for text in said if text and text.removesuffix("%").isdigit()), None)


def _count(text: str, members: int) -> int:
    """A number of members, or a part of them in percent, rounded up."""
    return -(-int(text[:-1]) * members // 100) if text.endswith("%") else int(text)
