"""``Prices.scores`` compiled, for one node: the same to the last bit. Only ``shape_kernel`` imports it, when it is needed."""

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
def score(
    free: Ints,
    cpu: int,
    memory: int,
    cards: int,
    percent: int,
    ask_cpu: int,
    ask_memory: int,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    served: Floats,
    beside: Floats,
    mix: float,
    parts: Floats,
) -> int:
    """The score of a node of which ``free`` percent of each card, ``cpu`` and ``memory`` are left.

    ``free`` and ``parts`` are scrap after.
    """
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
    before = price_of_copies(price, by_cpu, by_memory, by_cards, float(cpu), float(memory), parts) / PRICE
    before += mix * mixed_of(serves, float(cpu), float(memory), beside[0], beside[1])
    for _ in range(cards):
        best, has = -1, 101
        for card in range(len(free)):
            if percent <= free[card] < has:
                best, has = card, free[card]
        if best < 0:
            break
        free[best] = -1
        rest = has - percent
        serves -= served[has] - served[rest]
        for kind in range(len(parts)):
            parts[kind] += parts_of[rest, kind] - parts_of[has, kind]
    cpu, memory = max(cpu - ask_cpu, 0), max(memory - ask_memory, 0)
    after = price_of_copies(price, by_cpu, by_memory, by_cards, float(cpu), float(memory), parts) / PRICE
    after += mix * mixed_of(serves, float(cpu), float(memory), beside[0], beside[1])
    loss = max(before - after, -HALF / 2)
    return int(np.rint(BEST * HALF / (HALF + loss)))
