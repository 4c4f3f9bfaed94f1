"""What is free of the MIG cards of one node, and where the instances of a pod would be.

An instance goes where it keeps the most places for the largest profile; of such, for the next largest, and so on; of
equal ones to the lowest card and slice. So the first small ones share a card, at its end.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.devices.cards import NO_CELL
from gang_scheduler.domain.devices.mig_cards import MigCard, Place, SliceNeed, places, runs


class Slice(NamedTuple):
    """An instance on a card. ``start`` is its first memory slice, or its number where the card is split for good.

    ``name`` is what the driver calls it, "" where it is yet to be made.
    """

    card: int
    start: int
    profile: str
    name: str = ""


@dataclass(slots=True)
class MigRoom:
    """``taken`` has for each card the bits of what is covered."""

    cards: tuple[MigCard, ...] = ()
    taken: list[int] = field(init=False)
    _covers: dict[tuple[int, int], int] = field(default_factory=dict)
    """By place of the card and bit: how many pods say that they have it."""

    def __post_init__(self) -> None:
        self.taken = [0] * len(self.cards)

    def copied(self) -> "MigRoom":
        """The same, to try something out."""
        room = MigRoom(self.cards)
        room.taken, room._covers = list(self.taken), dict(self._covers)
        return room

    def free(self, profile: str, among: Iterable[int] | None = None, *, split: bool = False) -> int:
        """How many instances of ``profile`` fit; on the cards at ``among``; only on such as have some (``split``)."""
        each = range(len(self.cards)) if among is None else among
        return sum(len(self._open(at, profile)) for at in each if self.taken[at] or not split)

    def count(self, needs: Sequence[SliceNeed]) -> int:
        """How many pods of ``needs`` fit, one after the other."""
        if len(needs) == 1:
            return self.free(needs[0].profile) // needs[0].count
        room, done = self.copied(), 0
        while (found := room.choose(needs)) is not None:
            room.move(found, -1)
            done += 1
        return done

    def choose(
        self, needs: Sequence[SliceNeed], cells: Container[int] | None = None, *, forced: bool = False
    ) -> tuple[Slice, ...] | None:
        """The instances of a pod, on cards of NUMA nodes ``cells``; None when they are too few, unless ``forced``."""
        if not self.cards or not needs:
            return ()
        room, chosen = self.copied(), list[Slice]()
        for profile in [need.profile for need in needs for _ in range(need.count)]:
            found = room._next(profile, cells)
            if found is None:
                if forced:
                    continue
                return None
            room.move([found], -1)
            chosen.append(found)
        return tuple(sorted(chosen))

    def move(self, slices: Iterable[Slice], sign: int) -> None:
        """Take away what a pod has (``sign`` -1), or give it back (1)."""
        for one in slices:
            for at, card in enumerate(self.cards):
                place = next((p for p in places(card, one.profile) if p.start == one.start), None)
                if card.index == one.card and place is not None:
                    self._cover(at, place.bits, -sign)

    def overlaps(self, slices: Iterable[Slice]) -> bool:
        """Whether any of the instances is where another pod has one too."""
        numbers = {card.index: at for at, card in enumerate(self.cards)}
        return any(
            self._covers.get((numbers[one.card], bit), 0) > 1
            for one in slices
            if one.card in numbers
            for place in places(self.cards[numbers[one.card]], one.profile)
            if place.start == one.start
            for bit in _bits(place.bits)
        )

    def _next(self, profile: str, cells: Container[int] | None) -> Slice | None:
        """Where one more instance does the least harm."""
        ways = [
            (self._harm(at, place), at, place.start)
            for at, card in enumerate(self.cards)
            if cells is None or card.cell == NO_CELL or card.cell in cells
            for place in self._open(at, profile)
        ]
        if not ways:
            return None
        _, at, start = min(ways)
        card = self.cards[at]
        if card.instances is None:
            return Slice(card.index, start, profile)
        return Slice(card.index, start, profile, card.instances[start].uuid or f"{card.index}:{start}")

    def _harm(self, at: int, place: Place) -> tuple[int, ...]:
        """For each form of instance, from the largest, how many places are gone with ``place``.

        A card that is split for good loses nothing else; it counts whether others have some of it already.
        """
        card, taken = self.cards[at], self.taken[at]
        if not card.forms:
            return (0 if taken else 1,)
        return tuple(
            sum(1 for run in runs(card, form) if not run.bits & taken and run.bits & place.bits) for form in card.forms
        )

    def _open(self, at: int, profile: str) -> list[Place]:
        taken = self.taken[at]
        return [place for place in places(self.cards[at], profile) if not place.bits & taken]

    def _cover(self, at: int, bits: int, more: int) -> None:
        for bit in _bits(bits):
            number = self._covers.get((at, bit), 0) + more
            if number > 0:
                self._covers[at, bit] = number
                self.taken[at] |= 1 << bit
            else:
                self._covers.pop((at, bit), None)
                self.taken[at] &= ~(1 << bit)


def _bits(bits: int) -> list[int]:
    return [bit for bit in range(bits.bit_length()) if bits >> bit & 1]
