"""What may come beyond the usual while a replica starts: how much loads scatter, and by how much forecasts were wrong so far.

The scatter of arrivals grows with the root of the load; how fast, says their peakedness (the variance of the load over its mean, 1 for
requests that come independently of each other). How many such scatters are enough is not taken from a normal distribution, which bursts
have little to do with, but from the scores of the past (conformal prediction): the need that came, less what was expected, in scatters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from inference_autoscaler.domain.target.spans import Span

_SCORE = 1000
LEAST_FACTOR, MOST_FACTOR, FIRST_FACTOR = 2_000, 3_500, 2_000
"""In thousandths of a scatter: what is kept free at least, as for loads that are not bursty, at most, and before anything was learned."""
_QUANTILE_PERMILLE = 850
_FEW = 8
"""With fewer scores than this nothing was learned yet."""
_POISSON_MILLI = 1_000


@dataclass(frozen=True, slots=True)
class Margin:
    """``scatter_milli`` slots are one scatter, of which ``factor_milli`` thousandths are kept free."""

    scatter_milli: int
    factor_milli: int

    @property
    def milli(self) -> int:
        """Thousandths of slots that are kept free."""
        return self.scatter_milli * self.factor_milli // 1000


def margin(level_milli: int, spans: Sequence[Span]) -> Margin:
    """What to keep free beyond a load of ``level_milli``."""
    return Margin(scatter(level_milli, spans), factor(spans))


def scatter(level_milli: int, spans: Sequence[Span]) -> int:
    """How much a load of ``level_milli`` scatters, in thousandths of slots."""
    total = sum(one.level_milli for one in spans)
    peakedness = sum(one.variance for one in spans) // total if total else 0
    return isqrt(level_milli * max(peakedness, _POISSON_MILLI))


def factor(spans: Sequence[Span]) -> int:
    """How many scatters were enough in seventeen of twenty spans, in thousandths."""
    scores = sorted(one.score for one in spans if one.score is not None)
    if len(scores) < _FEW:
        return FIRST_FACTOR
    return min(max(scores[len(scores) * _QUANTILE_PERMILLE // 1000], LEAST_FACTOR), MOST_FACTOR)


def score(need_milli: int, expected_milli: int, scatter_milli: int, slots: int) -> int:
    """By how many scatters a need was above what was expected, in thousandths; a scatter below a quarter of a replica is one."""
    return (need_milli - expected_milli) * _SCORE // max(scatter_milli, slots * 250, 1)
