"""What is free of the devices of one node, and what of it a pod would get.

A pod that has to stay within NUMA nodes gets the smallest set of them where all that it asks for overlaps: of single ones
the fullest, unless the node says otherwise; of larger sets the emptiest. Others get cards and CPUs wherever they are, from
one NUMA node if one has enough.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gang_scheduler.domain.devices.allotments import Allotment, CellShare
from gang_scheduler.domain.devices.card_room import MOST_COPIES, CardRoom
from gang_scheduler.domain.devices.cpu_binding import Exclusive
from gang_scheduler.domain.devices.cpu_sets import CpuPool
from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed, NumaPolicy
from gang_scheduler.domain.devices.mig_cards import MigCard
from gang_scheduler.domain.devices.mig_room import MigRoom
from gang_scheduler.domain.devices.nics import WHOLE, Joint, Nic, NicNeed, pick, switch_sets
from gang_scheduler.domain.devices.numa import WHOLE_CPU, Allocation, NumaLayout
from gang_scheduler.domain.devices.numa_hints import Asked, Places, overlaps

_K = TypeVar("_K")

TRIED = 256
"""So many copies at most are counted by trying; no node takes more pods."""


@dataclass(slots=True)
class NodeRoom(CardRoom):
    """Free amounts: of the cards; of each NUMA node, cpu in milli-cores and memory in bytes."""

    layout: NumaLayout
    nics: tuple[Nic, ...] = ()
    split: tuple[MigCard, ...] = ()
    mig: MigRoom = field(init=False)
    nic_free: dict[int, int] = field(init=False)
    """Percent of each RDMA device."""

    cell_cpu: list[int] = field(init=False)
    cell_memory: list[int] = field(init=False)
    cells_moved: bool = field(default=True, compare=False)
    """Whether amounts of NUMA nodes changed since somebody took them over."""

    owned: dict[int, int] = field(default_factory=dict)
    """The CPUs that belong to one pod alone, each with the number of pods that say so."""

    guarded: dict[tuple[Exclusive, int], int] = field(default_factory=dict)
    """How many CPUs of a core, or of a NUMA node by its place, belong to pods that would rather not share it."""

    alone: dict[tuple[int, bool], int] = field(default_factory=dict)
    """By place of a NUMA node: how many pods are on it alone (True), or on others too (False)."""

    _cell_at: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        CardRoom.__post_init__(self)
        self.cell_cpu = [self.layout.cpu_milli * len(cell.cpus) for cell in self.layout.cells]
        self.cell_memory = [cell.memory for cell in self.layout.cells]
        self.nic_free = {nic.index: WHOLE for nic in self.nics}
        self.mig = MigRoom(self.split)
        self._cell_at = {cell.number: at for at, cell in enumerate(self.layout.cells)}

    def policy_for(self, need: DeviceNeed) -> NumaPolicy:
        """The policy that holds for a pod here: the stricter of its own and the node's."""
        return max(self.layout.policy, need.policy) if self.layout.named else NumaPolicy.NONE

    def choose(self, need: DeviceNeed, *, forced: bool = False) -> Allotment | None:
        """What a pod would get; None when there is not enough. ``forced``: as much of it as there is, come what may."""
        if need.only_cards and not self.layout.strict:
            # As _anywhere says too, for the many pods that ask for nothing else.
            cards = self.choose_cards(need.cards, range(len(self.cards)), forced)
            return None if cards is None or need.cards is None else Allotment(need.cards.resource, cards)
        if need.nics is not None and (self.nics or need.nics.joint is Joint.SAME_PCIE):
            return self._jointly(need, need.nics, forced)
        return self._choose(need, forced)

    def _choose(self, need: DeviceNeed, forced: bool) -> Allotment | None:
        """The same without RDMA devices."""
        policy = self.policy_for(need)
        if policy < NumaPolicy.RESTRICTED:
            return self._anywhere(need, forced)
        for places in self._aligned(need, policy):
            allotment = self._within(need, places)
            if allotment is not None:
                return allotment
        return self._within(need, frozenset(range(len(self.cell_cpu))), forced=True) if forced else None

    def _jointly(self, need: DeviceNeed, nics: NicNeed, forced: bool) -> Allotment | None:
        """Cards and RDMA devices behind the same switches; else, where that is not demanded, wherever they are."""
        if need.cards is not None and nics.joint:
            cards: dict[str, int] = {}
            for at, card in enumerate(self.cards):
                if card.pcie:
                    cards[card.pcie] = cards.get(card.pcie, 0) + self.copies_on(at, need.cards)
            for switches in switch_sets(cards, nics.count):
                chosen = pick([nic for nic in self.nics if nic.pcie in switches], self.nic_free, nics, switches)
                found = self._behind(switches, need.cards)._choose(need, False) if chosen else None
                if (
                    found is not None
                    and chosen
                    and {self.cards[self._card_at[one]].pcie for one in found.cards} == switches
                ):
                    return found._replace(nics=chosen)
            if nics.joint is Joint.SAME_PCIE and not forced:
                return None
        found = self._choose(need, forced)
        if found is None:
            return None
        near = {self.cards[self._card_at[one]].cell for one in found.cards}
        chosen = pick([nic for nic in self.nics if nic.cell in near], self.nic_free, nics, frozenset())
        chosen = chosen or pick(self.nics, self.nic_free, nics, frozenset())
        return found._replace(nics=chosen or ()) if chosen or forced else None

    def _behind(self, switches: frozenset[str], need: CardNeed) -> "NodeRoom":
        """The node as if the cards behind other switches were taken, and of several so many that each gives some."""
        room = self._copied()
        fitting = {one: [at for at, card in enumerate(self.cards) if card.pcie == one] for one in sorted(switches)}
        fitting = {one: [at for at in cards if self.copies_on(at, need)] for one, cards in fitting.items()}
        left = need.count - len(switches)
        kept: set[int] = set()
        for cards in sorted(fitting.values(), key=lambda cards: (-len(cards), cards)):
            more = len(cards) - 1 if len(switches) == 1 else min(left, len(cards) - 1)
            kept.update(cards[: more + 1])
            left -= more
        for at in range(len(self.cards)):
            if at not in kept:
                room.core[at] = room.memory[at] = room.slots[at] = 0
        return room

    def count(self, need: DeviceNeed) -> int:
        """How many pods would get something, one after the other."""
        room, done = self._copied(), 0
        while done < TRIED and (allotment := room.choose(need)) is not None:
            if not (allotment.cards or allotment.cpus or allotment.shares or allotment.nics or allotment.slices):
                return MOST_COPIES
            room.charge(need, allotment, -1)
            done += 1
        return done

    def _copied(self) -> "NodeRoom":
        room = copy(self)
        room.core, room.memory, room.slots = list(self.core), list(self.memory), list(self.slots)
        room.moved = set(self.moved)
        room.cell_cpu, room.cell_memory = list(self.cell_cpu), list(self.cell_memory)
        room.nic_free, room.mig = dict(self.nic_free), self.mig.copied()
        room.owned, room.guarded, room.alone = dict(self.owned), dict(self.guarded), dict(self.alone)
        return room

    def charge(self, need: DeviceNeed, allotment: Allotment, sign: int) -> None:
        """Take away what a pod has (``sign`` -1), or give it back (1)."""
        if need.cards is not None:
            self.move_cards(need.cards, allotment.cards, sign)
            if need.only_cards and not (allotment.shares or allotment.cpus):
                return
        if need.slices:
            self.mig.move(allotment.slices, sign)
        for nic in allotment.nics if need.nics is not None else ():
            if nic in self.nic_free and need.nics is not None:
                self.nic_free[nic] += sign * need.nics.share
        self.cells_moved = self.cells_moved or bool(allotment.shares or allotment.cpus)
        for share in allotment.shares:
            at = self._cell_at.get(share.cell)
            if at is not None:
                self.cell_cpu[at] += sign * self._amplified(need, share.cpu)
                self.cell_memory[at] += sign * share.memory
                _tally(self.alone, (at, len(allotment.shares) == 1), -sign)
        for cpu in allotment.cpus:
            at = self._cell_of(cpu)
            if at is not None and not allotment.shares:
                self.cell_cpu[at] += sign * self.layout.cpu_milli
            _tally(self.owned, cpu, -sign)
            if need.binding.exclusive is Exclusive.CORE:
                _tally(self.guarded, (Exclusive.CORE, self.layout.core(cpu)), -sign)
            elif need.binding.exclusive is Exclusive.CELL and at is not None:
                _tally(self.guarded, (Exclusive.CELL, at), -sign)

    def _amplified(self, need: DeviceNeed, cpu: int) -> int:
        """CPUs of a pod's own count as what they are; on an amplified node that is more than was asked for."""
        return cpu * self.layout.cpu_milli // WHOLE_CPU if need.cpus else cpu

    def _cell_of(self, cpu: int) -> int | None:
        return next((at for at, cell in enumerate(self.layout.cells) if cpu in cell.cpus), None)

    def _anywhere(self, need: DeviceNeed, forced: bool) -> Allotment | None:
        near = self._common_cell(need) if need.cards and need.cpus and len(self.cell_cpu) > 1 else None
        among = range(len(self.cards)) if near is None else self._near([near])
        cards = self.choose_cards(need.cards, among, forced)
        if near is not None and need.cards and cards and self.wastes(need.cards, cards):
            # To be near its cards is a wish; another pod that would find no room any more is a loss.
            near, cards = None, self.choose_cards(need.cards, range(len(self.cards)), forced)
        cpus = self._cpus(need, None if near is None else [near], forced)
        slices = self.mig.choose(need.slices, forced=forced)
        if cards is None or cpus is None or slices is None:
            return None
        return Allotment(need.cards.resource if need.cards else "", cards, cpus, slices=slices)

    def _common_cell(self, need: DeviceNeed) -> int | None:
        """The fullest NUMA node that has both the cards and the CPUs."""
        both = [
            at
            for at in range(len(self.cell_cpu))
            if self.choose_cards(need.cards, self._near([at]), False) and self._cpus(need, [at], False)
        ]
        return min(both, key=lambda at: (self.cell_cpu[at], at)) if both else None

    def _aligned(self, need: DeviceNeed, policy: NumaPolicy) -> list[Places]:
        """Where the pod may be, the best first."""
        asked = list(self._asked(need))
        if not asked:
            return [frozenset()]
        found = [places for places in overlaps(asked, policy) if not need.apart or self._unmixed(places)]
        return sorted(found, key=self._rank) if len(found) > 1 else found

    def _rank(self, places: Places) -> tuple[int, int, list[int]]:
        free = sum(self.cell_cpu[at] for at in places)
        fullest = len(places) == 1 and self.layout.allocation is Allocation.MOST
        return len(places), free if fullest else -free, sorted(places)

    def _unmixed(self, places: Places) -> bool:
        return not any(self.alone.get((at, len(places) > 1)) for at in places)

    def _asked(self, need: DeviceNeed) -> Iterator[Asked]:
        unit = self.layout.cpu_milli
        if need.cpu:
            have = [unit * len(cell.cpus) for cell in self.layout.cells]
            free = [cpu // unit * unit for cpu in self.cell_cpu] if need.cpus else self.cell_cpu
            yield Asked(self._amplified(need, need.cpu), have, free)
        if need.memory:
            yield Asked(need.memory, [cell.memory for cell in self.layout.cells], self.cell_memory)
        cards = need.cards
        if cards is not None and self._placed():
            near = [self._near([at]) for at in range(len(self.cell_cpu))]
            fit = [[self.copies_on(at, cards) > 0 for at in group] for group in near]
            have = [sum(self.holds_when_empty(at, cards) for at in group) for group in near]
            yield Asked(cards.count, have, [sum(group) for group in fit])
        if self.split and all(card.cell in self._cell_at for card in self.split):
            homes = [[at for at, card in enumerate(self.split) if card.cell == cell] for cell in self._cell_at]
            for one in need.slices:
                have = [MigRoom(self.split).free(one.profile, home) for home in homes]
                yield Asked(one.count, have, [self.mig.free(one.profile, home) for home in homes])

    def _within(self, need: DeviceNeed, places: Places, forced: bool = False) -> Allotment | None:
        """What a pod gets that is to be at ``places``; what they have too little of comes from the emptiest others."""
        order = sorted(range(len(self.cell_cpu)), key=lambda at: (at not in places, -self.cell_cpu[at], at))
        inside = order[: len(places)]
        cards = self.choose_cards(need.cards, self._near(inside), False)
        if cards is None:
            cards = self.choose_cards(need.cards, range(len(self.cards)), forced)
        cpus = self._cpus(need, inside, False)
        if cpus is None and (forced or sum(self.cell_cpu[at] // self.layout.cpu_milli for at in inside) < need.cpus):
            cpus = self._cpus(need, None, forced)
        slices = self.mig.choose(need.slices, None if forced else {self.layout.cells[at].number for at in inside})
        if forced and slices is None:
            slices = self.mig.choose(need.slices, forced=True)
        if cards is None or cpus is None or slices is None:
            return None
        shares = self._shares(need, order, cpus, forced)
        resource = need.cards.resource if need.cards else ""
        return None if shares is None else Allotment(resource, cards, cpus, shares, slices=slices)

    def _shares(
        self, need: DeviceNeed, order: Sequence[int], cpus: Sequence[int], forced: bool
    ) -> tuple[CellShare, ...] | None:
        """The amounts of each NUMA node; None when there is not enough. CPUs of the pod's own say where its cpu is."""
        cpu, memory = 0 if need.cpus else need.cpu, need.memory
        cells = [self._cell_of(number) for number in cpus]
        shares: list[CellShare] = []
        for at in order:
            own = WHOLE_CPU * cells.count(at) if need.cpus else min(cpu, max(0, self.cell_cpu[at]))
            part = min(memory, max(0, self.cell_memory[at]))
            if own or part:
                shares.append(CellShare(self.layout.cells[at].number, own, part))
            cpu, memory = cpu - (0 if need.cpus else own), memory - part
        return None if (cpu or memory) and not forced else tuple(sorted(shares))

    def _cpus(self, need: DeviceNeed, among: Sequence[int] | None, forced: bool) -> tuple[int, ...] | None:
        """CPUs for one pod alone."""
        if not need.cpus:
            return ()
        kind = need.binding.exclusive
        guarded = {number for level, number in self.guarded if level is kind}
        room = [max(0, milli) // self.layout.cpu_milli for milli in self.cell_cpu]
        core, cell = (guarded if kind is level else () for level in (Exclusive.CORE, Exclusive.CELL))
        pool = CpuPool(self.layout, self.owned, room, core, cell)
        chosen = pool.choose(need.cpus, need.binding, among)
        if chosen is None and forced:
            return replace(pool, layout=replace(self.layout, binding=None)).choose(min(need.cpus, pool.left()))
        return chosen

    def _placed(self) -> bool:
        """Whether it is known of every card to which NUMA node it belongs."""
        return all(card.cell in self._cell_at for card in self.cards)

    def _near(self, places: Sequence[int]) -> list[int]:
        """The cards of NUMA nodes; all of them where it is not known of every card."""
        if not self._placed():
            return list(range(len(self.cards)))
        return [number for number, card in enumerate(self.cards) if self._cell_at[card.cell] in places]


def _tally(counts: dict[_K, int], key: _K, more: int) -> None:
    """Count up or down; what comes to nothing is left out."""
    number = counts.get(key, 0) + more
    if number:
        counts[key] = number
    else:
        counts.pop(key, None)
