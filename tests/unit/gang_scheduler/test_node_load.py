"""Busy nodes take no more pods; counted by vectors as by the plain rule."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.nodes.node_load import NodeLoad
from gang_scheduler.domain.nodes.node_metric import Measurement
from gang_scheduler.domain.pods.pod_record import Newcomer
from gang_scheduler.domain.pods.pod_shape import ResourceRows, ShapeCatalog
from gang_scheduler.domain.terms.load_estimate import Load, estimate, own_factors
from gang_scheduler.domain.terms.load_policy import LoadPolicy, Thresholds
from kube import Key, Manifest, rfc3339

START_MS = 1_767_225_600_000
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GIB = 1 << 30


def measured(toy: Any, node: str = "n1", cpu: int = 0, memory: int = 0, at: int | None = None, **parts: Any) -> None:
    """A NodeMetric: cpu in milli-cores, memory in bytes."""
    status: Manifest = {
        "updateTime": rfc3339(toy.now if at is None else at),
        "nodeMetric": {"nodeUsage": usage(cpu, memory), **parts.pop("more", {})},
        **parts,
    }
    toy.put(
        {
            "apiVersion": "slo.koordinator.sh/v1alpha1",
            "kind": "NodeMetric",
            "metadata": {"name": node},
            "status": status,
        }
    )


def usage(cpu: int, memory: int = 0) -> Manifest:
    return {"resources": {"cpu": f"{cpu}m", "memory": str(memory)}}


def bound(toy: Any, *names: str) -> list[bool]:
    return [bool(toy.where(name)) for name in names]


def test_a_node_above_its_threshold_waits_for_a_cooler_measurement(toy: Any) -> None:
    toy.node("n1", cpu=10, memory="10Gi")
    measured(toy, cpu=6400)
    toy.pods("p", requests={"cpu": 1, "memory": 1})
    toy.settle()
    assert bound(toy, "p") == [False]
    said = (
        "0/1 nodes are available: 1 node(s) are too busy by cpu (the pod is thought to use 850m; on n1 6400m are used"
    )
    assert said in toy.message("p")
    assert toy.log[-1].reason == "NodesTooBusy"
    measured(toy, cpu=5600)
    toy.settle()
    assert bound(toy, "p") == [True]


def test_what_was_just_placed_counts_with_its_estimate_until_it_is_measured(toy: Any) -> None:
    toy.node("n1", cpu=100, memory="100Gi")
    measured(toy, cpu=60_000)
    toy.pods("p", 6, requests={"cpu": 2})
    toy.settle()
    names = [f"p-{at}" for at in range(6)]
    assert bound(toy, *names) == [True] * 3 + [False] * 3
    toy.now += 120_000
    pods = [{"namespace": "default", "name": name, "podUsage": usage(100)} for name in names[:3]]
    measured(toy, cpu=60_300, podsMetric=pods)
    toy.settle()
    assert sum(bound(toy, *names)) > 3


def test_a_measurement_that_is_too_old_closes_nothing_and_its_end_is_a_deadline(toy: Any) -> None:
    toy.node("n1", cpu=10, memory="10Gi")
    measured(toy, cpu=9000)
    toy.pods("p", requests={"cpu": 1})
    toy.settle()
    assert bound(toy, "p") == [False]
    assert toy.core.deadline() == START_MS + 180_001
    toy.now = START_MS + 180_001
    toy.settle()
    assert bound(toy, "p") == [True]


def test_pods_go_to_the_node_that_is_not_busy(toy: Any) -> None:
    toy.node("n1", cpu=10, memory="10Gi")
    toy.node("n2", cpu=10, memory="10Gi")
    measured(toy, "n1", memory=97 * GIB // 10)
    toy.pods("p", 2, requests={"cpu": 1, "memory": "10Mi"})
    toy.settle()
    assert [toy.where(f"p-{at}") for at in range(2)] == ["n2", "n2"]


def test_nobody_is_evicted_for_a_pod_that_only_load_keeps_out(toy: Any) -> None:
    """Whoever leaves makes the node no cooler before it is measured again."""
    toy.node("n1", cpu=10, memory="10Gi")
    toy.pods("low", requests={"cpu": 1}, priority=1, node="n1")
    measured(toy, cpu=9000)
    toy.pods("high", requests={"cpu": 1}, priority=100)
    toy.settle()
    assert (toy.evicted, bound(toy, "high")) == ([], [False])


def test_a_node_may_have_thresholds_of_its_own(toy: Any) -> None:
    toy.node("n1", cpu=10, memory="10Gi")
    node = toy.store.get(Key("Node", "", "n1")).manifest()
    own = {"scheduling.koordinator.sh/usage-thresholds": json.dumps({"usageThresholds": {"cpu": 90}})}
    toy.put({**node, "metadata": {"name": "n1", "annotations": own}})
    measured(toy, cpu=8000)
    toy.pods("p", requests={"cpu": 1})
    toy.settle()
    assert bound(toy, "p") == [True]
    toy.put({**node, "metadata": {"name": "n1", "annotations": {}}})
    toy.pods("q", requests={"cpu": 1})
    toy.settle()
    assert bound(toy, "q") == [False]


def test_pods_of_a_daemon_set_go_to_busy_nodes_too(toy: Any) -> None:
    toy.node("n1", cpu=10, memory="10Gi")
    measured(toy, cpu=9000)
    toy.pods("d", requests={"cpu": 1})
    pod = toy.store.get(Key("Pod", "default", "d")).manifest()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
    toy.put({**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})
    toy.settle()
    assert bound(toy, "d") == [True]


def test_a_percentile_of_the_usage_counts_where_the_policy_says_so(new_toy: Any) -> None:
    given_ = {
        "aggregated": {"usageThresholds": {"cpu": 50}, "usageAggregationType": "p95", "usageAggregatedDuration": "5m"}
    }
    toy = new_toy(core=SchedulerCore(load=LoadPolicy.of(given_)))
    toy.node("n1", cpu=10, memory="10Gi")
    peaks = [{"duration": "5m0s", "usage": {"p95": usage(6000)}}, {"duration": "10m0s", "usage": {"p95": usage(1000)}}]
    measured(toy, cpu=1000, more={"aggregatedNodeUsages": peaks})
    toy.pods("p", requests={"cpu": 1})
    toy.settle()
    assert bound(toy, "p") == [False]


def test_prod_pods_may_have_a_limit_among_themselves(new_toy: Any) -> None:
    """A busy node of batch pods takes prod pods as long as these together use little."""
    toy = new_toy(core=SchedulerCore(load=LoadPolicy.of({"prodUsageThresholds": {"cpu": 30}})))
    toy.node("n1", cpu=10, memory="10Gi")
    toy.pods("batch", requests={"cpu": 1}, priority=5500, node="n1")
    toy.pods("online", requests={"cpu": 1}, priority=9500, node="n1")
    of_pods = [
        {"namespace": "default", "name": name, "podUsage": usage(cpu)}
        for name, cpu in (("batch", 7000), ("online", 2000))
    ]
    measured(toy, cpu=9000, podsMetric=of_pods)
    toy.pods("p", 2, requests={"cpu": 1}, priority=9500)
    toy.pods("b", requests={"cpu": 1}, priority=5500)
    toy.settle()
    assert bound(toy, "p-0", "p-1", "b") == [True, False, False]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "2", "memory": "1000"}}, (1700, 700)),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "100"}}, (3400, 70)),
        ({}, (250, 200 << 20)),
        ({"requests": {"kubernetes.io/batch-cpu": "2000", "koordinator.sh/batch-memory": "1000"}}, (1700, 700)),
    ],
)
def test_a_pod_is_thought_to_use_a_part_of_what_it_asks_for(resources: Manifest, expected: tuple[int, int]) -> None:
    assert estimate({"containers": [{"resources": resources}]}, (85, 70)) == expected
    assert own_factors('{"cpu": 50, "memory": 60}') == (50, 60)
    assert own_factors("[]") is None


def test_arguments_are_koordinators_and_unknown_ones_are_errors() -> None:
    assert LoadPolicy.of({"cpu": 50}).thresholds == Thresholds((50, 95))
    assert not LoadPolicy.of(False).enabled
    with pytest.raises(ValueError, match="knows no cpus"):
        LoadPolicy.of({"cpus": 50})


@QUIET
@given(
    st.integers(0, 9000),
    st.integers(0, 9000),
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 200), st.integers(0, 2500)), max_size=4),
    st.integers(1, 3000),
    st.integers(0, 200),
)
def test_a_node_takes_as_many_pods_as_the_plain_rule_allows(
    new_toy: Any, cpu: int, memory: int, others: list[tuple[int, int, int]], asked: int, age_s: int
) -> None:
    """Others ran before, or were bound shortly before the measurement, and used something by then."""
    toy = new_toy()
    toy.node("n1", cpu=50, memory=10_000)
    said = []
    expected = 0
    at = START_MS + 300_000
    for number, (request, before_s, used) in enumerate(others):
        toy.pods(f"o-{number}", requests={"cpu": f"{request}m", "memory": 1}, node="n1")
        pod = toy.store.get(Key("Pod", "default", f"o-{number}"))
        when = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(at - 1000 * before_s)}
        toy.put({**pod.manifest(), "status": {"phase": "Running", "conditions": [when]}})
        said.append({"namespace": "default", "name": f"o-{number}", "podUsage": usage(used)})
        if before_s < 60:
            expected += max(0, round_half_up(Fraction(request * 85, 100)) - used)
    toy.now = at + 1000 * age_s
    measured(toy, cpu=cpu * 4, memory=memory, at=at, podsMetric=said)
    toy.pods("p", 30, requests={"cpu": f"{asked}m", "memory": 1})
    toy.settle()
    mine, placed = round_half_up(Fraction(asked * 85, 100)), 0
    free = 50_000 - sum(request for request, _, _ in others)
    while placed < 30 and free >= asked * (placed + 1):
        total = cpu * 4 + expected + mine * (placed + 1)
        if age_s <= 180 and (percent(total, 50_000) > 65 or percent(memory + placed + 1, 10_000) > 95):
            break
        placed += 1
    assert sum(bound(toy, *(f"p-{at}" for at in range(30)))) == placed


@given(
    st.lists(
        st.tuples(st.integers(0, 70), st.integers(0, 99), st.sampled_from([0, 40]), st.integers(0, 400)), max_size=6
    ),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_few_nodes_are_looked_at_like_many(
    nodes: list[tuple[int, int, int, int]], prod: bool, exempt: bool, closes: bool
) -> None:
    """Of each node: percent of cpu and of memory in use, the limit of prod pods, the age of the measurement in seconds."""
    load = NodeLoad(LoadPolicy(closes_when_expired=closes))
    load.advance(START_MS)
    shape = ShapeCatalog(ResourceRows(), (85, 70)).form_of({"containers": []}, "default", {}).shape
    shape = replace(shape, prod=prod, exempt=exempt)
    for slot, (cpu, memory, limit, age_s) in enumerate(nodes):
        found = Measurement(START_MS - 1000 * age_s, Load(100 * cpu, GIB * memory // 10))
        thresholds = Thresholds(prod=(limit, 0))
        newcomer = Newcomer(Key("Pod", "default", f"p-{slot}"), shape, None)
        load.measure(slot, found, thresholds, Load(10_000, 10 * GIB), [newcomer], lambda _: True)
    few, many = load.copies_at(shape, range(16)), load.copies(shape)
    assert (None if many is None else many.tolist()) == few


def percent(used: int, have: int) -> int:
    return round_half_up(Fraction(100 * used, have))


def round_half_up(value: Fraction) -> int:
    return int(value + Fraction(1, 2))
