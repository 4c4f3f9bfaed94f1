"""``Prices.worth`` compiled, for one node: the same to the last bit. Only other kernels import it, when they are needed."""

import numpy as np

from gang_scheduler.domain.nodes.jit import jit
from gang_scheduler.domain.nodes.vectors import Ints
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.prices import ALMOST, BEST, CORNERS, HALF, PRICE


@jit(fastmath={"reassoc", "nsz"})
def price_of_copies(
    price: Floats, by_cpu: Floats, by_memory: Floats, by_cards: Floats, cpu: float, memory: float, parts: Floats
) -> float:
    """What all copies are worth that fit. The sums are of whole numbers, so their order does not matter."""
    worth = 0.0
    for kind in range(len(price)):
        fits = min(min(parts[kind] * by_cards[kind], cpu * by_cpu[kind]), memory * by_memory[kind])
        worth += np.floor(fits + ALMOST) * price[kind]
    return worth


@jit()
def mixed_of(served: float, cpu: float, memory: float, beside_cpu: float, beside_memory: float) -> float:
    """``prices.mixed`` of one node."""
    tight = max(beside_cpu / max(cpu, 1.0), beside_memory / max(memory, 1.0)) * served
    for _ in range(CORNERS):
        tight *= tight
    tight += 1.0
    for _ in range(CORNERS):
        tight = np.sqrt(tight)
    return served / tight


@jit()
def worth(
    free: Ints,
    cpu: int,
    memory: int,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    served: Floats,
    beside: Floats,
    mix: float,
    parts: Floats,
) -> float:
    """What a node is worth of which ``free`` percent of each card, ``cpu`` and ``memory`` are left; ``parts`` is scrap."""
    # Rows are added by their index: to make views of them would take longer than all the rest.
    whole = 0
    for card in range(len(free)):
        whole += free[card] == 100
    serves = whole * served[100]
    for kind in range(len(parts)):
        parts[kind] = whole * parts_of[100, kind]
    for card in range(len(free)):
        has = free[card]
        if 0 < has < 100:
            serves += served[has]
            for kind in range(len(parts)):
                parts[kind] += parts_of[has, kind]
    found = price_of_copies(price, by_cpu, by_memory, by_cards, float(cpu), float(memory), parts) / PRICE
    return found + mix * mixed_of(serves, float(cpu), float(memory), beside[0], beside[1])


@jit()
def take(free: Ints, cards: int, percent: int) -> None:
    """Give a pod its cards: the fullest that have what it asks of each."""
    for _ in range(cards):
        best, has = -1, 101
        for card in range(len(free)):
            if percent <= free[card] < has:
                best, has = card, free[card]
        if best < 0:
            break
        free[best] = percent - has - 1  # Not to be taken again.
    for card in range(len(free)):
        if free[card] < 0:
            free[card] = -1 - free[card]


@jit()
def score(before: float, after: float) -> int:
    """The score of a node whose worth falls so far."""
    return int(np.rint(BEST * HALF / (HALF + max(before - after, -HALF / 2))))
