"""What is free of the devices of one node, and what of it a pod would get.

A pod that has to stay within NUMA nodes gets the fullest one that holds it whole; where it may be on several it gets as
few as it needs, the emptiest ones. Others get cards and CPUs wherever they are, those of one NUMA node first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gang_scheduler.domain.allotments import Allotment, CellShare
from gang_scheduler.domain.cards import Card, choose_whole
from gang_scheduler.domain.device_needs import CardNeed, DeviceNeed, NumaPolicy
from gang_scheduler.domain.numa import NumaLayout, choose_cpus

MOST_COPIES = 1 << 20
"""Stands for any number of copies, where nothing limits them."""


@dataclass(slots=True)
class NodeRoom:
    """Free amounts: of each card, core in percent, memory in bytes and virtual GPUs; of each NUMA node, cpu and memory."""

    cards: tuple[Card, ...]
    layout: NumaLayout
    core: list[int] = field(init=False)
    memory: list[int] = field(init=False)
    slots: list[int] = field(init=False)
    cell_cpu: list[int] = field(init=False)
    cell_memory: list[int] = field(init=False)
    owned: dict[int, int] = field(default_factory=dict)
    """The CPUs that belong to one pod alone, each with the number of pods that say so."""

    _alike: bool = field(init=False)
    """Whether no card is nearer to another than to a third: then the lowest are the best."""

    _card_at: dict[int, int] = field(init=False)
    _cell_at: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.core = [100] * len(self.cards)
        self.memory = [card.memory for card in self.cards]
        self.slots = [card.slots for card in self.cards]
        self.cell_cpu = [1000 * len(cell.cpus) for cell in self.layout.cells]
        self.cell_memory = [cell.memory for cell in self.layout.cells]
        self._alike = len({card.cell for card in self.cards}) <= 1 and all(c.group == c.index for c in self.cards)
        self._card_at = {card.index: at for at, card in enumerate(self.cards)}
        self._cell_at = {cell.number: at for at, cell in enumerate(self.layout.cells)}

    def policy_for(self, need: DeviceNeed) -> NumaPolicy:
        """The policy that holds for a pod here: the stricter of its own and the node's."""
        return max(self.layout.policy, need.policy) if self.layout.named else NumaPolicy.NONE

    def choose(self, need: DeviceNeed, *, forced: bool = False) -> Allotment | None:
        """What a pod would get; None when there is not enough. ``forced``: as much of it as there is, come what may."""
        policy = self.policy_for(need)
        if policy < NumaPolicy.RESTRICTED:
            return self._anywhere(need, forced)
        cell = self._best_cell(need)
        if cell is not None:
            return self._inside(need, cell)
        width = len(self.cell_cpu) if forced else self._width(need)
        if forced or (policy is NumaPolicy.RESTRICTED and width > 1):
            return self._across(need, width, forced)
        return None

    def copies_on(self, at: int, need: CardNeed) -> int:
        """How many pods one card could hold a card's part of."""
        limits = [MOST_COPIES]
        if need.core:
            limits.append(self.core[at] // need.core)
        memory = memory_of(self.cards[at], need)
        if memory:
            limits.append(self.memory[at] // memory)
        if need.virtual:
            limits.append(self.slots[at])
            if not need.core and not self.core[at]:
                return 0
        return max(0, min(limits))

    def charge(self, need: DeviceNeed, allotment: Allotment, sign: int) -> None:
        """Take away what a pod has (``sign`` -1), or give it back (1)."""
        cards = need.cards
        for index in allotment.cards if cards else ():
            at = self._card_at.get(index)
            if at is not None and cards is not None:
                self.core[at] += sign * cards.core
                self.memory[at] += sign * memory_of(self.cards[at], cards)
                self.slots[at] += sign if cards.virtual else 0
        for share in allotment.shares:
            at = self._cell_at.get(share.cell)
            if at is not None:
                self.cell_cpu[at] += sign * share.cpu
                self.cell_memory[at] += sign * share.memory
        for cpu in allotment.cpus:
            at = next((at for at, cell in enumerate(self.layout.cells) if cpu in cell.cpus), None)
            if at is not None and not allotment.shares:
                self.cell_cpu[at] += sign * 1000
            self.owned[cpu] = self.owned.get(cpu, 0) - sign
            if not self.owned[cpu]:
                del self.owned[cpu]

    def _anywhere(self, need: DeviceNeed, forced: bool) -> Allotment | None:
        cards = self._cards(need, range(len(self.cards)), forced)
        cpus = self._cpus(need.cpus, forced)
        if cards is None or cpus is None:
            return None
        return Allotment(need.cards.resource if need.cards else "", cards, cpus)

    def _best_cell(self, need: DeviceNeed) -> int | None:
        """The fullest NUMA node that holds the pod whole."""
        whole = [at for at in range(len(self.cell_cpu)) if self._holds(at, need)]
        return min(whole, key=lambda at: (self.cell_cpu[at], at)) if whole else None

    def _holds(self, at: int, need: DeviceNeed) -> bool:
        if self.cell_cpu[at] < need.cpu or self.cell_memory[at] < need.memory:
            return False
        return self._cards(need, self._near(at), False) is not None

    def _inside(self, need: DeviceNeed, at: int) -> Allotment:
        cell = self.layout.cells[at]
        cards = self._cards(need, self._near(at), False) or ()
        free = [cpu for cpu in cell.cpus if cpu not in self.owned]
        cpus = choose_cpus(free, need.cpus, self.layout, self.owned)
        shares = (CellShare(cell.number, need.cpu, need.memory),) if need.cpu or need.memory else ()
        return Allotment(need.cards.resource if need.cards else "", cards, cpus, shares)

    def _width(self, need: DeviceNeed) -> int:
        """How many NUMA nodes the pod would need if they were empty."""
        cpu = sorted((1000 * len(cell.cpus) for cell in self.layout.cells), reverse=True)
        memory = sorted((cell.memory for cell in self.layout.cells), reverse=True)
        widths = range(1, len(cpu) + 1)
        enough = (w for w in widths if sum(cpu[:w]) >= need.cpu and sum(memory[:w]) >= need.memory)
        return next(enough, len(cpu))

    def _across(self, need: DeviceNeed, width: int, forced: bool) -> Allotment | None:
        """Parts of ``width`` NUMA nodes, the emptiest ones."""
        cpu, memory = need.cpu, need.memory
        shares: list[CellShare] = []
        for at in sorted(range(len(self.cell_cpu)), key=lambda at: (-self.cell_cpu[at], at))[:width]:
            free = max(0, self.cell_cpu[at])
            part = min(cpu, free // 1000 * 1000 if need.cpus else free), min(memory, max(0, self.cell_memory[at]))
            if any(part):
                shares.append(CellShare(self.layout.cells[at].number, *part))
                cpu, memory = cpu - part[0], memory - part[1]
        cards = self._cards(need, range(len(self.cards)), forced)
        if (cpu or memory or cards is None) and not forced:
            return None
        cpus: list[int] = []
        for share in shares if need.cpus else ():
            free_cpus = [cpu for cpu in self.layout.cells[self._cell_at[share.cell]].cpus if cpu not in self.owned]
            cpus += choose_cpus(free_cpus, share.cpu // 1000, self.layout, self.owned)
        resource = need.cards.resource if need.cards else ""
        return Allotment(resource, cards or (), tuple(sorted(cpus)), tuple(sorted(shares)))

    def _cpus(self, count: int, forced: bool) -> tuple[int, ...] | None:
        """CPUs for one pod alone: all in one NUMA node if one has enough, the fullest such; else the fewest NUMA nodes."""
        if not count:
            return ()
        free = [max(0, milli) // 1000 for milli in self.cell_cpu]
        enough = [at for at, number in enumerate(free) if number >= count]
        if enough:
            order = [min(enough, key=lambda at: (free[at], at))]
        elif sum(free) >= count or forced:
            order = sorted(range(len(free)), key=lambda at: (-free[at], at))
        else:
            return None
        chosen: list[int] = []
        for at in order:
            part = [cpu for cpu in self.layout.cells[at].cpus if cpu not in self.owned]
            chosen += choose_cpus(part, min(free[at], count - len(chosen)), self.layout, self.owned)
        return tuple(sorted(chosen))

    def _near(self, at: int) -> list[int]:
        """The cards of a NUMA node; all of them where it is not known of every card."""
        cells = [self._cell_at.get(card.cell) for card in self.cards]
        return [number for number, cell in enumerate(cells) if cell == at or None in cells]

    def _cards(self, need: DeviceNeed, among: Iterable[int], forced: bool) -> tuple[int, ...] | None:
        """The indexes of the cards for a pod; None when they are too few."""
        cards = need.cards
        if cards is None:
            return ()
        if cards.whole and not forced:
            free = [self.cards[at] for at in among if self._untouched(at)]
            if len(free) < cards.count:
                return None
            return tuple(card.index for card in free[: cards.count]) if self._alike else choose_whole(free, cards.count)
        among = list(among)
        copies = {at: self.copies_on(at, cards) for at in among}
        fitting = [at for at in among if copies[at]]
        if len(fitting) < cards.count:
            if not forced:
                return None
            fitting += sorted((at for at in among if not copies[at]), key=lambda at: (-self.core[at], at))
            return tuple(sorted(self.cards[at].index for at in fitting[: cards.count]))
        chosen = sorted(fitting, key=self._fullness)[: cards.count]
        if cards.count > 1 and _rest(copies, chosen, cards.count) + 1 < most_copies(copies.values(), cards.count):
            # The fullest cards would leave room for fewer pods than the cards with most room do.
            chosen = sorted(fitting, key=lambda at: (-copies[at], *self._fullness(at)))[: cards.count]
        return tuple(sorted(self.cards[at].index for at in chosen))

    def _untouched(self, at: int) -> bool:
        return self.core[at] == 100 and self.memory[at] == self.cards[at].memory

    def _fullness(self, at: int) -> tuple[int, int, int]:
        return self.core[at], self.memory[at], at


def memory_of(card: Card, need: CardNeed) -> int:
    """How many bytes of the card one part takes."""
    return need.memory or -(-card.memory * need.ratio // 100)


def most_copies(copies: Iterable[int], count: int) -> int:
    """How many pods of ``count`` different cards each fit where each card holds so many parts."""
    each = list(copies)
    most = sum(each) // count
    while True:
        fewer = sum(min(number, most) for number in each) // count
        if fewer >= most:
            return most
        most = fewer


def _rest(copies: dict[int, int], chosen: list[int], count: int) -> int:
    """How many pods fit after one more has taken the ``chosen`` cards."""
    return most_copies([number - (at in chosen) for at, number in copies.items()], count)
