"""What each metric of an autoscaler asks for, by the samples that stand."""

from collections.abc import Callable
from dataclasses import dataclass

from inference_autoscaler.domain.horizontal.proposal import (
    NoProposal,
    Proposal,
    Size,
    Tolerance,
    from_pods,
    from_total,
)
from inference_autoscaler.domain.horizontal.spec import EXTERNAL, OBJECT, TOTALS, Horizontal, Metric
from inference_autoscaler.domain.horizontal.verdict import Measure
from inference_autoscaler.domain.metrics.readings import GONE_MS, Readings

Value = Callable[[str, Metric, Size, int], int | None]
"""The value in thousandths of an external metric in a namespace, for a target of a size, at a time; None where only samples tell.

Raises NoProposal where it has, and knows nothing.
"""


@dataclass(frozen=True, slots=True)
class External:
    """Who is asked for external metrics before samples are. ``present`` is like ``value``, for questions: it changes nothing.

    ``is_steady`` says whether ``value`` of a metric in a namespace stays as it is while no sample comes.
    """

    value: Value
    present: Value
    is_steady: Callable[[str, Metric], bool]


def measure_with(readings: Readings, external: Value, spec: Horizontal, namespace: str, now: int) -> Measure:
    """How the metrics of ``spec`` are measured at ``now``."""
    near = Tolerance(spec.down.tolerance_nano, spec.up.tolerance_nano)

    def measure(metric: Metric, size: Size) -> Proposal:
        if metric.type not in TOTALS:
            samples = readings.of_pods(namespace, metric.name, size.roster.pods, metric.container, now)
            return from_pods(metric, size, samples, near, now)
        total = external(namespace, metric, size, now) if metric.type == EXTERNAL else None
        if total is None:
            series, label = metric.series, metric.label
            found = readings.of(series, metric.selector) if label is None else readings.labelled(series, label)
            if not found:
                raise NoProposal(metric, readings.why_silent(series))
            if metric.type == OBJECT:  # of several by their labels it is the first, which several may measure
                found = [one for one in found if one.labels == found[0].labels]
                newest = max(one.at for one in found)
                found = [one for one in found if one.at > newest - GONE_MS] if found[0].source else found[:1]
            total = found[0].value_milli if len(found) == 1 else sum(one.value_milli for one in found)
        return from_total(metric, size, total, near)

    return measure
