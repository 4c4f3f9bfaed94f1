"""What the containers of one name in a workload's pods used, ever less the longer ago it was."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kube import Manifest
from slo_controller.domain.lending.terms import Use
from slo_controller.domain.prediction.histogram import CPU, HOUR_MS, MEMORY, Histogram

PEAK_CPU_PERCENT, PEAK_MEMORY_PERCENT = 95, 98
SAFETY_PERCENT = 110
"""Of a percentile: what is expected at most."""
DAY_MS = 24 * HOUR_MS


@dataclass(slots=True)
class ContainerUse:
    """``since`` and ``last`` are when the first and the newest sample were taken, ms. ``daily`` counts the most memory of each day.

    Cpu is felt at once, so every sample of it counts. Memory is felt when there is none left: what a container asks for has to be
    above its peaks, and a day has one.
    """

    since: int
    last: int
    samples: int = 0
    cpu: Histogram = field(default_factory=lambda: Histogram(CPU))
    memory: Histogram = field(default_factory=lambda: Histogram(MEMORY))
    daily: Histogram = field(default_factory=lambda: Histogram(MEMORY))
    day: int = -1
    day_peak: int = 0
    killed_at: int = 0
    """When one of them was last killed for want of memory, of those that were counted."""
    _expected: Use | None = None

    def add(self, used: Use, at: int) -> None:
        """One sample of one of them, taken at ``at``."""
        self.since, self.last, self.samples = min(self.since, at), max(self.last, at), self.samples + 1
        self.cpu.add(used.cpu, at)
        self.memory.add(used.memory, at)
        self.peak(used.memory, at)
        self._expected = None

    def peak(self, memory: int, at: int) -> None:
        """Memory that was used, or was wanted, at ``at``: it counts where it is the most of its day."""
        day = at // DAY_MS
        if day < self.day or (day == self.day and memory <= self.day_peak):
            return
        if day == self.day:
            self.daily.take(self.day_peak, day * DAY_MS)
        self.day, self.day_peak = day, memory
        self.daily.add(memory, day * DAY_MS)

    @property
    def age_ms(self) -> int:
        return self.last - self.since

    @property
    def expected(self) -> Use:
        """The most that one of them is expected to use."""
        if self._expected is None:
            cpu, memory = self.cpu.percentile(PEAK_CPU_PERCENT), self.memory.percentile(PEAK_MEMORY_PERCENT)
            self._expected = Use(cpu * SAFETY_PERCENT // 100, memory * SAFETY_PERCENT // 100)
        return self._expected

    def dump(self) -> Manifest:
        """As JSON takes it."""
        return {
            "at": [self.since, self.last, self.samples, self.day, self.day_peak, self.killed_at],
            "use": [one.dump() for one in (self.cpu, self.memory, self.daily)],
        }

    @classmethod
    def load(cls, content: Manifest) -> "ContainerUse":
        """What was dumped."""
        since, last, samples, day, day_peak, killed_at = content["at"]
        cpu, memory, daily = _histograms(content["use"])
        return cls(since, last, samples, cpu, memory, daily, day, day_peak, killed_at)


def _histograms(listed: Sequence[Sequence[int]]) -> list[Histogram]:
    return [Histogram.load(scale, one) for scale, one in zip((CPU, MEMORY, MEMORY), listed, strict=True)]
