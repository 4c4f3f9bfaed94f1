"""Made-up requests on which nothing was tuned: steady, in steps, over a day, in spikes that come again and in spikes that do not."""

import numpy as np
from tests.bench.autoscaling.queue_model import Floats, Requests

SERVE_SECONDS = 1.0


def poisson(rate: Floats, seed: int, serve: float = SERVE_SECONDS) -> Requests:
    """``rate`` requests in each second, independent of each other, that take ``serve`` seconds on average, each its own time."""
    draw = np.random.default_rng(seed)
    counts = draw.poisson(rate)
    arrive = np.repeat(np.arange(len(rate), dtype=np.float64), counts) + draw.uniform(0, 1, int(counts.sum()))
    return Requests(np.sort(arrive), draw.gamma(4.0, serve / 4.0, len(arrive)))


def steady(seed: int) -> Requests:
    """Ten replicas' load for an hour."""
    return poisson(np.full(3600, 160.0), seed)


def steps(seed: int) -> Requests:
    """A quarter of an hour each of 2, 8, 20, 8 and 2 replicas' load."""
    return poisson(np.repeat([32.0, 128.0, 320.0, 128.0, 32.0], 900), seed)


def day(seed: int) -> Requests:
    """A day in two hours: up to twelve replicas' load and back."""
    time = np.arange(7200)
    return poisson(16 * (6.5 - 5.5 * np.cos(2 * np.pi * time / 7200)), seed)


def every_ten_minutes(seed: int) -> Requests:
    """Two replicas' load, and every ten minutes twelve for a minute and a half: what a timetable makes."""
    time = np.arange(7200)
    return poisson(np.where(time % 600 < 90, 192.0, 32.0), seed)


def spikes(seed: int) -> Requests:
    """Two replicas' load, and some thirty spikes an hour of up to sixteen, at any time and of any height."""
    draw, rate = np.random.default_rng(seed + 1000), np.full(5400, 24.0)
    for begin in draw.integers(0, 5400, 45):
        rate[begin : begin + draw.integers(15, 90)] += draw.exponential(60.0)
    return poisson(np.minimum(rate, 256.0), seed)


MADE_UP = {
    "steady": steady,
    "steps": steps,
    "day": day,
    "every ten minutes": every_ten_minutes,
    "spikes": spikes,
}
