"""How many requests a second come: a day in less than two minutes, silence, and spikes. Arrivals are Poisson, the same for a seed."""

import math
from random import Random

DAY, SILENCE, SPIKES = 100.0, 45.0, 75.0
"""Seconds of each part, in this order."""
END = DAY + SILENCE + SPIKES
LOWEST, HIGHEST = 4.0, 70.0
"""Requests a second at night and at noon."""
FEW, MANY = 6.0, 60.0
"""The same between spikes and in them."""
SPIKE_TIMES = ((20.0, 38.0), (55.0, 70.0))
"""From the beginning of the spikes' part."""
RAMP = 12.0
"""Seconds from which on a spike is no ramp any more: a replica starts in some six, and is asked for within four."""


def rate(second: float) -> float:
    """Requests a second."""
    if second < DAY:
        return LOWEST + (HIGHEST - LOWEST) * math.sin(math.pi * second / DAY) ** 2
    since = second - DAY - SILENCE
    if since < 0:
        return 0.0
    return MANY if any(begin <= since < end for begin, end in SPIKE_TIMES) else FEW


def is_ramp(second: float) -> bool:
    """Whether more replicas are needed then than there can be: at a spike's start and at the waking. The day has none."""
    since = second - DAY - SILENCE
    return any(begin <= since < begin + RAMP for begin in (0.0, *(begin for begin, _ in SPIKE_TIMES)))


def arrivals(seed: int) -> list[float]:
    """When requests are sent, in seconds from the start."""
    chance, second, found = Random(seed), 0.0, list[float]()
    highest = max(HIGHEST, MANY)
    while (second := second + chance.expovariate(highest)) < END:
        if chance.random() * highest < rate(second):
            found.append(second)
    return found
