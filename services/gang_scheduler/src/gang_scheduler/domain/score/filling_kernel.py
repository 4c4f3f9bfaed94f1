"""``mixture.served_of`` compiled: the same to the last bit."""

import numpy as np

from gang_scheduler.domain.columns.compiled import Serve
from gang_scheduler.domain.columns.jit import jit
from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.score.mixture import GRAIN, PATIENCE, Floats


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


def ready() -> Serve:
    """The kernel, when it is compiled for what it will be given."""
    served_of(np.ones(1, np.int64), np.ones(1))
    return served_of
