"""What a look takes longest for, compiled: ``mixture.served_of`` and ``Measures.copies``, the same to the last bit."""

import numpy as np

from gang_scheduler.domain.columns.compiled import Copies, Serve
from gang_scheduler.domain.columns.jit import jit
from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.score.mixture import GRAIN, PATIENCE, Floats
from gang_scheduler.domain.score.prices import ALMOST


@jit()
def served_of(sizes: Ints, shares: Floats) -> Floats:
    """What a card serves, by free percent, of pods that ask for ``sizes`` of it in such ``shares``; the least size first."""
    served, later = np.zeros(101), np.zeros(101)
    fitting, fits, turns = 0, 0.0, 1 - PATIENCE
    for free in range(1, 101):
        if fitting < len(sizes) and sizes[fitting] == free:
            fits += shares[fitting]
            fitting += 1
            turns = 1 - PATIENCE * (1 - fits)
        gain = 0.0
        for at in range(fitting):
            gain += shares[at] * (sizes[at] / 100 + later[free - sizes[at]])
        served[free] = np.rint(gain / turns * GRAIN) / GRAIN
        later[free] = PATIENCE * served[free]
    return served


@jit()
def copies(
    cpu: Floats, memory: Floats, cards: Ints, by_cpu: Floats, by_memory: Floats, by_cards: Floats, parts: Floats
) -> Floats:
    """How many copies of each kind fit (node by kind). ``cards`` are free percents (card by node)."""
    found = np.zeros((len(cpu), len(by_cpu)))
    for node in range(len(cpu)):
        for card in range(len(cards)):
            free = cards[card, node]
            if free > 0:
                for kind in range(len(by_cpu)):
                    found[node, kind] += parts[free, kind]
        for kind in range(len(by_cpu)):
            fits = min(
                min(found[node, kind] * by_cards[kind], cpu[node] * by_cpu[kind]), memory[node] * by_memory[kind]
            )
            found[node, kind] = np.floor(fits + ALMOST)
    return found


def ready() -> tuple[Serve, Copies]:
    """The kernels, when they are compiled for what they will be given."""
    ones, numbers, table = np.ones(1), np.ones(1, np.int64), np.zeros((101, 1))
    served_of(numbers, ones)
    copies(ones, ones, np.ones((1, 1), np.int64), ones, ones, ones, table)
    return served_of, copies
