"""The formulas by which a metric asks for replicas, against Kubernetes' own words for them in floats."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_autoscaler.domain.exact import Ratio
from inference_autoscaler.domain.horizontal.pod_classes import Roster
from inference_autoscaler.domain.horizontal.proposal import NoProposal, Size, Tolerance, from_pods, from_total
from inference_autoscaler.domain.horizontal.spec import Metric, Target
from inference_autoscaler.domain.metrics.reading import Reading
from kube import Key, Object

NEAR = Tolerance(100_000_000, 100_000_000)
NOW = 10_000_000
START = "1970-01-01T00:00:00Z"
CPU = Metric("Resource", "cpu", Target("Utilization", 50))
REQUESTS = Metric("Pods", "requests", Target("AverageValue", 15_000))
QUEUE = Metric("External", "queue", Target("AverageValue", 10_000))


def pod(name: str, *, phase: str = "Running", ready: bool = True, asked: str = "1", since: str = START) -> Object:
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}]
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": asked}}}]}
    status = {"phase": phase, "startTime": START, "conditions": conditions}
    return Object(Key("Pod", "default", name), name, body={"spec": spec}, status=status)


def samples(values: Mapping[str, int]) -> dict[str, Reading]:
    return {name: Reading(("default", "Pod", name, "cpu"), value, NOW) for name, value in values.items()}


def asked(metric: Metric, pods: list[Object], values: Mapping[str, int], replicas: int | None = None) -> int:
    size = Size(len(pods) if replicas is None else replicas, Roster(pods))
    return from_pods(metric, size, samples(values), NEAR, NOW).replicas


def reference(values: list[int | None], target: int) -> int:
    """Kubernetes' calculation for pods that request 1000m each and all run and are ready; None has no sample."""
    known = [value for value in values if value is not None]
    ratio = sum(known) * 100 // (1000 * len(known)) / target
    missing = len(values) - len(known)
    current = len(values)
    if not missing:
        return current if abs(ratio - 1) <= 0.1 + 1e-12 else math.ceil(ratio * current - 1e-9)
    if ratio < 1:
        known += [1000 * max(100, target) // 100] * missing
    elif ratio > 1:
        known += [0] * missing
    new = sum(known) * 100 // (1000 * len(known)) / target
    if abs(new - 1) <= 0.1 + 1e-12 or (ratio < 1 < new) or (new < 1 < ratio):
        return current
    count = math.ceil(new * len(known) - 1e-9)
    return current if (new < 1 and count > current) or (new > 1 and count < current) else count


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 3000)), min_size=1, max_size=12).filter(any),
    st.integers(1, 150),
)
def test_utilization_asks_for_what_kubernetes_asks_for(values: list[int | None], target: int) -> None:
    pods = [pod(f"p{number:02}") for number in range(len(values))]
    known = {one.name: value for one, value in zip(pods, values, strict=True) if value is not None}
    metric = Metric("Resource", "cpu", Target("Utilization", target))
    assert asked(metric, pods, known) == reference(values, target)


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(0, 5000))
def test_a_ratio_rounds_up_exactly(part: int, whole: int, count: int) -> None:
    found = Ratio(part, whole).of(count)
    assert found == 2**31 - 1 or (found - 1) * whole < part * count <= found * whole


def test_failed_and_deleted_pods_are_nobody() -> None:
    pods = [pod("a"), pod("b", phase="Failed")]
    assert asked(CPU, pods, {"a": 1000, "b": 0}, replicas=1) == 2


def test_a_pod_that_starts_holds_back_growth_and_does_not_hold_back_shrinking() -> None:
    starting = pod("c", phase="Pending")
    assert asked(CPU, [pod("a"), pod("b"), starting], {"a": 780, "b": 780}) == 3
    assert asked(CPU, [pod("a"), pod("b"), starting], {"a": 100, "b": 100}) == 1


@pytest.mark.parametrize(("since", "counts"), [("1970-01-01T00:00:10Z", False), ("1970-01-01T00:02:00Z", True)])
def test_a_pod_that_was_ready_once_counts(since: str, counts: bool) -> None:
    """It turned not ready within half a minute of its start, so it never was; or later, so it was."""
    pods = [pod("a"), pod("b"), pod("c", ready=False, since=since)]
    used = {"a": 800, "b": 800, "c": 2000}
    assert asked(CPU, pods, used) == (8 if counts else 3)


def test_readiness_does_not_matter_for_a_metric_of_its_own() -> None:
    pods = [pod("a"), pod("b"), pod("c", ready=False)]
    assert asked(REQUESTS, pods, {"a": 10_000, "b": 30_000, "c": 50_000}) == 6


def test_without_a_sample_nothing_is_proposed() -> None:
    with pytest.raises(NoProposal, match="no samples"):
        asked(CPU, [pod("a")], {})


def test_a_pod_without_a_request_has_no_utilization() -> None:
    bare = Object(
        Key("Pod", "default", "b"), "b", body={"spec": {"containers": [{"name": "c"}]}}, status=pod("b").status
    )
    with pytest.raises(NoProposal, match="missing request for cpu in container c of Pod b"):
        asked(CPU, [pod("a"), bare], {"a": 100, "b": 100})


@pytest.mark.parametrize(
    ("replicas", "total", "wanted"),
    [(4, 41_000, 4), (4, 63_000, 7), (10, 100_000, 10), (0, 40_000, 4), (0, 0, 0), (3, 0, 0), (1, 10**16, 2**31 - 1)],
)
def test_an_average_is_over_the_replicas_that_are_wanted(replicas: int, total: int, wanted: int) -> None:
    """Pods that there are beside them, as in a rolling update, change nothing."""
    pods = [pod(f"p{number}") for number in range(replicas + 1)] if replicas < 100 else []
    assert from_total(QUEUE, Size(replicas, Roster(pods)), total, NEAR).replicas == wanted


def test_a_value_multiplies_the_ready_pods() -> None:
    metric = Metric("Object", "requests", Target("Value", 10_000), described=Key("Service", "default", "web"))
    pods = [pod("a"), pod("b", ready=False), pod("c", ready=False)]
    assert from_total(metric, Size(3, Roster(pods)), 50_000, NEAR).replicas == 5
    assert from_total(metric, Size(0, Roster([])), 15_000, NEAR).replicas == 2
    with pytest.raises(NoProposal, match="no pods to multiply"):
        from_total(metric, Size(3, Roster([])), 50_000, NEAR)
