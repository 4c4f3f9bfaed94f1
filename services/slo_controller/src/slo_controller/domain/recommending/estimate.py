"""What one container should ask for: a percentile of its use with a margin, and how sure that is.

Source: the Vertical Pod Autoscaler's ``pkg/recommender/logic``: the 90th percentile of cpu and of the daily peaks of memory, 15 %
on top; bounds by the 50th and the 95th, which are the further away the less is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from slo_controller.domain.lending.terms import Use
from slo_controller.domain.prediction.container_use import DAY_MS, ContainerUse
from slo_controller.domain.prediction.histogram import Histogram, merged

TARGET, LOWER, UPPER = 90, 50, 95
MARGIN_PERCENT = 115
LEAST_CPU, LEAST_MEMORY = 25, 250 << 20
"""Of a pod, shared by its containers: with less nothing starts."""
SAMPLES_OF_A_DAY = 1440
SURE_MILLI = 1000
"""The confidence of a day with a sample each minute, in thousandths."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """``lower`` and ``upper`` are where a request begins to be too small, or too large. ``confidence_milli`` counts days."""

    target: Use
    lower: Use
    upper: Use
    confidence_milli: int


def estimate(parts: Iterable[ContainerUse], containers: int) -> Estimate | None:
    """For a container of which all ``parts`` are known, in a pod of so many ``containers``; None where nothing is."""
    known = list(parts)
    if not known:
        return None
    cpu, memory = merged(one.cpu for one in known), merged(one.daily for one in known)
    sure = max(_confidence(one) for one in known)
    least = Use(LEAST_CPU // containers, LEAST_MEMORY // containers)
    lower, upper = _at(LOWER, cpu, memory), _at(UPPER, cpu, memory)
    target = _at(TARGET, cpu, memory).at_least(least)
    # Upwards by a day over what is known, downwards by a thousandth of that, squared.
    high = Use(*(amount + amount * SURE_MILLI // max(sure, 1) for amount in (upper.cpu, upper.memory)))
    low = Use(*(amount * sure * sure // ((sure + 1) * (sure + 1)) for amount in (lower.cpu, lower.memory)))
    return Estimate(target, low.at_least(least).at_most(target), high.at_least(target), sure)


def _at(percent: int, cpu: Histogram, memory: Histogram) -> Use:
    return Use(
        cpu.percentile(percent) * MARGIN_PERCENT // 100,
        memory.percentile(percent) * MARGIN_PERCENT // 100,
    )


def _confidence(one: ContainerUse) -> int:
    return min(one.age_ms * 1000 // DAY_MS, one.samples * 1000 // SAMPLES_OF_A_DAY)
