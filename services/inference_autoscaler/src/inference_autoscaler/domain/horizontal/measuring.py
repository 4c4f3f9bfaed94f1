"""What each metric of an autoscaler asks for, by the samples that stand."""

from collections.abc import Callable

from inference_autoscaler.domain.horizontal.proposal import (
    NoProposal,
    Proposal,
    Size,
    Tolerance,
    from_pods,
    from_total,
)
from inference_autoscaler.domain.horizontal.spec import EXTERNAL, OBJECT, Horizontal, Metric
from inference_autoscaler.domain.horizontal.verdict import Measure
from inference_autoscaler.domain.metrics.readings import Readings

External = Callable[[str, Metric, Size, int], int | None]
"""The value in thousandths of an external metric in a namespace, for a target of a size, at a time; None where only samples tell.

Raises NoProposal where it has, and knows nothing.
"""


def measure_with(readings: Readings, external: External, spec: Horizontal, namespace: str, now: int) -> Measure:
    """How the metrics of ``spec`` are measured at ``now``."""
    near = Tolerance(spec.down.tolerance_nano, spec.up.tolerance_nano)

    def total(metric: Metric, size: Size) -> int:
        if metric.type == EXTERNAL:
            told = external(namespace, metric, size, now)
            if told is not None:
                return told
            series = (namespace, "", "", metric.name)
        else:
            assert metric.described is not None, "admission lets no Object metric in without its object"
            series = (namespace, metric.described.kind, metric.described.name, metric.name)
        found = readings.of(series, metric.selector)
        if not found:
            raise NoProposal(metric, readings.why_silent(series))
        return sum(one.value_milli for one in found) if metric.type == EXTERNAL else found[0].value_milli

    def measure(metric: Metric, size: Size) -> Proposal:
        if metric.type in (EXTERNAL, OBJECT):
            return from_total(metric, size, total(metric, size), near)
        samples = readings.of_pods(namespace, metric.name, size.pods, metric.container, now)
        return from_pods(metric, size, samples, near, now)

    return measure
