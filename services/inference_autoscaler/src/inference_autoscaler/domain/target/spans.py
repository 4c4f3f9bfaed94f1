"""The recent past of a service in spans, each a part of the time that a replica takes to start."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference_autoscaler.domain.target.offered import Bucket

_PARTS, _SHORTEST_MS = 4, 15_000
"""A span is a quarter of a start, and not shorter than this: nobody has use for thousands of them."""
_HELD_MS, _HELD_STARTS = 600_000, 5
_KEPT_MS, _KEPT_STARTS = 1_800_000, 15


@dataclass(frozen=True, slots=True)
class Scale:
    """The times that go with replicas that take ``start_ms`` to start, in milliseconds.

    A load counts for the time ``held_ms`` after it was there: bursts are seldom alone. Scatter and scores are learned from ``kept_ms``.
    """

    start_ms: int

    @property
    def span_ms(self) -> int:
        return max(self.start_ms // _PARTS, _SHORTEST_MS)

    @property
    def window_ms(self) -> int:
        """Over which time a load is averaged: that of a start, in whole spans."""
        return self.parts * self.span_ms

    @property
    def parts(self) -> int:
        """How many spans make a start."""
        return -(-self.start_ms // self.span_ms)

    @property
    def held_ms(self) -> int:
        return max(_HELD_MS, _HELD_STARTS * self.start_ms)

    @property
    def kept_ms(self) -> int:
        return max(_KEPT_MS, _KEPT_STARTS * self.start_ms)


@dataclass(frozen=True, slots=True)
class Span:
    """What was so in the time of a start up to ``end``: mean and variance of the load, in thousandths, and the slots it needed.

    ``expected_milli`` and ``scatter_milli`` are what was expected then of the next start's time, ``score`` how wrong it was that a
    start's time before was expected of this one (None where nothing was).
    """

    end: int
    level_milli: int
    variance: int
    need_milli: int
    expected_milli: int
    scatter_milli: int
    score: int | None


def level_of(buckets: Sequence[Bucket]) -> int:
    """The mean load over the time of ``buckets``, in thousandths."""
    time = sum(one.length for one in buckets)
    return sum(one.load_milli * one.length for one in buckets) // time if time else 0


def variance_of(buckets: Sequence[Bucket], level_milli: int) -> int:
    """How the load varied about its mean, in thousandths squared."""
    time = sum(one.length for one in buckets)
    return sum((one.load_milli - level_milli) ** 2 * one.length for one in buckets) // time if time else 0
