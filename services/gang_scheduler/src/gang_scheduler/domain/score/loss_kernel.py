"""``Prices.worth`` compiled, for one node: the same to the last bit. Only other kernels import it, when they are needed."""

import numpy as np

from gang_scheduler.domain.columns.jit import jit
from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.score.mixture import Floats
from gang_scheduler.domain.score.prices import ALMOST, BEST, CORNERS, HALF, PRICE

# Rows of matrices are taken by their index: to make views of them would take longer than all the rest.


@jit(fastmath={"reassoc", "nsz"})
def price_of_copies(
    of: int,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    cpu: float,
    memory: float,
    state: int,
    parts: Floats,
    cards: int,
    has: int,
    rest: int,
) -> float:
    """What all copies are worth that fit once so many ``cards`` of which ``has`` percent were free have ``rest`` percent.

    The sums are of whole numbers, so their order does not matter.
    """
    worth = 0.0
    for kind in range(len(by_cpu)):
        left = parts[state, kind] + cards * (parts_of[rest, kind] - parts_of[has, kind])
        fits = min(min(left * by_cards[kind], cpu * by_cpu[kind]), memory * by_memory[kind])
        worth += np.floor(fits + ALMOST) * price[of, kind]
    return worth


@jit(inline="always")
def tight(served: float, cpu: float, memory: float, beside_cpu: float, beside_memory: float) -> float:
    """How much of what the cards of a node serve its CPU and memory do not, as ``prices.mixed`` has it."""
    return max(beside_cpu / max(cpu, 1.0), beside_memory / max(memory, 1.0)) * served


@jit(inline="always")
def rounded(tight: float) -> float:
    """The corner of ``prices.mixed`` rounded."""
    for _ in range(CORNERS):
        tight *= tight
    tight += 1.0
    for _ in range(CORNERS):
        tight = np.sqrt(tight)
    return tight


@jit(inline="always")
def total(copies: float, served: float, tight: float, mix: float) -> float:
    """The worth of a node by that of its ``copies``, and what its cards serve, whose corner is ``tight``."""
    return copies / PRICE + mix * (served / tight)


@jit()
def fill(free: Ints, of: int, parts_of: Floats, served: Floats, state: int, parts: Floats) -> float:
    """Note in ``parts`` of a state how many parts of each kind its cards hold; returns the cards' worth that they serve."""
    whole = 0
    for card in range(len(free)):
        whole += free[card] == 100
    serves = float(whole * served[of, 100])
    for kind in range(parts.shape[1]):
        parts[state, kind] = whole * parts_of[100, kind]
    for card in range(len(free)):
        has = free[card]
        if 0 < has < 100:
            serves += served[of, has]
            for kind in range(parts.shape[1]):
                parts[state, kind] += parts_of[has, kind]
    return serves


@jit(inline="always")
def worth(
    of: int,
    serves: float,
    cpu: int,
    memory: int,
    price: Floats,
    by_cpu: Floats,
    by_memory: Floats,
    by_cards: Floats,
    parts_of: Floats,
    beside: Floats,
    mix: float,
    state: int,
    parts: Floats,
) -> float:
    """What a node of class ``of`` is worth of which ``cpu`` and ``memory`` are left, beside cards that hold ``parts``."""
    found = price_of_copies(
        of, price, by_cpu, by_memory, by_cards, parts_of, float(cpu), float(memory), state, parts, 0, 0, 0
    )
    corner = rounded(tight(serves, float(cpu), float(memory), beside[of, 0], beside[of, 1]))
    return total(found, serves, corner, mix)


@jit(inline="always")
def fullest(free: Ints, percent: int) -> int:
    """The fullest card with so many ``percent`` free, -1 if there is none."""
    best, has = -1, 101
    for card in range(len(free)):
        if percent <= free[card] < has:
            best, has = card, free[card]
    return best


@jit(inline="always")
def score(before: float, after: float) -> int:
    """The score of a node whose worth falls so far."""
    return int(np.rint(BEST * HALF / (HALF + max(before - after, -HALF / 2))))
