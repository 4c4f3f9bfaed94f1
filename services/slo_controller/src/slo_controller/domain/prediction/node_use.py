"""What prod pods together, and the system, used on one node."""

from dataclasses import dataclass, field

from kube import Manifest
from slo_controller.domain.lending.terms import Use
from slo_controller.domain.prediction.container_use import PEAK_CPU_PERCENT, PEAK_MEMORY_PERCENT, SAFETY_PERCENT
from slo_controller.domain.prediction.histogram import CPU, MEMORY, Histogram

SCALES = (CPU, MEMORY, CPU, MEMORY)


@dataclass(slots=True)
class NodeUse:
    """``since`` and ``trained`` are when the first and the newest sample were taken, ms.

    ``histograms`` are cpu and memory of prod pods, cpu and memory of the system.
    """

    since: int
    trained: int = 0
    histograms: list[Histogram] = field(default_factory=lambda: [Histogram(scale) for scale in SCALES])

    def add(self, prod: Use, system: Use, at: int) -> None:
        """One sample, taken at ``at``."""
        self.trained = at
        amounts = (prod.cpu, prod.memory, system.cpu, system.memory)
        for histogram, amount in zip(self.histograms, amounts, strict=True):
            histogram.add(amount, at)

    @property
    def age_ms(self) -> int:
        return self.trained - self.since

    @property
    def expected(self) -> Use:
        """The most that both are expected to use together."""
        percents = (PEAK_CPU_PERCENT, PEAK_MEMORY_PERCENT)
        found = [
            histogram.percentile(percents[at % 2]) * SAFETY_PERCENT // 100
            for at, histogram in enumerate(self.histograms)
        ]
        return Use(found[0] + found[2], found[1] + found[3])

    def dump(self) -> Manifest:
        """As JSON takes it."""
        return {"at": [self.since, self.trained], "use": [one.dump() for one in self.histograms]}

    @classmethod
    def load(cls, content: Manifest) -> "NodeUse":
        """What was dumped."""
        histograms = [Histogram.load(scale, one) for scale, one in zip(SCALES, content["use"], strict=True)]
        since, trained = content["at"]
        return cls(since, trained, histograms)
