"""How much CPU best effort has: by the formula, at once down and slowly up, never on a guess."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.domain.colocation import archive
from node_agent.domain.colocation.cpu_choice import choose_cpus
from node_agent.domain.colocation.cpu_pools import CpuPools
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.machine import Processor

TIER = Group(Tier.BEST_EFFORT)


def rules(policy: str = "cfsQuota", **more: Any) -> dict[str, Any]:
    found = {"enable": True, "cpuSuppressThresholdPercent": 70, "cpuSuppressPolicy": policy, **more}
    return {"resourceUsedThresholdWithBE": found}


@pytest.fixture
def node(desk: Any, make_machine: Any, make_pod: Any) -> Any:
    """A node of 20 CPUs with an online pod and one of best effort."""

    def made(slo: dict[str, Any], **more: Any) -> Any:
        pods = (make_pod("web", "LS", 9500, requests={"cpu": "8"}), make_pod("hog", "BE", 5500))
        return desk(make_machine(**more), slo, *pods)

    return made


def test_what_is_reserved_counts_where_the_system_uses_less(node: Any) -> None:
    found = node(rules(), allocatable={"cpu": "17"}).uses(web=4000, hog=1000, system=500).round()
    assert found.knobs[TIER]["cpu.max"] == "700000 100000"  # 14 - 4 - 3
    assert found.allowance.described() == "7000m = 14000m - 4000m used online - 3000m of the system"


def test_what_is_used_by_pods_that_nobody_knows_counts_as_online(node: Any) -> None:
    found = node(rules()).uses(web=4000, stranger=3000, hog=1000).round()
    assert found.knobs[TIER]["cpu.max"] == "700000 100000"


def test_small_changes_are_not_written(node: Any) -> None:
    one = node(rules())
    one.uses(web=4000).round()
    assert one.uses(web=4100).round().knobs[TIER]["cpu.max"] == "1000000 100000"
    assert one.uses(web=4300).round().knobs[TIER]["cpu.max"] == "970000 100000"


def test_without_fresh_samples_online_pods_are_taken_to_use_what_they_ask_for(node: Any) -> None:
    """And nothing grows, however long nobody measures."""
    one = node(rules())
    one.uses(web=2000).round()
    assert one.round(9, fresh=False).knobs[TIER]["cpu.max"] == "1200000 100000"
    assert one.round(2, fresh=False).knobs[TIER]["cpu.max"] == "600000 100000"
    del one.pods["web"]
    assert one.round(60, fresh=False).knobs[TIER]["cpu.max"] == "600000 100000"
    assert one.uses(hog=1000).round().knobs[TIER]["cpu.max"] == "800000 100000"


def test_a_clock_that_jumps_makes_a_sample_worthless_and_nothing_worse(node: Any) -> None:
    one = node(rules())
    one.uses(web=2000).round()
    one.now -= 3_600_000
    assert one.round(1, fresh=False).knobs[TIER]["cpu.max"] == "600000 100000"
    assert one.uses(web=2000).round().knobs[TIER]["cpu.max"] == "800000 100000"


def test_a_cpu_more_comes_with_some_of_it_to_spare(node: Any) -> None:
    """Use that wavers around a whole CPU does not move best effort to and fro."""
    one = node(rules("cpuset"))
    assert one.uses(web=9500).round().knobs[TIER]["cpuset.cpus"] == "0-4"  # 4.5
    assert one.uses(web=8950).round().knobs[TIER]["cpuset.cpus"] == "0-4"  # 5.05
    assert one.uses(web=8850).round().knobs[TIER]["cpuset.cpus"] == "0-5"
    assert one.uses(web=8950).round().knobs[TIER]["cpuset.cpus"] == "0-5"
    assert one.uses(web=9050).round().knobs[TIER]["cpuset.cpus"] == "0-4"


def test_another_policy_gives_the_other_file_back(node: Any) -> None:
    one = node(rules("cpuset"))
    assert "cpu.max" not in one.uses(web=9500).round().knobs[TIER]
    one.slo = node(rules()).slo
    found = one.round().knobs[TIER]
    assert found == {"cpu.max": "450000 100000"}


def test_with_no_cpu_to_be_had_a_quota_holds_best_effort(desk: Any, make_machine: Any, make_pod: Any) -> None:
    own = {"annotations": {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-3"}'}}
    whole = {"cpu": "4", "memory": "1G"}
    one = desk(
        make_machine(4), rules("cpuset"), make_pod("pin", "LSE", 9500, requests=whole, limits=whole, metadata=own)
    )
    assert one.uses(pin=1000).round().knobs[TIER] == {"cpu.max": "180000 100000"}


HOUR = 3_600


@given(
    jumps=st.lists(st.sampled_from([0, 0, 0, HOUR, -HOUR]), min_size=4, max_size=12),
    used=st.integers(0, 9_000),
    restarts=st.sets(st.integers(0, 11)),
)
def test_a_clock_that_is_set_gives_no_quota_out_of_bounds_and_evicts_nobody(
    jumps: list[int], used: int, restarts: set[int]
) -> None:
    """Whether an agent runs meanwhile or the next one sees another time than what was kept."""
    from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

    slo = rules(cpuEvictThresholdPercent=95, evictEnabledPriorityThreshold=7999, memoryEvictThresholdPercent=95)
    slo["cpuBurstStrategy"] = {"policy": "auto", "cfsQuotaBurstPeriodSeconds": 60}
    web = pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": "2"})
    one = Desk(machine(20), slo, web, pod("hog", "BE", 5500, labels={"koordinator.sh/eviction-enabled": "true"}))
    one.now = 10 * HOUR * 1000
    one.uses(web=1000, hog=used, memory=1 << 30).round()
    for number, jump in enumerate(jumps):
        if number in restarts:
            kept, _ = archive.decode(json.loads(json.dumps(archive.encode(one.kept, {}))))
            one.kept = kept
        one.now += jump * 1000
        knobs = one.round(fresh=not jump).knobs
        assert 1_000_000 <= int(knobs[TIER]["cpu.max"].split()[0]) <= 1_300_000
        main = knobs.get(Group(Tier.BURSTABLE, "web", "main"), {"cpu.max": "200000 100000"})["cpu.max"]
        assert 200_000 <= int(main.split()[0]) <= 600_000
        assert one.kept.asked.wishes == {}
    for _ in range(5):
        assert one.round().knobs[TIER]["cpu.max"] == "1300000 100000"


@given(
    used=st.lists(st.tuples(st.integers(0, 25_000), st.integers(0, 10_000)), min_size=1, max_size=20),
    least=st.one_of(st.none(), st.integers(0, 100)),
)
def test_a_quota_falls_at_once_and_rises_by_a_tenth(used: list[tuple[int, int]], least: int | None) -> None:
    """Against the formula said in one line; whatever is used, and in which order."""
    from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

    slo = rules() if least is None else rules(cpuSuppressMinPercent=least)
    one = Desk(machine(20), slo, pod("web", "LS", 9500), pod("hog", "BE", 5500))
    before: int | None = None
    for online, system in used:
        quota = int(one.uses(web=online, system=system).round().knobs[TIER]["cpu.max"].split()[0])
        plain = max(14_000 - online - system, 200 * (least or 0), 20) * 100
        if before is None:
            assert quota == plain
        elif plain < before:
            assert quota in (plain, before) and quota - plain < 20_000
        else:
            assert before <= quota <= min(max(plain, before), before + 200_000)
        before = quota


@given(
    shared=st.sets(st.integers(0, 31)),
    lent=st.sets(st.integers(0, 31)),
    count=st.integers(0, 40),
    cores=st.sampled_from([16, 32]),
)
def test_cpus_are_chosen_from_the_pools_as_many_as_there_are(
    shared: set[int], lent: set[int], count: int, cores: int
) -> None:
    processors = tuple(Processor(cpu, cpu % cores, cpu % cores % 2) for cpu in range(32))
    pools = CpuPools(frozenset(shared - lent), frozenset(lent))
    chosen = choose_cpus(processors, pools, count)
    assert len(set(chosen)) == len(chosen) == min(count, len(shared | lent))
    assert set(chosen) <= shared | lent and list(chosen) == sorted(chosen)
    assert choose_cpus(tuple(reversed(processors)), pools, count) == chosen
    there = len(shared | lent)
    assert sum(cpu in lent for cpu in chosen) == (min(count, there) * len(lent) // there if there else 0)


def test_whole_cores_come_before_single_threads_from_each_numa_node_in_turn(threads: Any) -> None:
    processors = threads(2, 4)  # cores 0-3 and 4-7; threads 0-7 and 8-15
    pools = CpuPools(frozenset(range(16)) - {8}, frozenset())
    assert choose_cpus(processors, pools, 4) == (1, 4, 9, 12)
    assert choose_cpus(processors, pools, 5) == (1, 4, 5, 9, 12)


@pytest.mark.parametrize(("count", "chosen"), [(3, (0, 2, 4)), (5, (0, 1, 2, 4, 6)), (7, (0, 1, 2, 3, 4, 5, 6))])
def test_the_cpu_that_is_left_over_comes_from_the_numa_node_whose_turn_it_is(
    threads: Any, count: int, chosen: tuple[int, ...]
) -> None:
    """Two nodes of two cores: 0-1 with the threads 4-5, and 2-3 with 6-7."""
    assert choose_cpus(threads(2, 2), CpuPools(frozenset(range(8)), frozenset()), count) == chosen
