"""Who lines up: the units that gangs make as they change, and what each waits for when it was tried in vain."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.askers import Askers
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.reasons.block import OWN_CHANGE, Wake
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.reserving.reservation_desk import Rank
from gang_scheduler.domain.terms.gang_terms import GroupId
from gang_scheduler.domain.turns.backfill import Heads
from gang_scheduler.domain.turns.turn import Turn
from kube import Key, Outcome

FOR_ROOM = (Reason.NOT_ENOUGH_RESOURCES, Reason.NO_DOMAIN, Reason.QUEUE_CAPABILITY, Reason.DEVICES_MISSING)
"""The reasons for which somebody at the head of a queue gets room reserved after a while."""


@dataclass(slots=True)
class Lineup:
    """``units`` has the unit of every gang that there is: itself, or the bundle with which it starts."""

    cluster: Cluster
    line: WaitingLine
    heads: Heads
    limits: WaitLimits
    askers: Askers
    explanations: dict[Unit, Explanation]
    units: dict[GroupId, Unit] = field(default_factory=dict)
    _bundles: dict[GroupId, dict[Unit, None]] = field(default_factory=dict)
    _withheld: dict[Key, GroupId] = field(default_factory=dict)
    """Gangs that changed while a decision about them was on its way."""

    def settle(self, outcome: Outcome) -> None:
        """The decision about a gang came to its outcome: what changed meanwhile is looked at now."""
        if (gang := self._withheld.pop(outcome.subject, None)) is not None:
            self.cluster.touch(gang, again=False)

    def take_touched(self, in_flight: AbstractSet[Key], *, new: bool) -> list[Group]:
        """The groups that changed, lined up; those with a decision on its way stay for later.

        ``new`` is said of the first pass, when it is not known since when each of them waits.
        """
        touched: list[Group] = []
        for gang, again in self.cluster.touched.items():
            group = self.cluster.groups.get(gang)
            if again:
                self._line_up(gang, group, new)
            if group is None:
                continue
            if in_flight and (key := group.key) in in_flight:
                self._withheld[key] = gang
            else:
                touched.append(group)
        self.cluster.touched.clear()
        return touched

    def leave(self, unit: Unit) -> None:
        """A unit waits no more, wherever it did."""
        self.line.leave(unit)
        self.heads.leave(unit)
        self.limits.leave(unit)
        self.askers.leave(unit)
        self.explanations.pop(unit, None)

    def is_busy(self, unit: Unit, in_flight: AbstractSet[Key]) -> bool:
        """Whether a decision about a gang of the unit is on its way."""
        if not in_flight:
            return False
        groups = (self.cluster.groups.get(gang) for gang in unit)
        return any(group is not None and group.key in in_flight for group in groups)

    def ready(self, in_flight: AbstractSet[Key]) -> list[Unit]:
        """Those whose turn it is."""
        return [unit for unit in self.line.ready if not self.is_busy(unit, in_flight)]

    def first_of(self, units: Sequence[Unit]) -> Rank | None:
        """Priority and age of whoever waits and comes first: what decides who goes before a reservation that waits too."""
        if not self.cluster.room.reserved.by_name:
            return None
        groups = [group for unit in units if (group := self.cluster.groups.get(unit[0])) is not None]
        return min(((-group.priority(self.cluster.classes), group.created) for group in groups), default=None)

    def strict_queue(self, unit: Unit) -> str | None:
        """The queue of a unit, if nobody may pass its head."""
        group = self.cluster.groups.get(unit[0])
        return group.queue if group and self.cluster.room.ledger.strict(group.queue) else None

    def park(self, turn: Turn, wake: Wake | None, *, evicts: bool) -> None:
        """A unit that found no place waits for ``wake``, or for somebody to evict; one with a decision comes back with its outcome."""
        if turn.steps:
            # It stays ready until its decision is assumed: what is only decided may be decided again.
            self.line.renew(turn.unit)
            return
        if turn.block is None or wake is None:
            self.leave(turn.unit)
            return
        group = turn.groups[0] if turn.groups else None
        if turn.block.hopeless:
            self.askers.despair(turn.unit)
        elif evicts and group is not None and turn.block.wake is not OWN_CHANGE:
            self.askers.wait(turn.unit, group.queue, group.priority(self.cluster.classes))
        if turn.place is not None and turn.block.explanation.reason in FOR_ROOM and not turn.block.hopeless:
            self.heads.wait(turn.unit, turn.groups[0].queue, turn.place)
            self.limits.wait(turn.unit, turn.groups)
        else:
            self.heads.leave(turn.unit)
            self.limits.leave(turn.unit)
        self.explanations[turn.unit] = turn.block.explanation
        self.line.park(turn.unit, wake, self.strict_queue(turn.unit))

    def _line_up(self, gang: GroupId, group: Group | None, new: bool) -> None:
        """The unit of a gang waits if any of its gangs has members to place and was let in."""
        for bundle in self._bundles.get(gang, ()):
            if bundle in self.line:
                self.line.renew(bundle)
        before = self.units.get(gang)
        unit = group.bundle() if group else None
        if before is not None and before != unit:
            del self.units[gang]
            self.leave(before)
        if group is None or unit is None:
            return
        self.units[gang] = unit
        members = [group] if len(unit) == 1 else self._bundled(unit)
        if any(item.pending and item.let_in for item in members):
            self.line.renew(unit)
            if new:
                self.limits.wait(unit, members)
        else:
            self.leave(unit)

    def _bundled(self, unit: Unit) -> list[Group]:
        """The gangs of a bundle that there are. A change of any of them is one of the bundle."""
        for gang in unit:
            self._bundles.setdefault(gang, {})[unit] = None
        return [group for gang in unit if (group := self.cluster.groups.get(gang)) is not None]
