"""How many replicas one metric asks for: the formulas of Kubernetes' replica calculator, in whole numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inference_autoscaler.domain.exact import REPLICAS_MAX, Ratio, ceil_div, is_near
from inference_autoscaler.domain.horizontal.pod_classes import PodClasses, Roster
from inference_autoscaler.domain.horizontal.spec import (
    AVERAGE_VALUE,
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    UTILIZATION,
    Metric,
)
from inference_autoscaler.domain.metrics.reading import Reading
from kube import Manifest, Object
from resources import QuantityError, parse_milli

_NO_SAMPLE = "no samples of its pods (they might not be ready)"


class NoProposal(Exception):
    """The metric says nothing: why, in words. ``reason`` is the one of the condition ScalingActive."""

    def __init__(self, metric: Metric, words: str) -> None:
        super().__init__(f"{metric.title}: {words}")
        self.reason = REASONS.get(metric.type, "InvalidMetricSourceType")


REASONS = {
    RESOURCE: "FailedGetResourceMetric",
    CONTAINER_RESOURCE: "FailedGetContainerResourceMetric",
    PODS: "FailedGetPodsMetric",
    OBJECT: "FailedGetObjectMetric",
    EXTERNAL: "FailedGetExternalMetric",
}


@dataclass(slots=True)
class Size:
    """The target as it is: the replicas that are wanted of it now, and its pods. Never changed, as all that each look makes."""

    replicas: int
    roster: Roster


@dataclass(slots=True)
class Tolerance:
    """In billionths. Never changed."""

    down_nano: int
    up_nano: int

    def holds(self, ratio: Ratio) -> bool:
        """Whether the ratio is near enough to 1 to leave everything as it is."""
        return is_near(ratio.part, ratio.whole, self.down_nano, self.up_nano)


@dataclass(slots=True)
class Proposal:
    """How many replicas, and what was measured: a utilisation in percent, an average or a value in thousandths.

    Never changed; not frozen, as many are made.
    """

    replicas: int
    utilization: int | None = None
    average_milli: int | None = None
    value_milli: int | None = None


def from_pods(metric: Metric, size: Size, samples: Mapping[str, Reading], near: Tolerance, now: int) -> Proposal:
    """By what the pods of the target use each: Resource, ContainerResource and Pods metrics. Raises NoProposal."""
    name = metric.name if metric.type != PODS else ""
    found = size.roster.classes(samples, name, now)
    requests = _requests(metric, size.roster) if metric.target.kind == UTILIZATION else None
    if not found.known:
        raise NoProposal(metric, _NO_SAMPLE)
    if requests is None:
        return _by_average(metric, size, found, near)
    return _by_utilization(metric, size, found, requests, near)


def _by_utilization(
    metric: Metric, size: Size, found: PodClasses, requests: dict[str, int], near: Tolerance
) -> Proposal:
    target, known = metric.target.amount, found.known

    def ratio(values: Mapping[str, int]) -> Ratio:
        asked = sum(map(requests.__getitem__, values))
        if asked == 0:
            raise NoProposal(metric, "its pods request nothing of it")
        return Ratio(sum(values.values()) * 100 // asked, target)

    first = ratio(known)
    replicas = size.replicas
    if _is_plain(first, found):
        replicas = replicas if near.holds(first) else first.of(len(known))
    else:
        percent = max(100, target)
        full = {pod: requests[pod] * percent // 100 for pod in found.missing}
        filled = _filled(first, known, found, full)
        replicas = _cautious(first, ratio(filled), len(filled), replicas, near)
    return Proposal(replicas, first.part, sum(known.values()) // len(known))


def _by_average(metric: Metric, size: Size, found: PodClasses, near: Tolerance) -> Proposal:
    target, known = metric.target.amount, found.known

    first = _average(known, target)
    replicas = size.replicas
    if _is_plain(first, found):
        replicas = replicas if near.holds(first) else first.of(len(known))
    else:
        filled = _filled(first, known, found, dict.fromkeys(found.missing, target))
        replicas = _cautious(first, _average(filled, target), len(filled), replicas, near)
    return Proposal(replicas, average_milli=first.part)


def _average(values: Mapping[str, int], target: int) -> Ratio:
    return Ratio(sum(values.values()) // len(values), target)


def _is_plain(ratio: Ratio, found: PodClasses) -> bool:
    """Whether every pod that matters has a sample."""
    return not found.missing and not (found.unready and ratio.above_one)


def _filled(ratio: Ratio, known: Mapping[str, int], found: PodClasses, full: Mapping[str, int]) -> dict[str, int]:
    """The values with those of unknown pods against the direction: full where it would go down, idle where up."""
    filled = dict(known)
    if ratio.below_one:
        filled |= full
    elif ratio.above_one:
        filled |= dict.fromkeys((*found.missing, *found.unready), 0)
    return filled


def _cautious(first: Ratio, second: Ratio, count: int, current: int, near: Tolerance) -> int:
    """What is asked for with unknown pods filled in: nothing where they make it small, or turn it round."""
    turned = (first.below_one and second.above_one) or (first.above_one and second.below_one)
    if near.holds(second) or turned:
        return current
    replicas = second.of(count)
    if (second.below_one and replicas > current) or (second.above_one and replicas < current):
        return current
    return replicas


def from_total(metric: Metric, size: Size, total_milli: int, near: Tolerance) -> Proposal:
    """By one number for the whole target: Object and External metrics. Raises NoProposal.

    An average is over the replicas that are wanted, not over those that are counted in the status: a pod that a rolling
    update has too many of would become one that is wanted for good (kubernetes#138505).
    """
    target = metric.target.amount
    if metric.target.kind == AVERAGE_VALUE:
        current = size.replicas
        average = ceil_div(total_milli, current) if current else None
        if current and is_near(total_milli, target * current, near.down_nano, near.up_nano):
            return Proposal(current, average_milli=average)
        return Proposal(max(0, min(REPLICAS_MAX, ceil_div(total_milli, target))), average_milli=average)
    ratio = Ratio(total_milli, target)
    if size.replicas == 0:
        return Proposal(ratio.of(1), value_milli=total_milli)
    if near.holds(ratio):
        return Proposal(size.replicas, value_milli=total_milli)
    if not size.roster.pods:
        raise NoProposal(metric, "the target has no pods to multiply")
    return Proposal(ratio.of(size.roster.serving), value_milli=total_milli)


def _requests(metric: Metric, roster: Roster) -> dict[str, int]:
    """What each pod requests, by name, in thousandths. Raises NoProposal where one requests nothing."""
    known = roster.requests.get((metric.name, metric.container))
    if known is None:
        known = {pod.name: _request(metric, pod) for pod in roster.pods}
        roster.requests[metric.name, metric.container] = known
    return known


def _request(metric: Metric, pod: Object) -> int:
    whole = _asked(pod.spec.get("resources"), metric)
    if whole is not None and not metric.container:
        return whole
    total = 0
    for container in _counted(pod.spec, metric.container):
        asked = _asked(container.get("resources"), metric)
        if asked is None:
            name = container.get("name")
            raise NoProposal(metric, f"missing request for {metric.name} in container {name} of Pod {pod.name}")
        total += asked
    return total


def _counted(spec: Manifest, container: str) -> Iterable[Manifest]:
    """Containers and sidecars, or the one of the name ``container``."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    listed = [*(spec.get("containers") or ()), *sidecars]
    return [one for one in listed if one.get("name") == container] if container else listed


def _asked(resources: Manifest | None, metric: Metric) -> int | None:
    """A request, or the limit that stands for it, in thousandths."""
    for part in ("requests", "limits"):
        value = ((resources or {}).get(part) or {}).get(metric.name)
        if value is not None:
            try:
                return parse_milli(value)
            except QuantityError as error:
                raise NoProposal(metric, str(error)) from None
    return None
