"""How many pods that ask for MIG instances the cards of each node have room for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Mask, Slots
from gang_scheduler.domain.devices.card_room import MOST_COPIES
from gang_scheduler.domain.devices.mig_cards import MigCard, SliceNeed
from gang_scheduler.domain.devices.mig_room import MigRoom
from gang_scheduler.domain.devices.node_devices import NodeDevices

Held = Mapping[int, NodeDevices]
"""Nodes of which somebody has, or had, devices, by slot; empty where nodes are looked at as if nothing were used."""


@dataclass(slots=True)
class SplitNodes:
    """The nodes that have cards in MIG mode. Of others only the amounts of their instances are known."""

    size: int
    cards: dict[int, tuple[MigCard, ...]] = field(default_factory=dict)
    """By slot."""

    def put(self, slot: int, cards: tuple[MigCard, ...]) -> None:
        """A node has these cards now."""
        self.cards.pop(slot, None)
        if cards:
            self.cards[slot] = cards

    def copies(self, needs: Sequence[SliceNeed], slots: Slots, held: Held) -> Ints:
        """How many pods of ``needs`` each of ``slots`` has instances for."""
        numbers = np.arange(self.size)[slots]
        found = np.full(numbers.shape, MOST_COPIES, np.int64)
        for place, slot in self._at(numbers):
            node = held.get(slot)
            found[place] = node.room.mig.count(needs) if node else _when_empty(self.cards[slot], tuple(needs))
        return found

    def spared(self, needs: Sequence[SliceNeed], slots: Slots, held: Held) -> Mask:
        """Where they fit on cards of which others have instances, so that whole ones stay whole."""
        numbers = np.arange(self.size)[slots]
        found = np.zeros(numbers.shape, np.bool_)
        for place, slot in self._at(numbers):
            room = held[slot].room.mig if slot in held else None
            found[place] = room is not None and all(room.free(need.profile, split=True) >= need.count for need in needs)
        return found

    def filters(self, needs: Sequence[SliceNeed], held: Held) -> Iterator[tuple[str, str, Mask]]:
        """What keeps a pod out: the resource, the words for such nodes, and those that pass."""
        for need in needs:
            words = f"have no place on a card for the MIG profile {need.profile} (needs {need.count})"
            yield need.resource, words, self.copies([need], ALL, held) > 0
        if len(needs) > 1:
            names = " and ".join(f"{need.count} {need.profile}" for need in needs)
            words = f"have no place on their cards for the MIG profiles {names} together"
            yield needs[0].resource, words, self.copies(needs, ALL, held) > 0

    def _at(self, numbers: Ints) -> Iterator[tuple[int, int]]:
        if self.cards:
            yield from ((place, slot) for place, slot in enumerate(numbers.tolist()) if slot in self.cards)


@lru_cache(maxsize=4096)
def _when_empty(cards: tuple[MigCard, ...], needs: tuple[SliceNeed, ...]) -> int:
    return MigRoom(cards).count(needs)
