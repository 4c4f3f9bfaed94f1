"""Starting gangs whose members, or whose sub-groups, have to be near each other in the network."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gang_scheduler.domain.columns.vectors import Mask
from gang_scheduler.domain.gangs.gang import place_all
from gang_scheduler.domain.gangs.minimum import sub_group_of
from gang_scheduler.domain.gangs.podset_start import PodSetStart
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.terms.network_words import Topology
from gang_scheduler.domain.topology.network_domains import Need


@dataclass(slots=True)
class FencedStart:
    """Tries one domain after the other; what succeeds stays placed on ``trial``."""

    trial: Trial

    def inside(
        self, group: Group, records: Sequence[PodRecord], place: Callable[[], bool], *, sure: bool = True
    ) -> bool:
        """Whether ``place`` succeeds in one of the domains that the gang may use.

        ``sure``: it is just ``records`` that are placed, so that a domain without room for them is not tried.
        """
        room = self.trial.room
        topology = group.terms.topology if group.terms else None
        if topology is None:
            return place()
        before = room.fence
        for fence in self._choices(topology, records, self._placed(group.members.values()), sure=sure):
            room.fence = fence
            done = place()
            room.fence = before
            if done:
                return True
        return False

    def place(self, group: Group, records: Sequence[PodRecord]) -> bool:
        """Place all of ``records``, each sub-group that asks for it in a domain of its own; the largest first."""
        assert group.terms is not None
        terms = group.terms
        if any(record.podset is not None for record in records):
            return PodSetStart(self.trial).place(group, records)
        if not any(policy.topology for policy in terms.sub_groups):
            return place_all(self.trial, records) is None
        parts: dict[tuple[int, tuple[str, ...]] | None, list[PodRecord]] = {}
        for record in records:
            parts.setdefault(sub_group_of(record, terms), []).append(record)
        rest = parts.pop(None, [])
        beside: dict[tuple[int, tuple[str, ...]] | None, list[PodRecord]] = {}
        for record in group.members.values():
            if record.slot >= 0:
                beside.setdefault(sub_group_of(record, terms), []).append(record)
        for key, members in sorted(parts.items(), key=lambda item: (-len(item[1]), item[0])):
            topology = terms.sub_groups[key[0]].topology if key else None
            if not self._place_sub_group(topology, members, self._placed(beside.get(key, ()))):
                return False
        return not rest or place_all(self.trial, rest) is None

    def _place_sub_group(self, topology: Topology | None, members: list[PodRecord], held: list[int]) -> bool:
        if topology is None:
            return place_all(self.trial, members) is None
        room, mark = self.trial.room, self.trial.checkpoint()
        before = room.fence
        for fence in self._choices(topology, members, held):
            room.fence = fence
            failed = place_all(self.trial, members)
            room.fence = before
            if failed is None:
                return True
            self.trial.rollback(mark)
        return False

    def _choices(
        self, topology: Topology, records: Sequence[PodRecord], held: list[int], *, sure: bool = True
    ) -> Iterator[Mask]:
        room = self.trial.room
        rows = room.table.rows_for(records[0].shape)
        fullest = room.placement_of(records[0]) is Placement.BINPACK
        needs = self._needs(records) if sure else ()
        return room.hyper_nodes.choices(topology, room.fence, held, needs, rows, fullest=fullest)

    def _needs(self, records: Sequence[PodRecord]) -> list[Need]:
        counts: dict[int, int] = {}
        for record in records:
            counts[record.shape.index] = counts.get(record.shape.index, 0) + 1
        kinds = {record.shape.index: record for record in records}
        return [Need(self.trial.room.view(kinds[index]).copies, count) for index, count in counts.items()]

    @staticmethod
    def _placed(records: Iterable[PodRecord]) -> list[int]:
        return sorted({record.slot for record in records if record.slot >= 0})
