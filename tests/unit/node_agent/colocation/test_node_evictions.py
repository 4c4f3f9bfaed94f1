"""Who has to leave a node: for a reason that holds now, in one order, and nobody more than needed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

from node_agent.domain.colocation.evictions import PASSED_OVER_MS, PATIENCE_MS, current
from node_agent.domain.colocation.pods import NEVER, NodePod

GIB = 1 << 30
WILLING = {"koordinator.sh/eviction-enabled": "true"}


def rules(**more: Any) -> dict[str, Any]:
    return {"resourceUsedThresholdWithBE": {"enable": True, "memoryEvictThresholdPercent": 80, **more}}


def names(one: Desk) -> list[str]:
    return [wish.name for wish in current(one.kept.asked, one.now)]


def lent(cpu: int, memory: str = "1Gi") -> dict[str, str]:
    return {"kubernetes.io/batch-cpu": str(cpu), "kubernetes.io/batch-memory": memory}


def test_nothing_is_asked_below_the_threshold_or_with_rules_switched_off() -> None:
    pods = (pod("a", "BE", 5000), pod("web", "LS", 9000))
    below = Desk(machine(memory="100Gi"), rules(), *pods)
    below.uses(memory=79 * GIB, a=(100, 50 * GIB)).round()
    off = Desk(machine(memory="100Gi"), {"resourceUsedThresholdWithBE": {"enable": False}}, *pods)
    off.uses(memory=99 * GIB, a=(100, 50 * GIB)).round()
    assert names(below) == names(off) == []


def test_the_wish_says_why_with_numbers() -> None:
    one = Desk(machine(memory="100Gi"), rules(), pod("a", "BE", 5000))
    one.uses(memory=90 * GIB, a=(100, 20 * GIB)).round()
    (wish,) = current(one.kept.asked, one.now)
    assert (wish.uid, wish.reason, wish.at) == ("a", "MemoryEvict", one.now)
    assert wish.message == (
        "the node uses 90Gi of 100Gi memory (90 %, from 80 % on); down to 78 %; default/a (priority 5000) frees 20Gi"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            {"metadata": {"annotations": {"koordinator.sh/eviction-priority": "-1"}}, "priority": 5900},
            {"priority": 5000},
        ),
        ({"priority": 5000}, {"priority": 5001}),
        ({"labels": {"koordinator.sh/priority": "1"}}, {"labels": {"koordinator.sh/priority": "2"}}),
        ({}, {"metadata": {"annotations": {"scheduling.koordinator.sh/eviction-cost": "5"}}}),
        (
            {"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}},
            {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
        ),
    ],
)
def test_of_two_pods_that_free_the_same_one_goes_first(first: Any, second: Any) -> None:
    """Whichever of them is seen first."""
    pods = [pod(name, "BE", **{"priority": 5000, **parts}) for name, parts in (("x", first), ("y", second))]
    for order in (pods, pods[::-1]):
        one = Desk(machine(memory="100Gi"), rules(), *order)
        one.uses(memory=85 * GIB, x=(1, 30 * GIB), y=(1, 30 * GIB)).round()
        assert names(one) == ["x"]


@pytest.mark.parametrize(
    "parts",
    [
        {"qos": "BE", "priority": 9000},
        {"qos": "BE", "priority": 5000, "labels": {"koordinator.sh/eviction-enabled": "false"}},
        {
            "qos": "BE",
            "priority": 5000,
            "metadata": {"annotations": {"scheduling.koordinator.sh/eviction-cost": str(NEVER)}},
        },
        {
            "qos": "BE",
            "priority": 5000,
            "metadata": {"annotations": {"koordinator.sh/eviction-policy": '["CPUEvict"]'}},
        },
        {"qos": "LS", "priority": 7000},
        {"qos": "LS", "priority": 7600, "labels": WILLING},
        {"qos": "", "priority": 0},
    ],
)
def test_some_pods_are_never_sent_away_for_memory(parts: Any) -> None:
    """Those that serve, those that forbid it, and those that merely ask for nothing."""
    one = Desk(machine(memory="100Gi"), rules(evictEnabledPriorityThreshold=7500), pod("a", **parts))
    one.uses(memory=95 * GIB, a=(1, 50 * GIB)).round()
    assert names(one) == []


def test_a_pod_that_does_not_go_is_not_waited_for_and_left_alone_for_a_while() -> None:
    one = Desk(machine(memory="100Gi"), rules(), pod("a", "BE", 5000), pod("b", "BE", 5001))
    one.uses(memory=90 * GIB, a=(1, 20 * GIB), b=(1, 20 * GIB)).round()
    assert names(one) == ["a"]
    one.round(PATIENCE_MS / 1000 - 1)
    assert names(one) == ["a"]
    one.round(1)
    assert names(one) == ["b"]
    one.round(PATIENCE_MS / 1000)
    assert names(one) == []
    one.round(PASSED_OVER_MS / 1000)
    assert names(one) == ["a"]


def test_best_effort_by_allocatable_is_starved_only_by_a_node_that_lends() -> None:
    """A node that lends nothing by now says nothing of this: nobody goes (koordinator#2118)."""
    slo = rules(
        cpuEvictPolicy="evictByAllocatable",
        cpuEvictTimeWindowSeconds=3,
        cpuEvictBESatisfactionLowerPercent=30,
        cpuEvictBESatisfactionUpperPercent=40,
        cpuSuppressThresholdPercent=100,
    )
    for lends, gone in ((None, []), ("0", []), ("10000", ["a"])):
        allocatable = {} if lends is None else {"kubernetes.io/batch-cpu": lends}
        hogs = [pod(name, "BE", 5000 + n, requests=lent(20_000)) for n, name in enumerate("ab")]
        one = Desk(machine(allocatable=allocatable), slo, *hogs)
        one.uses(a=10_000, b=10_000)
        for _ in range(4):
            one.round()
        assert names(one) == gone


def test_more_asked_for_than_is_lent_sends_the_willing_away() -> None:
    slo = rules(
        allocatableEvictPriorityThreshold=5999,
        cpuAllocatableEvictThresholdPercent=110,
        cpuAllocatableEvictLowerPercent=100,
    )
    hogs = [pod(name, "BE", 5000 + n, requests=lent(3000), labels=WILLING) for n, name in enumerate("abcd")]
    for lends, gone in (("11000", []), ("10000", ["a"]), ("5000", ["a", "b", "c"]), ("0", [])):
        one = Desk(machine(allocatable={"kubernetes.io/batch-cpu": lends}), slo, *hogs)
        one.uses(a=10).round()
        assert names(one) == gone, lends


def test_without_a_mark_to_come_down_to_nobody_goes_for_what_was_lent() -> None:
    """And only what pods asked for that may go counts: 10 of 11 cores here, not 22."""
    above = pod("above", "BE", 5900, requests=lent(12_000), labels=WILLING)
    hogs = [pod(name, "BE", 5000 + n, requests=lent(5000), labels=WILLING) for n, name in enumerate("ab")]
    for more, lends, gone in (
        ({}, "1000", []),
        ({"cpuAllocatableEvictLowerPercent": 50}, "11000", []),
        ({"cpuAllocatableEvictLowerPercent": 50}, "9000", ["a", "b"]),
        ({"cpuAllocatableEvictLowerPercent": 60}, "9000", ["a"]),
    ):
        slo = rules(allocatableEvictPriorityThreshold=5500, cpuAllocatableEvictThresholdPercent=100, **more)
        one = Desk(machine(allocatable={"kubernetes.io/batch-cpu": lends}), slo, above, *hogs)
        one.uses(a=10).round()
        assert names(one) == gone, (more, lends)


@pytest.mark.parametrize("highest", [8000, 9999])
def test_a_threshold_that_would_take_pods_that_serve_takes_nobody(highest: int) -> None:
    slo = rules(evictEnabledPriorityThreshold=highest)
    one = Desk(machine(memory="100Gi"), slo, pod("mid", "LS", 7000, labels=WILLING))
    one.uses(memory=95 * GIB, mid=(10, 30 * GIB)).round()
    assert names(one) == []


def test_in_one_round_all_reasons_are_seen_to_and_what_one_frees_counts_for_the_next() -> None:
    """By what is lent 4 of 20Gi have to go, by use 15: the first pod frees 10 of these, the second is asked at once."""
    slo = rules(
        memoryEvictLowerPercent=75,
        allocatableEvictPriorityThreshold=5999,
        memoryAllocatableEvictThresholdPercent=100,
        memoryAllocatableEvictLowerPercent=90,
    )
    hogs = [pod(name, "BE", 5000 + n, requests=lent(1, "10Gi"), labels=WILLING) for n, name in enumerate("abc")]
    one = Desk(machine(memory="100Gi", allocatable={"kubernetes.io/batch-memory": "29Gi"}), slo, *hogs)
    one.uses(memory=90 * GIB, a=(1, 10 * GIB), b=(1, 10 * GIB), c=(1, 10 * GIB)).round()
    assert names(one) == ["a", "b"]
    one.round()
    assert names(one) == ["a", "b"]


def test_a_spike_of_cpu_use_sends_nobody_away() -> None:
    slo = rules(cpuEvictThresholdPercent=80, evictEnabledPriorityThreshold=7999)
    one = Desk(machine(10), slo, pod("mid", "LS", 7000, labels=WILLING))
    for used in (9000, 2000, 9000, 2000):
        one.uses(mid=used).round()
    assert names(one) == []
    for _ in range(12):
        one.uses(mid=9000).round()
    assert names(one) == ["mid"]


@given(
    pods=st.lists(st.tuples(st.integers(5000, 5003), st.integers(0, 20), st.booleans()), max_size=8),
    others=st.integers(40, 80),
    leaving=st.integers(0, 3),
)
def test_as_few_go_as_free_what_is_needed(pods: list[tuple[int, int, bool]], others: int, leaving: int) -> None:
    """Counted with the simple rule: in the order of priority and size, until it is enough with what is leaving already."""
    made: list[NodePod] = []
    for number, (priority, _, _) in enumerate(pods):
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if number < leaving else {}
        made.append(pod(f"p{number}", "BE", priority, metadata=gone))
    sizes = {f"p{number}": size * GIB for number, (_, size, _) in enumerate(pods)}
    used = others * GIB + sum(sizes.values())
    one = Desk(machine(memory="100Gi"), rules(memoryEvictLowerPercent=70), *made)
    one.uses(memory=used, **{name: (1, size) for name, size in sizes.items()}).round()
    percent = used * 100 // (100 * GIB)
    need = 100 * GIB * (percent - 70) // 100 if percent >= 80 else 0
    need -= sum(sizes[item.uid] for item in made if item.deleting)
    wanted = []
    for item in sorted(
        made, key=lambda item: (item.priority, -sizes[item.uid], [-ord(letter) for letter in item.name])
    ):
        if need > 0 and not item.deleting and sizes[item.uid]:
            wanted.append(item.name)
            need -= sizes[item.uid]
    assert names(one) == wanted
