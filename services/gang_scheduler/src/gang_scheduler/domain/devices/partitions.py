"""Sets of cards that belong together by a table of the node: Koordinator's GPU partitions.

The table lists for each number of cards the sets that may be given, each with a score and a bandwidth. A node that honours
it gives whole cards as such sets only, and so does every node to a pod that asks for a partition; else sets of the table
come first. Of the sets that are free, those with the highest score count; of these the one is taken that leaves the most
sets of the largest number of cards whole, then of the next, and so on down to its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from gang_scheduler.domain.devices.card_wishes import PartitionWish
from kube.json_text import read_json
from resources import QuantityError, parse_quantity

TABLE, POLICY = "scheduling.koordinator.sh/gpu-partitions", "node.koordinator.sh/gpu-partition-policy"
MODEL = "node.koordinator.sh/gpu-model"
HONOR = "Honor"

_ON_ONE_SWITCH = ("H100", "H800", "H20")
"""Eight cards on NVSwitches, of which halves, quarters and single ones are partitions (NVIDIA's Fabric Manager)."""


class Partition(NamedTuple):
    """Cards by their indexes."""

    cards: frozenset[int]
    score: int
    bandwidth: int


@dataclass(frozen=True, slots=True)
class Partitions:
    """``sets`` are all that there are, the largest first; ``honoured`` is whether nothing else may be given."""

    sets: tuple[Partition, ...] = ()
    honoured: bool = False

    def demanded(self, wish: PartitionWish | None) -> bool:
        """Whether a pod gets a partition or nothing."""
        return self.honoured or wish is not None

    def choose(self, free: frozenset[int], count: int, wish: PartitionWish | None) -> tuple[int, ...] | None:
        """``count`` of the ``free`` cards; None where no partition of so many is free."""
        listed = [one for one in self.sets if len(one.cards) == count]
        fitting = [one for one in listed if one.cards <= free and (not wish or one.bandwidth >= wish.bandwidth)]
        best = max((one.score for one in (listed if wish and wish.restricted else fitting)), default=0)
        fitting = [one for one in fitting if one.score == best]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda one: (self._harm(one, free), sorted(one.cards)))
        return tuple(sorted(chosen.cards))

    def _harm(self, chosen: Partition, free: frozenset[int]) -> list[int]:
        """Of how many of the free sets of each size some card is gone, weighed by their scores, the largest size first."""
        lost: dict[int, int] = {}
        for one in self.sets:
            if len(one.cards) >= len(chosen.cards):
                gone = one.cards <= free and not one.cards.isdisjoint(chosen.cards)
                lost[len(one.cards)] = lost.get(len(one.cards), 0) + gone * max(1, one.score)
        return list(lost.values())


NO_PARTITIONS = Partitions()


@lru_cache(maxsize=1024)
def partitions_of(table: str, model: str, policy: str) -> Partitions:
    """The partitions by a ``table`` in JSON, else by the ``model`` of the cards."""
    try:
        found = [one for listed in read_json(table or "{}").values() for one in _listed(listed)]
    except (AttributeError, KeyError, QuantityError, TypeError, ValueError):
        found = []
    if not found and model in _ON_ONE_SWITCH:
        found = [
            Partition(frozenset(range(first, first + size)), 1, 0)
            for size in (8, 4, 2, 1)
            for first in range(0, 8, size)
        ]
    found.sort(key=lambda one: (-len(one.cards), sorted(one.cards)))
    return Partitions(tuple(found), policy == HONOR)


def _listed(sets: list[Any]) -> Iterator[Partition]:
    for one in sets:
        # Koordinator's documents put a partition under the name of its link, its code does not.
        for said in [one] if "minors" in one else one.values():
            yield _partition(said)


def _partition(said: Mapping[str, Any]) -> Partition:
    cards = frozenset(int(minor) for minor in said["minors"])
    return Partition(cards, int(said.get("allocationScore") or 0), parse_quantity(said.get("ringBusBandwidth") or 0))
