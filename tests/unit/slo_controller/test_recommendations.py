"""Recommendations: percentiles of past use with a margin, bounds by how much is known, and more memory after a kill."""

import pytest

from kube import Key, rfc3339
from resources import parse_quantity
from slo_controller.domain.lending.terms import Use
from slo_controller.domain.prediction.container_use import DAY_MS, ContainerUse
from slo_controller.domain.prediction.histogram import CPU, MEMORY
from slo_controller.domain.recommending.estimate import LEAST_CPU, LEAST_MEMORY, estimate

MINUTE = 60_000
GIB = 1 << 30
KEY = Key("Recommendation.analysis.koordinator.sh", "default", "r")
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}


def recommend(toy, target: dict[str, object] | None = None) -> None:
    target = target or {"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    api = {"apiVersion": "analysis.koordinator.sh/v1alpha1", "kind": "Recommendation"}
    toy.put({**api, "metadata": {"name": "r", "namespace": "default"}, "spec": {"target": target}})


def told(toy) -> dict[str, dict[str, int]]:
    """What each container should ask for."""
    listed = toy.store.objects[KEY].status["podStatus"]["containerStatuses"]
    return {
        one["containerName"]: {
            name: parse_quantity(amount) if name == "memory" else amount for name, amount in one["resources"].items()
        }
        for one in listed
    }


def condition(toy) -> dict[str, str]:
    return toy.store.objects[KEY].status["conditions"][0]


@pytest.fixture
def off(make_toy):
    """A node of which nothing is lent: recommendations do not ask for that."""
    toy = make_toy()
    toy.node()
    toy.pod("web-0", cpu="4", memory="8G", metadata={"ownerReferences": [OWNER]})
    return toy


def test_a_workload_that_was_not_measured_has_none_and_is_told_so(off) -> None:
    recommend(off)
    off.settle()
    assert told(off) == {} and condition(off)["reason"] == "NothingMeasured"
    assert "Deployment/web" in condition(off)["message"]


def test_it_is_a_percentile_with_a_margin_and_grows_surer(off) -> None:
    recommend(off)
    for at in range(1500):
        off.use(web_0=("2" if at % 20 else "4", "3Gi"))
        off.advance(MINUTE)
    cpu = CPU.end(CPU.bucket(2_000)) * 115 // 100
    memory = MEMORY.end(MEMORY.bucket(3 * GIB)) * 115 // 100
    assert told(off) == {"main": {"cpu": f"{cpu}m", "memory": memory}}
    assert condition(off)["reason"] == "Confident" and "known for 1.0 days" in condition(off)["message"]


def test_it_is_not_written_for_every_sample(off) -> None:
    recommend(off)
    for _ in range(240):
        off.use(web_0=("2", "3Gi"))
        off.advance(MINUTE)
    written = [one for one in off.decided if one.name == "RecommendationComputed"]
    assert len(written) < 60, len(written)
    off.restart()
    assert off.settle() == []


def test_a_kill_for_want_of_memory_asks_for_more_once(off) -> None:
    recommend(off)
    off.use(web_0=("1", "1Gi"))
    off.advance(2 * MINUTE)
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": rfc3339(off.now)}
    status = {"containerStatuses": [{"name": "main", "lastState": {"terminated": ended}}]}
    off.pod("web-0", cpu="4", memory="8G", metadata={"ownerReferences": [OWNER]}, status=status)
    off.advance(2 * MINUTE)
    wanted = MEMORY.end(MEMORY.bucket(8 * 10**9 * 120 // 100)) * 115 // 100
    assert told(off)["main"]["memory"] == wanted
    off.restart()
    assert off.advance(60 * MINUTE) == []


def test_pods_may_be_meant_by_their_labels(off) -> None:
    off.pod("a", metadata={"labels": {"app": "x"}})
    recommend(off, {"podSelector": {"matchLabels": {"app": "x"}}})
    off.use(a=("1", "1Gi"), web_0=("8", "1Gi"))
    off.advance(MINUTE)
    assert told(off)["main"]["cpu"] == f"{CPU.end(CPU.bucket(1_000)) * 115 // 100}m"
    off.pod("b", metadata={"labels": {"app": "x"}})
    off.use(b=("6", "1Gi"))
    off.advance(2 * MINUTE)
    assert told(off)["main"]["cpu"] == f"{CPU.end(CPU.bucket(6_000)) * 115 // 100}m"


def test_a_sample_from_much_later_teaches_nothing(off) -> None:
    """It would weigh more than all that come before its time."""
    recommend(off)
    off.now += 365 * DAY_MS
    off.use(web_0=("64", "60Gi"))
    off.now -= 365 * DAY_MS
    off.advance(2 * MINUTE)
    assert told(off) == {}
    off.use(web_0=("2", "3Gi"))
    off.advance(2 * MINUTE)
    assert told(off)["main"]["cpu"] == f"{CPU.end(CPU.bucket(2_000)) * 115 // 100}m"


def used(*samples: tuple[int, int, int]) -> ContainerUse:
    """One with samples of cpu and memory at minutes."""
    known = ContainerUse(samples[0][2] * MINUTE, samples[0][2] * MINUTE)
    for cpu, memory, minute in samples:
        known.add(Use(cpu, memory), minute * MINUTE)
    return known


def test_bounds_are_far_away_where_little_is_known() -> None:
    little = estimate([used(*((1_000, GIB, minute) for minute in range(10)))], 1)
    much = estimate([used(*((1_000, GIB, minute) for minute in range(5 * 1440)))], 1)
    assert little is not None and much is not None
    assert little.target == much.target
    assert little.upper.cpu > 100 * much.upper.cpu and little.lower.cpu < much.lower.cpu
    assert much.lower.cpu <= much.target.cpu <= much.upper.cpu < much.target.cpu * 13 // 10


def test_nothing_starts_with_less_than_a_little() -> None:
    found = estimate([used((0, 0, 0))], 2)
    assert found is not None
    assert found.target == Use(CPU.end(0) * 115 // 100, LEAST_MEMORY // 2) and found.lower.cpu == LEAST_CPU // 2
    assert estimate([], 1) is None


def test_of_memory_the_peak_of_each_day_counts() -> None:
    """One short peak a day is what a container has to have room for; of cpu it is passed over."""
    days = 4
    samples = [
        (8_000, 4 * GIB, day * 1440 + at) if at == 7 else (500, GIB, day * 1440 + at)
        for day in range(days)
        for at in range(60)
    ]
    known = used(*samples)
    found = estimate([known], 1)
    assert found is not None and found.target.memory > 4 * GIB and found.target.cpu < 700
    assert known.day == (days - 1) * 1440 * MINUTE // DAY_MS
