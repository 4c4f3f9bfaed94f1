"""A histogram of amounts that forgets: a sample counts half as much after each half-life.

Buckets grow by 5 %, and a percentile is the upper bound of its bucket. Source: the Vertical Pod Autoscaler's
``pkg/recommender/util/{histogram,decaying_histogram}.go``, and Koordinator's peak predictor, which is built on it.

Nothing is ever decayed in place. The weight of a sample grows instead, by 2 to the half-lives since ``reference``; so samples of one
moment may come in any order, and what is forgotten is the same however often somebody looks. Integers only, the same everywhere.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from resources.decay import remaining

SAMPLE_BITS = 12
"""A sample of the reference time weighs 2 to this; what has lost all of it is forgotten."""
MOST_HALVINGS = 8
"""After so many half-lives all weights are brought down, and the reference forward."""
GROWTH_PERCENT = 5
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Scale:
    """``starts`` are where buckets begin, rising, the first at 0; the last has no end."""

    starts: tuple[int, ...]
    half_life_ms: int

    @classmethod
    def growing(cls, first: int, most: int, half_life_ms: int) -> "Scale":
        """Buckets of which the first is ``first`` wide, each following one 5 % wider, up to ``most``."""
        starts, width = [0], first << 16
        position = 0
        while position >> 16 < most:
            position += width
            starts.append(position >> 16)
            width += width * GROWTH_PERCENT // 100
        return cls(tuple(starts), half_life_ms)

    def bucket(self, amount: int) -> int:
        """Where ``amount`` falls."""
        return bisect_right(self.starts, max(amount, 0)) - 1

    def end(self, bucket: int) -> int:
        """The upper bound of a bucket."""
        return self.starts[min(bucket + 1, len(self.starts) - 1)]


CPU = Scale.growing(25, 1_024_000, 12 * HOUR_MS)
"""Milli-cores: from 0.025 to 1024 cores."""
MEMORY = Scale.growing(5 << 20, 2 << 40, 24 * HOUR_MS)
"""Bytes: from 5 MiB to 2 TiB."""


@dataclass(slots=True)
class Histogram:
    """``weights`` by bucket, as of ``reference`` (ms); 0 before the first sample."""

    scale: Scale
    reference: int = 0
    weights: dict[int, int] = field(default_factory=dict)

    def add(self, amount: int, at: int) -> None:
        """One sample of ``amount`` that was taken at ``at`` (ms)."""
        self._put(self.scale.bucket(amount), self._weight(at))

    def take(self, amount: int, at: int) -> None:
        """Take a sample back that was added with the same ``at``."""
        self._put(self.scale.bucket(amount), -self._weight(at))

    def percentile(self, percent: int) -> int:
        """The amount that so many percent of the samples, by weight, stay below; 0 without any."""
        total = sum(self.weights.values())
        if not total:
            return 0
        seen = 0
        for bucket in sorted(self.weights):
            seen += self.weights[bucket]
            if seen * 100 >= total * percent:
                return self.scale.end(bucket)
        return self.scale.end(max(self.weights))

    def dump(self) -> list[int]:
        """The reference, and then bucket and weight in turn."""
        return [self.reference, *(number for pair in sorted(self.weights.items()) for number in pair)]

    @classmethod
    def load(cls, scale: Scale, content: Sequence[int]) -> "Histogram":
        """What was dumped."""
        return cls(scale, content[0], dict(zip(content[1::2], content[2::2], strict=True)))

    def _put(self, bucket: int, weight: int) -> None:
        left = self.weights.get(bucket, 0) + weight
        if left > 0:
            self.weights[bucket] = left
        else:
            self.weights.pop(bucket, None)

    def _weight(self, at: int) -> int:
        """What a sample of ``at`` weighs beside those that are there."""
        if not self.weights:
            self.reference = at - at % self.scale.half_life_ms
        halvings = (at - self.reference) // self.scale.half_life_ms
        if halvings > MOST_HALVINGS:
            self._bring_forward(halvings)
            halvings = 0
        return _sample_weight(at - self.reference, self.scale.half_life_ms)

    def _bring_forward(self, halvings: int) -> None:
        lighter = {bucket: weight >> halvings for bucket, weight in self.weights.items()}
        self.weights = {bucket: weight for bucket, weight in lighter.items() if weight}
        self.reference += halvings * self.scale.half_life_ms


def merged(parts: Iterable[Histogram]) -> Histogram:
    """All samples of histograms of one scale in one, as of the newest reference among them."""
    known = [part for part in parts if part.weights]
    if len(known) < 2:
        return known[0] if known else Histogram(CPU)
    scale, reference = known[0].scale, max(part.reference for part in known)
    total = Histogram(scale, reference)
    for part in known:
        halvings = (reference - part.reference) // scale.half_life_ms
        for bucket, weight in part.weights.items():
            total.weights[bucket] = total.weights.get(bucket, 0) + (weight >> halvings)
    return total


@lru_cache(maxsize=4096)
def _sample_weight(since_ms: int, half_life_ms: int) -> int:
    """2 to the half-lives in ``since_ms``, in units of which a sample of the reference time has 2 to SAMPLE_BITS."""
    halvings, rest = divmod(since_ms, half_life_ms)
    grown = remaining(half_life_ms - rest, half_life_ms) if rest else 1 << 63
    return grown >> (63 - SAMPLE_BITS - halvings)
