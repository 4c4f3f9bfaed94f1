"""Placing pod sets in the domains of a topology of labels: all pods of a set, in the order of their numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.gangs.gang import place_all
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.pods.podset import PodSet, podsets, rank_of
from gang_scheduler.domain.room.trial import Trial
from kube.pod_sets import Nearness, units
from topology.assignment import Share, Shortfall, lay_out, shared_domains
from topology.levels import Level, LevelTree

Parts = dict[PodSet, list[PodRecord]]


@dataclass(slots=True)
class PodSetStart:
    """What succeeds stays placed on ``trial``."""

    trial: Trial

    def place(self, group: Group, records: Sequence[PodRecord]) -> bool:
        """Place all of ``records``; those of no set last."""
        rest, units = _units(records)
        for parts in units:
            together = len(parts) > 1
            if not (
                self._place_together(group, parts) if together else self._place_set(group, *next(iter(parts.items())))
            ):
                return False
        return not rest or place_all(self.trial, rest) is None

    def obstacle(self, group: Group, records: Sequence[PodRecord]) -> Shortfall | None:
        """The first set that has no place as the books stand, and why."""
        for parts in _units(records)[1]:
            for podset, members in parts.items():
                found = self._lay_out(group, podset, members)
                if isinstance(found, Shortfall):
                    return found
        return None

    def _place_set(self, group: Group, podset: PodSet, members: list[PodRecord]) -> bool:
        tree = self.trial.room.level_trees.of(podset.levels)
        found = self._lay_out(group, podset, members)
        if isinstance(found, Shortfall):
            return False
        mark = self.trial.checkpoint()
        if self._place_shares(tree, found, members):
            return True
        self.trial.rollback(mark)
        # What fits alone does not fit together: ports, affinity, devices. The domains are tried one by one.
        return any(self._place_inside(fence, members) for fence in self._fences(group, podset, members))

    def _place_together(self, group: Group, parts: Parts) -> bool:
        """Sets of one group in one domain, each laid out inside it; where that is only preferred, each by itself."""
        first = next(iter(parts))
        mark = self.trial.checkpoint()
        for fence in self._common_fences(group, parts):
            if self._fenced(fence, group, parts):
                return True
            self.trial.rollback(mark)
        if first.ask.nearness is Nearness.REQUIRED:
            return False
        return all(self._place_set(group, podset, members) for podset, members in parts.items())

    def _fenced(self, fence: Mask, group: Group, parts: Parts) -> bool:
        room = self.trial.room
        before = room.fence
        room.fence = fence
        done = all(self._place_set(group, podset, members) for podset, members in parts.items())
        room.fence = before
        return done

    def _place_inside(self, fence: Mask, members: list[PodRecord]) -> bool:
        room, mark = self.trial.room, self.trial.checkpoint()
        before = room.fence
        room.fence = fence
        failed = place_all(self.trial, members)
        room.fence = before
        if failed is not None:
            self.trial.rollback(mark)
        return failed is None

    def _place_shares(self, tree: LevelTree, shares: list[Share], members: list[PodRecord]) -> bool:
        lowest, first = tree.levels[-1], 0
        for share in shares:
            part = members[first : first + share.pods]
            first += share.pods
            if not self._place_share(lowest, share.domain, part):
                return False
        return True

    def _place_share(self, lowest: Level, domain: int, part: list[PodRecord]) -> bool:
        room, nodes = self.trial.room, lowest.nodes(domain)
        if int(nodes.sum()) == 1 and len({room.class_of(record) for record in part}) == 1 and not room.coupled(part[0]):
            self.trial.place(part, int(nodes.argmax()))
            return True
        return self._place_inside(nodes if room.fence is None else nodes & room.fence, part)

    def _lay_out(self, group: Group, podset: PodSet, members: list[PodRecord]) -> list[Share] | Shortfall:
        """Where the set goes: beside those of it that are placed already, else wherever it fits best."""
        tree, copies = self.trial.room.level_trees.of(podset.levels), self._copies(members)
        placed = [r for r in group.members.values() if r.slot >= 0 and podset.beside(r.podset)]
        if not placed:
            return lay_out(tree, self._with_room_for_all(group, podset, copies), podset.ask, len(members))
        ask, found = podset.ask._replace(slice_level="", slice_size=1), None
        for inside in _beside(tree, podset, placed, members):
            found = lay_out(tree, np.where(inside, copies, 0), ask, len(members))
            if not isinstance(found, Shortfall):
                return found
        if found is not None and podset.ask.nearness is Nearness.REQUIRED:
            return found
        return lay_out(tree, copies, ask, len(members))

    def _with_room_for_all(self, group: Group, podset: PodSet, copies: Ints) -> Ints:
        """Only the domains that the whole set would take, where it may start with less and there are such domains."""
        tree = self.trial.room.level_trees.of(podset.levels)
        place = tree.index(podset.ask.level)
        waiting = sum(1 for record in group.pending.values() if record.podset == podset)
        found = lay_out(tree, copies, podset.ask, waiting) if place >= 0 else []
        if isinstance(found, Shortfall) or not found:
            return copies
        of_node, lowest = tree.levels[place].of_node, tree.levels[-1].of_node
        whole = of_node[np.isin(lowest, [share.domain for share in found])]
        return np.where(np.isin(of_node, whole), copies, 0)

    def _copies(self, members: Sequence[PodRecord]) -> Ints:
        """How many pods of the set fit on each node; where they are of several shapes, how many of each."""
        kinds = {record.shape.index: record for record in members}
        copies: Ints = np.min([self.trial.room.view(record).copies for record in kinds.values()], axis=0)
        return copies

    def _fences(self, group: Group, podset: PodSet, members: list[PodRecord]) -> Iterator[Mask]:
        yield from self._common_fences(group, {podset: members})
        if podset.ask.nearness is not Nearness.REQUIRED:
            room = self.trial.room
            everywhere: Mask = room.level_trees.of(podset.levels).levels[-1].of_node >= 0
            yield everywhere if room.fence is None else everywhere & room.fence

    def _common_fences(self, group: Group, parts: Parts) -> Iterator[Mask]:
        """The domains that might hold every part, the smallest of the narrowest level first."""
        first, room = next(iter(parts)), self.trial.room
        tree = room.level_trees.of(first.levels)
        wanted = [(self._copies(members), len(members)) for members in parts.values()]
        held = [r.slot for r in group.members.values() if r.slot >= 0 and r.podset in parts]
        for level, domain in shared_domains(tree, first.ask, wanted):
            nodes = level.nodes(domain)
            if all(nodes[slot] for slot in held):
                yield nodes if room.fence is None else nodes & room.fence


def _units(records: Sequence[PodRecord]) -> tuple[list[PodRecord], list[Parts]]:
    """Those of no set, and the sets: those of one group together, the ones with most pods first."""
    found = podsets(records)
    rest = found.pop(None, [])
    counts = {podset: len(members) for podset, members in found.items() if podset is not None}
    return rest, [{podset: found[podset] for podset in unit} for unit in units(counts)]


def _beside(tree: LevelTree, podset: PodSet, placed: list[PodRecord], members: list[PodRecord]) -> Iterator[Mask]:
    """The domains of those already placed, the narrowest first that the set asks for; of a slice that of its other pods."""
    ask = podset.ask
    if ask.slice_level and (place := tree.index(ask.slice_level)) >= 0:
        number = {rank_of(r)[0][-1] // ask.slice_size for r in members}
        mates = [r.slot for r in placed if rank_of(r)[0][-1] // ask.slice_size in number]
        domains = {int(tree.levels[place].of_node[slot]) for slot in mates}
        if len(domains) == 1:
            yield tree.levels[place].nodes(domains.pop())
            return
    for place in range(tree.index(ask.level) if ask.level else -1, -1, -1):
        domains = {int(tree.levels[place].of_node[record.slot]) for record in placed}
        if len(domains) == 1 and -1 not in domains:
            yield tree.levels[place].nodes(domains.pop())
        if ask.nearness is Nearness.REQUIRED:
            return
