"""What is said after a pass: of those who were tried, of those who waited to be told why, and of groups whose pods changed."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gang_scheduler.domain import decisions
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.reasons.group_reports import GroupReports
from gang_scheduler.domain.turns.lineup import Lineup
from gang_scheduler.domain.turns.tellings import Tellings
from gang_scheduler.domain.turns.turn import Turn
from kube import Decision, Key


@dataclass(slots=True)
class Verdicts:
    """Makes decisions of what was found. ``tellings`` are put off for a while, ``reports`` for as long as there is more to do."""

    cluster: Cluster
    lineup: Lineup
    tellings: Tellings
    reports: GroupReports = field(default_factory=GroupReports)

    def deadline(self) -> int | None:
        """When something has to be said that was put off."""
        times = (self.reports.deadline(), self.tellings.deadline())
        return min((time for time in times if time is not None), default=None)

    def told(self, tried: Iterable[Turn], now: int, in_flight: AbstractSet[Key]) -> Iterator[tuple[Unit, Decision]]:
        """What came of those who were tried, of whom each decision tells, and what those wait for who were tried a while ago."""
        names = self.cluster.room.table.names
        uids = {name: found.item.uid for name, found in self.cluster.room.reserved.by_name.items()}
        for turn in tried:
            if turn.steps:
                yield turn.unit, decisions.placed(turn, names, uids, now)
            elif turn.plan:
                yield turn.unit, decisions.room_made(turn, now)
            elif turn.block is not None and (words := decisions.explained(turn, now)) is not None:
                if self.tellings.put_off(turn, now):
                    continue
                yield turn.unit, words
            self.tellings.forget(turn.unit)
        for turn in self.tellings.due(now, self.lineup.line, lambda unit: self.lineup.is_busy(unit, in_flight)):
            if (words := decisions.explained(turn, now)) is not None:
                yield turn.unit, words

    def note(self, touched: Iterable[Group], told: Iterable[Unit], gone: AbstractSet[Key], now: int) -> None:
        """The pods of groups changed; of some of them enough was ``told``, others are ``gone``."""
        self.reports.note([one.id for one in touched if one.pod_group is not None and one.key not in gone], now)
        self.reports.drop(gang for unit in told for gang in unit)

    def observed(
        self, turns: dict[Unit, Turn], now: int, in_flight: AbstractSet[Key], *, busy: bool
    ) -> Iterator[Decision]:
        """The statuses that follow pods, of groups that nothing else was said of; none while ``busy`` and time to wait."""
        for gang in self.reports.take(now, busy=busy):
            group = self.cluster.groups.get(gang)
            if group is None or group.pod_group is None:
                continue
            if group.key in in_flight:
                self.reports.note((gang,), now)
                continue
            unit = self.lineup.units.get(gang, ())
            if unit in self.tellings:
                continue
            tried = turns.get(unit)
            explanations = self.lineup.explanations
            told = explanations.get(unit) if tried is None else tried.block and tried.block.explanation
            status = decisions.observed(group, now, told)
            if status is not None:
                yield status
