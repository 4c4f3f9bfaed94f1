"""Nodes that use little come first where the policy says so; scored by vectors as by the plain rule."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns.vectors import ALL
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.nodes.load_score import LoadScore
from gang_scheduler.domain.pods.pod_shape import ResourceRows, ShapeCatalog
from gang_scheduler.domain.room.shape_view import ShapeView
from gang_scheduler.domain.terms.load_estimate import Load
from gang_scheduler.domain.terms.load_policy import LoadPolicy, LoadRanking
from kube import Manifest, rfc3339

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FULL = 1_000_000


def usage(cpu: int, memory: int = 0) -> Manifest:
    return {"resources": {"cpu": f"{cpu}m", "memory": str(memory)}}


def measured(toy: Any, node: str, cpu: int, memory: int = 0, age_s: int = 0, **more: Any) -> None:
    status = {"updateTime": rfc3339(toy.now - 1000 * age_s), "nodeMetric": {"nodeUsage": usage(cpu, memory), **more}}
    pods = [
        {"namespace": "default", "name": name, "podUsage": usage(used)} for name, used in more.pop("pods", {}).items()
    ]
    metadata = {"name": node}
    api = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}
    toy.put({**api, "metadata": metadata, "status": {**status, "podsMetric": pods}})


def ranking(new_toy: Any, **policy: Any) -> Any:
    """Two nodes of ten CPUs; n1 is fuller by requests."""
    toy = new_toy(core=SchedulerCore(load=LoadPolicy.of({"cpu": 0, "memory": 0, **policy})))
    toy.node("n1", cpu=10, memory=1000)
    toy.node("n2", cpu=10, memory=1000)
    toy.pods("filler", cpu=2, memory=1, node="n1")
    return toy


def test_by_default_what_nodes_use_does_not_rank_them(new_toy: Any) -> None:
    toy = ranking(new_toy)
    measured(toy, "n1", 9000)
    measured(toy, "n2", 0)
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "n1"


def test_the_idler_node_comes_first_though_it_is_emptier_by_requests(new_toy: Any) -> None:
    toy = ranking(new_toy, scoreWeight=2)
    measured(toy, "n1", 9000)
    measured(toy, "n2", 0)
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "n2"
    assert toy.explain("Pod", "p")["why"]["parts"]["load"] > toy.explain("Pod", "p")["why"]["runnersUp"][0]["score"]


def test_a_node_without_a_fresh_measurement_scores_nothing(new_toy: Any) -> None:
    toy = ranking(new_toy, scoreWeight=2)
    measured(toy, "n1", 8000)
    measured(toy, "n2", 0, age_s=200)
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "n1"


def test_copies_spread_by_what_they_are_thought_to_use(new_toy: Any) -> None:
    """Each placed one counts with its estimate, so the next one goes to the other node."""
    toy = ranking(new_toy, scoreWeight=10)
    measured(toy, "n1", 0, age_s=61)
    measured(toy, "n2", 0, age_s=61)
    toy.pods("p", 4, cpu=2)
    toy.settle()
    assert sorted(toy.where(f"p-{at}") for at in range(4)) == ["n1", "n1", "n2", "n2"]


@pytest.mark.parametrize(
    ("policy", "node"),
    [({"resourceWeights": {"cpu": 1, "memory": 0}}, "n1"), ({"resourceWeights": {"cpu": 0, "memory": 1}}, "n2")],
)
def test_resources_count_by_weight(new_toy: Any, policy: Manifest, node: str) -> None:
    toy = ranking(new_toy, scoreWeight=5, **policy)
    measured(toy, "n1", 1000, 900)
    measured(toy, "n2", 9000, 100)
    toy.pods("p", cpu=1, memory=1)
    toy.settle()
    assert toy.where("p") == node


def test_the_resource_that_is_used_most_may_count_more(new_toy: Any) -> None:
    """On n1 one resource is nearly used up, on n2 both are used a little more on average."""
    placed = []
    for dominant in (0, 10):
        toy = ranking(new_toy, scoreWeight=5, dominantResourceWeight=dominant)
        measured(toy, "n1", 0, 900)
        measured(toy, "n2", 6000, 600)
        toy.pods("p", cpu=1, memory=1)
        toy.settle()
        placed.append(toy.where("p"))
    assert placed == ["n1", "n2"]


def test_for_prod_pods_only_what_prod_pods_use_may_count(new_toy: Any) -> None:
    toy = ranking(new_toy, scoreWeight=5, scoreAccordingProdUsage=True)
    toy.pods("batch", cpu=1, priority=5500, node="n1")
    toy.pods("online", cpu=1, priority=9500, node="n2")
    measured(toy, "n1", 8000, pods={"batch": 8000})
    measured(toy, "n2", 5000, pods={"online": 5000})
    toy.pods("p", cpu=1, priority=9500)
    toy.pods("b", cpu=1, priority=5500)
    toy.settle()
    assert (toy.where("p"), toy.where("b")) == ("n1", "n2")


def test_a_percentile_may_count_instead_of_the_last_sample(new_toy: Any) -> None:
    toy = ranking(new_toy, scoreWeight=5, aggregated={"scoreAggregationType": "p95"})
    measured(toy, "n1", 0, aggregatedNodeUsages=[{"duration": "5m", "usage": {"p95": usage(9000)}}])
    measured(toy, "n2", 5000)
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "n2"


def test_a_percentile_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="scoreAggregationType 'p42' is none of"):
        LoadPolicy.of({"aggregated": {"scoreAggregationType": "p42"}})


@given(
    st.lists(st.tuples(*[st.integers(0, 5000)] * 4, st.booleans()), min_size=1, max_size=6),
    st.tuples(*[st.integers(0, 3)] * 3),
    st.booleans(),
    st.integers(1, 900),
)
def test_a_score_is_what_the_plain_rule_says(
    nodes: list[tuple[int, int, int, int, bool]], weights: tuple[int, int, int], by_prod: bool, asked: int
) -> None:
    ranking = LoadRanking(3, weights[:2], weights[2], by_prod)
    score = LoadScore(ranking)
    spec = {"containers": [{"resources": {"requests": {"cpu": f"{asked}m", "memory": asked}}}]}
    shape = ShapeCatalog(ResourceRows(), (100, 100)).form_of(spec, "default", {}).shape
    for slot, (cpu, memory, used, prod, _) in enumerate(nodes):
        score.measure(slot, Load(cpu, memory), Load(used, used), Load(prod, 0))
        score.add(slot, [(Load(10, 10), True), (Load(5, 0), False)], 1)
        score.add(slot, [(Load(5, 0), False)], -1)
    fresh = np.array([one[4] for one in nodes])
    expected = []
    for cpu, memory, used, prod, is_fresh in nodes:
        taken = (prod + 10, 10) if by_prod else (used + 10, used + 10)
        free = [
            Fraction(max(0, max(1, have) - amount - asked), max(1, have)) * FULL
            for have, amount in zip((cpu, memory), taken, strict=True)
        ]
        parts = [part.numerator // part.denominator for part in free]
        total = parts[0] * weights[0] + parts[1] * weights[1] + min(parts) * weights[2]
        expected.append(3 * total // max(1, sum(weights)) if is_fresh else 0)
    # A quotient of floats may fall one short of the exact one where that is whole.
    assert np.abs(score.of(shape, ALL, fresh, FULL) - np.array(expected)).max() <= 3 * 3


@QUIET
@given(st.lists(st.tuples(st.sampled_from(["n1", "n2"]), st.integers(0, 9000), st.integers(0, 200)), max_size=6))
def test_a_view_that_follows_measurements_is_one_made_anew(new_toy: Any, steps: list[tuple[str, int, int]]) -> None:
    toy = ranking(new_toy, scoreWeight=2)
    toy.pods("p", cpu=100)
    toy.settle()
    room = toy.core.cluster.room
    for node, cpu, age_s in steps:
        measured(toy, node, cpu, age_s=age_s)
        toy.pods(f"q-{cpu}", cpu="100m")
        toy.settle()
        (record,) = (one for one in toy.core.cluster.pods.values() if one.key.name == "p")
        kept = room.view(record)
        anew = ShapeView(record.shape, room.table, kept.placement, room.foresight).sync()
        assert kept.keys.tolist() == anew.keys.tolist()
