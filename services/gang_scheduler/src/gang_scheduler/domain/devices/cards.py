"""The cards of a node, and which of them a pod gets.

The plain rule for whole cards: they come from one group that NVLink connects if one has enough free, of such from the
one with the fewest free, so that large groups stay whole; then in the same way from one NUMA node; then the lowest
indexes. Shares go to the fullest cards that still hold them, so that whole cards stay whole.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kube import Manifest
from kube.card_names import (
    CARD_MEMORY,
    GPU,
    GPU_CORE,
    GPU_MEMORY,
    GPU_RATIO,
    GPU_SHARED,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    VGPU_PERCENT,
    WHOLE_CARDS,
)
from resources import Amounts, QuantityError, parse_quantity

UNKNOWN_MEMORY = 100 << 30
"""Stands for the memory of a card that nobody tells; only shares in percent are asked of such cards."""

VIRTUAL_PER_CARD = 10
"""Into how many virtual GPUs a card is split where nothing says it: the default of the device plugins."""

NO_CELL = -1


@dataclass(frozen=True, slots=True)
class Card:
    """One card. ``cell`` is its NUMA node (NO_CELL: not known), ``group`` the lowest index that NVLink connects it to."""

    index: int
    memory: int
    cell: int = NO_CELL
    group: int = 0
    slots: int = 0
    """How many virtual GPUs it can be at once."""

    pcie: str = ""
    """The PCIe switch that it is behind, "" where that is not known."""

    model: str = ""
    uuid: str = ""
    labels: tuple[tuple[str, str], ...] = ()


def implied(allocatable: Amounts) -> Amounts:
    """What a node of these amounts has of the other names of its cards; which cards they are decides in the end."""
    percent = max(allocatable.get(GPU_CORE, 0), allocatable.get(GPU_RATIO, 0), allocatable.get(GPU, 0))
    virtual = 100 * allocatable.get(VGPU_NUMBER, 0)
    shares = dict.fromkeys((GPU, GPU_SHARED, GPU_CORE, GPU_RATIO), percent) if percent else {}
    parts = dict.fromkeys((VGPU_CORES, VGPU_PERCENT), virtual) if virtual else {}
    return {name: amount for name, amount in {**shares, **parts}.items() if name not in allocatable}


def cards_of(inventory: Manifest, allocatable: Amounts) -> tuple[Card, ...]:
    """The healthy cards of a node by its ``inventory``; without one, cards 0 … as many as it has to give.

    An inventory that cannot be read is none.
    """
    try:
        return _cards(inventory, allocatable)
    except (AttributeError, TypeError, ValueError):
        return _cards({}, allocatable)


def _cards(inventory: Manifest, allocatable: Amounts) -> tuple[Card, ...]:
    listed = inventory.get("gpus")
    found = _listed(listed) if listed else {index: {} for index in range(_counted(allocatable))}
    if not found:
        return ()
    cells = {int(gpu): cell for cell, node in enumerate(inventory.get("numa") or ()) for gpu in node.get("gpus") or ()}
    groups = _groups(found, inventory.get("nvlink") or ())
    memory = _memory_each(allocatable, len(found))
    slots = -(-allocatable.get(VGPU_NUMBER, 0) // len(found))
    return tuple(
        Card(
            index,
            bytes_of(entry.get("memory")) or memory,
            cells.get(index, NO_CELL) if entry.get("numa") is None else int(entry["numa"]),
            groups[index],
            int(entry.get("slots") or slots),
            str(entry.get("pcie") or ""),
            str(entry.get("model") or ""),
            str(entry.get("uuid") or ""),
            tuple(sorted((entry.get("labels") or {}).items())),
        )
        for index, entry in sorted(found.items())
    )


def choose_whole(free: Sequence[Card], count: int) -> tuple[int, ...]:
    """The indexes of ``count`` of the ``free`` cards, ascending; there are as many."""
    pool = list(free)
    if count < len(pool):
        by_group = _narrow(pool, count, lambda card: card.group)
        pool = _narrow(by_group, count, lambda card: card.cell)
        if len(by_group) == len(free):
            pool = _fewest_parts(pool, lambda card: card.group)
    return tuple(sorted(card.index for card in pool[:count]))


def _narrow(pool: list[Card], count: int, part_of: Callable[[Card], int]) -> list[Card]:
    """The smallest part of the pool that has enough cards, of equal ones the first; all of it when none has."""
    large = [part for part in _parts(pool, part_of) if len(part) >= count]
    return min(large, key=lambda part: (len(part), part[0].index)) if large else pool


def _fewest_parts(pool: list[Card], part_of: Callable[[Card], int]) -> list[Card]:
    """The cards in the order in which they come from the fewest parts."""
    parts = sorted(_parts(pool, part_of), key=lambda part: (-len(part), part[0].index))
    return [card for part in parts for card in part]


def _parts(pool: Iterable[Card], part_of: Callable[[Card], int]) -> list[list[Card]]:
    parts: dict[int, list[Card]] = {}
    for card in pool:
        parts.setdefault(part_of(card), []).append(card)
    return list(parts.values())


def _listed(entries: list[Any]) -> dict[int, Manifest]:
    return {
        int(one.get("index", position)): one
        for position, one in enumerate(entries)
        if is_healthy(one) and not is_split(one)
    }


def is_healthy(entry: Manifest) -> bool:
    """Whether a card of an inventory is not said to be sick."""
    return entry.get("healthy", True) not in (False, "false")


def is_split(entry: Manifest) -> bool:
    """Whether a card of an inventory is in MIG mode: then it is none for who asks for cards, or for shares of some."""
    return entry.get("mig") not in (None, False)


def _counted(allocatable: Amounts) -> int:
    """How many cards the amounts stand for."""
    whole = max(allocatable.get(name, 0) for name in WHOLE_CARDS)
    percent = max(allocatable.get(GPU_CORE, 0), allocatable.get(GPU_RATIO, 0), allocatable.get(GPU, 0))
    return whole or percent // 100 or -(-allocatable.get(VGPU_NUMBER, 0) // VIRTUAL_PER_CARD)


def _memory_each(allocatable: Amounts, count: int) -> int:
    in_mib = allocatable.get(VGPU_MEMORY, 0) or allocatable.get(CARD_MEMORY, 0)
    total = allocatable.get(GPU_MEMORY, 0) or in_mib << 20
    return total // count or UNKNOWN_MEMORY


def _groups(cards: Iterable[int], links: Iterable[Sequence[int]]) -> dict[int, int]:
    """For each card the lowest of those that it is connected to, over any number of links."""
    group = {index: index for index in cards}
    for link in links:
        ends = {group[int(end)] for end in link if int(end) in group}
        if len(ends) > 1:
            group = {index: min(ends) if of in ends else of for index, of in group.items()}
    return group


def bytes_of(text: Any) -> int:
    """The amount that an inventory names; 0 where it names none."""
    try:
        return parse_quantity(text or 0)
    except QuantityError:
        return 0
