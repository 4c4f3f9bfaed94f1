"""Who lines up: the units that gangs make as they change, and the parts that each has in the line."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.askers import Askers
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.reasons.explain import Explanation
from gang_scheduler.domain.terms.gang_terms import GroupId
from gang_scheduler.domain.turns.backfill import Heads
from kube import Key, Outcome


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
