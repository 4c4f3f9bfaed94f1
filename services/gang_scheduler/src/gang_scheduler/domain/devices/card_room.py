"""What is free of the cards of one node, and which of them a pod would get.

Whole cards are chosen by where they are (see cards). Shares go to the fullest cards that still hold them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.devices.card_wishes import Scope
from gang_scheduler.domain.devices.cards import NO_CELL, Card, choose_whole
from gang_scheduler.domain.devices.device_needs import CardNeed
from gang_scheduler.domain.devices.partitions import NO_PARTITIONS, Partitions

MOST_COPIES = 1 << 20
"""Stands for any number of copies, where nothing limits them."""


@dataclass(slots=True)
class CardRoom:
    """Free amounts of each card: core in percent, memory in bytes, and virtual GPUs."""

    cards: tuple[Card, ...]
    core: list[int] = field(init=False)
    memory: list[int] = field(init=False)
    slots: list[int] = field(init=False)
    whole: int = field(init=False)
    """How many cards are free altogether."""

    moved: set[int] = field(init=False, compare=False)
    """The places of cards whose amounts changed since somebody took them over."""

    partitions: Partitions = field(default=NO_PARTITIONS, kw_only=True)
    _alike: bool = field(init=False)
    """Whether no card is nearer to another than to a third: then the lowest are the best."""

    _card_at: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.core = [100] * len(self.cards)
        self.memory = [card.memory for card in self.cards]
        self.slots = [card.slots for card in self.cards]
        self.whole, self.moved = len(self.cards), set(range(len(self.cards)))
        self._alike = len({card.cell for card in self.cards}) <= 1 and all(c.group == c.index for c in self.cards)
        self._card_at = {card.index: at for at, card in enumerate(self.cards)}

    def copies_on(self, at: int, need: CardNeed) -> int:
        """How many pods one card could hold a card's part of."""
        if need.wish is not None and not need.wish.allows(self.cards[at]):
            return 0
        limits = [MOST_COPIES]
        if need.core:
            limits.append(self.core[at] // need.core)
        memory = memory_of(self.cards[at], need)
        if memory:
            limits.append(self.memory[at] // memory)
        if need.virtual:
            limits.append(self.slots[at])
            if not need.core and self.core[at] <= 0:
                return 0
        return max(0, min(limits))

    def _holds(self, at: int, need: CardNeed) -> bool:
        """Whether one card could hold a pod's part: where copies_on is above zero."""
        if (need.core and self.core[at] < need.core) or self.memory[at] < memory_of(self.cards[at], need):
            return False
        if need.wish is not None and not need.wish.allows(self.cards[at]):
            return False
        return not need.virtual or (self.slots[at] > 0 and (need.core > 0 or self.core[at] > 0))

    def holds_when_empty(self, at: int, need: CardNeed) -> bool:
        """Whether the card could hold a pod's part if nobody had any of it."""
        card = self.cards[at]
        wanted = need.wish is None or need.wish.allows(card)
        return wanted and memory_of(card, need) <= card.memory and (not need.virtual or card.slots > 0)

    def move_cards(self, need: CardNeed, indexes: Iterable[int], sign: int) -> None:
        """Take away what a pod has of its cards (``sign`` -1), or give it back (1)."""
        for index in indexes:
            at = self._card_at.get(index)
            if at is None:
                continue
            card, core, memory = self.cards[at], self.core[at], self.memory[at]
            self.moved.add(at)
            self.whole -= core == 100 and memory == card.memory
            self.core[at] = core = core + sign * need.core
            self.memory[at] = memory = memory + sign * memory_of(card, need)
            self.whole += core == 100 and memory == card.memory
            if need.virtual:
                self.slots[at] += sign

    def choose_cards(self, need: CardNeed | None, among: Iterable[int], forced: bool) -> tuple[int, ...] | None:
        """The indexes of the cards for a pod; None when they are too few."""
        if need is None:
            return ()
        if need.wish is not None and need.wish.scope and not forced:
            return self._within_scope(need, list(among))
        return self._choose_cards(need, among, forced)

    def _choose_cards(self, need: CardNeed, among: Iterable[int], forced: bool) -> tuple[int, ...] | None:
        """The same without regard to what all of them have to be within."""
        if need.whole and not forced:
            cards, core, memory = self.cards, self.core, self.memory
            free = [cards[at] for at in among if core[at] == 100 and memory[at] == cards[at].memory]
            if need.wish is not None:
                free = [card for card in free if need.wish.allows(card)]
            if len(free) < need.count:
                return None
            if self.partitions.sets or self.partitions.demanded(need.partition):
                together = self.partitions.choose(frozenset(card.index for card in free), need.count, need.partition)
                if together is not None or self.partitions.demanded(need.partition):
                    return together
            return tuple(card.index for card in free[: need.count]) if self._alike else choose_whole(free, need.count)
        among = list(among)
        if need.count == 1 and not forced:
            fullest = self._fullest(need, among)
            return None if fullest is None else (self.cards[fullest].index,)
        copies = {at: self.copies_on(at, need) for at in among}
        fitting = [at for at in among if copies[at]]
        if len(fitting) < need.count:
            if not forced:
                return None
            fitting += sorted((at for at in among if not copies[at]), key=lambda at: (-self.core[at], at))
            return tuple(sorted(self.cards[at].index for at in fitting[: need.count]))
        chosen = sorted(fitting, key=self._fullness)[: need.count]
        if need.count > 1 and _rest(copies, chosen, need.count) + 1 < most_copies(copies.values(), need.count):
            # The fullest cards would leave room for fewer pods than the cards with most room do.
            chosen = sorted(fitting, key=lambda at: (-copies[at], *self._fullness(at)))[: need.count]
        return tuple(sorted(self.cards[at].index for at in chosen))

    def _within_scope(self, need: CardNeed, among: Sequence[int]) -> tuple[int, ...] | None:
        """Cards of one NUMA node or behind one PCIe switch, of the one with the fewest that fit."""
        switches = need.wish is not None and need.wish.scope is Scope.PCIE
        places: dict[str, list[int]] = {}
        for at in among:
            card = self.cards[at]
            if place := card.pcie if switches else "" if card.cell == NO_CELL else str(card.cell):
                places.setdefault(place, []).append(at)
        fitting = [(sum(self.copies_on(at, need) for at in near), near) for near in places.values()]
        for _, near in sorted(fitting):
            chosen = self._choose_cards(need, near, False)
            if chosen is not None:
                return chosen
        return None

    def wastes(self, need: CardNeed, chosen: Iterable[int]) -> bool:
        """Whether a pod with parts of the cards of indexes ``chosen`` leaves room for fewer pods than it has to."""
        if need.whole or need.count == 1:
            return False
        copies = {at: self.copies_on(at, need) for at in range(len(self.cards))}
        taken = [at for at, card in enumerate(self.cards) if card.index in set(chosen)]
        return _rest(copies, taken, need.count) + 1 < most_copies(copies.values(), need.count)

    def _fullest(self, need: CardNeed, among: Iterable[int]) -> int | None:
        """The place of the fullest card that can hold a pod's part."""
        best: tuple[int, int, int] | None = None
        for at in among:
            fullness = self._fullness(at)
            if (best is None or fullness < best) and self._holds(at, need):
                best = fullness
        return None if best is None else best[2]

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
