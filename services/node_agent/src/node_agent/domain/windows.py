"""What a node used over the last minutes: means and percentiles, as a NodeMetric tells them."""

from collections import deque
from collections.abc import Sequence

from kube import Manifest
from node_agent.domain.colocation.samples import Use
from resources import format_amounts

WINDOWS = {"5m": 300_000, "10m": 600_000, "30m": 1_800_000}
"""Windows by the names that a NodeMetric has for them, in milliseconds; Koordinator's by default."""
PERCENTILES = (50, 90, 95, 99)
LEAST_PART = 2
"""A window of which samples tell less than one part in so many is not told of."""


class UseHistory:
    """Samples of the longest window, oldest first. A clock that goes back makes it begin anew."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, Use]] = deque()

    def add(self, at: int, use: Use) -> None:
        """What was used until ``at``."""
        if self._samples and at <= self._samples[-1][0]:
            self._samples.clear()
        self._samples.append((at, use))
        oldest = at - max(WINDOWS.values())
        while self._samples[0][0] < oldest:
            self._samples.popleft()

    def summaries(self, now: int) -> list[Manifest]:
        """An entry of ``aggregatedNodeUsages`` for each window that is known well enough."""
        found = []
        for name, length in WINDOWS.items():
            inside = [(at, use) for at, use in self._samples if at > now - length]
            if inside and (inside[-1][0] - inside[0][0]) * LEAST_PART >= length:
                found.append({"duration": name, "usage": _summary([use for _, use in inside])})
        return found


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest of the ``ordered`` amounts that ``percent`` of them do not exceed (nearest rank)."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _summary(uses: Sequence[Use]) -> Manifest:
    cpu, memory = sorted(use.cpu_milli for use in uses), sorted(use.memory_bytes for use in uses)
    told = {"avg": (sum(cpu) // len(cpu), sum(memory) // len(memory))}
    told |= {f"p{percent}": (percentile(cpu, percent), percentile(memory, percent)) for percent in PERCENTILES}
    return {name: {"resources": format_amounts({"cpu": one[0], "memory": one[1]})} for name, one in told.items()}
