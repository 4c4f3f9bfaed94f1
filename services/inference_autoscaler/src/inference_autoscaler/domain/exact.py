"""Ratios of whole numbers, compared and rounded without a float: an autoscaler that is one off is off."""

from dataclasses import dataclass

NANO = 1_000_000_000
REPLICAS_MAX = 2**31 - 1
"""More than this many replicas nobody can ask for: Kubernetes counts them in 32 bits."""


@dataclass(slots=True)
class Ratio:
    """``part`` of ``whole``; ``whole`` is above 0. Never changed; not frozen, as many are made."""

    part: int
    whole: int

    @property
    def above_one(self) -> bool:
        return self.part > self.whole

    @property
    def below_one(self) -> bool:
        return self.part < self.whole

    def of(self, count: int) -> int:
        """``count`` times this, rounded up, as a number of replicas."""
        return min(REPLICAS_MAX, ceil_div(self.part * count, self.whole))


def is_near(part: int, whole: int, down_nano: int, up_nano: int) -> bool:
    """Whether ``part`` is ``whole``, but for so many billionths of it less or more."""
    return whole * (NANO - down_nano) <= part * NANO <= whole * (NANO + up_nano)


def ceil_div(part: int, whole: int) -> int:
    """``part / whole``, rounded up."""
    return -(-part // whole)
