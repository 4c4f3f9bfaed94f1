"""What is written to a node in many situations, each value worked out by hand."""

from typing import Any

import pytest
from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

from node_agent.domain.colocation.evictions import current
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.machine import CacheHardware
from node_agent.domain.colocation.resctrl import cache_mask
from node_agent.domain.limits import Limits

G, GIB = 10**9, 1 << 30
BEST_EFFORT = Group(Tier.BEST_EFFORT)
WEB = Group(Tier.BURSTABLE, "web")


def thresholds(**more: Any) -> dict[str, Any]:
    return {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": "cfsQuota", **more}}


@pytest.mark.parametrize(
    ("rules", "node", "uses", "milli"),
    [
        ({}, {}, {"web": 4000, "hog": 3000, "system": 1000}, 8000),  # 20 x 65 % = 13, less 4, less 1
        (
            {"cpuSuppressThresholdPercent": 70},
            {},
            {"web": 8000, "hog": 4000, "node": 11_000},
            6000,
        ),  # the rest is not -1
        (
            {"cpuSuppressThresholdPercent": 70},
            {"cpu": "17"},
            {"web": 8000, "system": 1000},
            3000,
        ),  # 14-8-3 kept by the kubelet
        ({"cpuSuppressThresholdPercent": 70}, {"cpu": "19"}, {"web": 8000, "system": 2000}, 4000),  # 14-8-2
        ({"cpuSuppressMinPercent": 60}, {}, {"web": 8000}, 12_000),
        ({"cpuSuppressMinPercent": 10}, {}, {"web": 4000}, 9000),
        ({"cpuSuppressThresholdPercent": 100}, {}, {"web": 500}, 19_500),
        ({}, {}, {"web": 14_000}, 20),  # two of a hundred milliseconds at least
        ({}, {}, {"mid": 3000, "web": 1000}, 12_000),  # best effort of the mid band is best effort
        ({}, {}, {"bulk": 3000, "web": 1000}, 9000),  # a pod of class LS serves, whatever its band
    ],
)
def test_best_effort_is_held_to_what_the_threshold_leaves(
    rules: dict[str, Any], node: dict[str, str], uses: dict[str, int], milli: int
) -> None:
    pods = (pod("web", "LS", 9500), pod("hog", "BE", 5500), pod("mid", "BE", 7500), pod("bulk", "LS", 5500))
    found = Desk(machine(allocatable=node), thresholds(**rules), *pods).uses(**uses).round()
    assert found.knobs[BEST_EFFORT]["cpu.max"] == f"{milli * 100} 100000"


@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        (9000, 3000, [6000, 8000, 10_000, 10_000]),  # a tenth of 20 in each round
        (3000, 9000, [4000, 4000]),  # less at once
        (3000, 3150, [10_000, 10_000]),  # less than a hundredth of the node is not written
        (3000, 3200, [9800]),
    ],
)
def test_a_quota_grows_by_a_tenth_of_the_node_and_shrinks_at_once(before: int, after: int, steps: list[int]) -> None:
    one = Desk(machine(), thresholds(), pod("web", "LS", 9500), pod("hog", "BE", 5500))
    one.uses(web=before).round()
    one.uses(web=after)
    found = [one.round().knobs[BEST_EFFORT]["cpu.max"] for _ in steps]
    assert found == [f"{step * 100} 100000" for step in steps]


@pytest.mark.parametrize(
    ("used", "cpus"),
    [(10_000, "0-2"), (10_001, "0-2"), (9_999, "0-3"), (12_500, "0-1"), (20_000, "0-1"), (0, "0-12")],
)
def test_whole_cpus_are_rounded_up_and_two_at_least(used: int, cpus: str) -> None:
    """20 x 65 % = 13, less what is used online."""
    one = Desk(machine(), thresholds(cpuSuppressPolicy="cpuset"), pod("web", "LS", 9500), pod("hog", "BE", 5500))
    assert one.uses(web=used).round().knobs[BEST_EFFORT]["cpuset.cpus"] == cpus


@pytest.mark.parametrize(
    ("rules", "used", "gone"),
    [
        ({}, 69, ""),
        ({}, 70, "a"),  # 70 - 68 = 2: the first frees 4
        ({}, 74, "ab"),  # 6: 4 + 6
        ({"memoryEvictThresholdPercent": 82}, 81, ""),
        ({"memoryEvictThresholdPercent": 82, "memoryEvictLowerPercent": 74}, 82, "ab"),  # 8
        ({"memoryEvictThresholdPercent": 82, "memoryEvictLowerPercent": 70}, 83, "abc"),  # 13: 4 + 6 + 8
        ({"memoryEvictThresholdPercent": 82, "memoryEvictLowerPercent": 82}, 90, ""),  # no mark to come down to
    ],
)
def test_as_much_memory_is_freed_as_brings_the_node_to_its_lower_mark(rules: Any, used: int, gone: str) -> None:
    pods = [pod(name, "BE", 5000 + at) for at, name in enumerate("abc")]
    one = Desk(machine(memory="100G"), thresholds(**rules), *pods)
    one.uses(memory=used * G, a=(10, 4 * G), b=(10, 6 * G), c=(10, 8 * G)).round()
    assert "".join(wish.name for wish in current(one.kept.asked, one.now)) == gone


@pytest.mark.parametrize(
    ("held", "used", "asked", "gone"),
    [
        (10_000, 9500, 50, "a"),  # 20 percent of 50; to 40 of it 10 cores have to go, a asked for 16
        (10_000, 8900, 50, ""),  # not all of it is used
        (10_000, 9000, 50, "a"),
        (10_000, 9500, 40, "a"),  # 25 percent is not above 25: 16 - 10 = 6
        (10_000, 9500, 39, ""),
        (4000, 3900, 50, "a"),  # 20 - 4 = 16, what a asked for
        (3900, 3900, 50, "ab"),  # 16.1
        (900, 0, 50, "ab"),  # less than a core is busy whatever is used; 20 - 0.9 = 19.1
    ],
)
def test_best_effort_that_gets_too_little_of_what_it_asked_for_is_thinned_out(
    held: int, used: int, asked: int, gone: str
) -> None:
    """Below 25 percent; to have 40 of what is left to ask for."""
    rules = thresholds(
        cpuSuppressThresholdPercent=50,
        cpuEvictTimeWindowSeconds=3,
        cpuEvictBESatisfactionLowerPercent=25,
        cpuEvictBESatisfactionUpperPercent=40,
    )
    rest = asked - 16
    pods = [
        pod("a", "BE", 5000, requests={"kubernetes.io/batch-cpu": "16000"}),
        pod("b", "BE", 5001, requests={"kubernetes.io/batch-cpu": f"{rest * 1000}"}),
        pod("web", "LS", 9500),
    ]
    one = Desk(machine(100), rules, *pods)
    one.uses(web=50_000 - held, a=used // 2, b=used - used // 2)
    for _ in range(5):
        one.round()
    assert "".join(wish.name for wish in current(one.kept.asked, one.now)) == gone


@pytest.mark.parametrize(
    ("request_", "limit", "rules", "least", "low", "high"),
    [
        (4 * GIB, 8 * GIB, (50, 100, 80), 2 * GIB, 4 * GIB, 7_730_937_856),
        (4 * GIB, 8 * GIB, (50, 20, 0), 2 * GIB, 2 * GIB, None),  # low is never below min
        (4 * GIB, 8 * GIB, (100, 0, 100), 4 * GIB, 0, 8 * GIB),
        (4 * GIB, 4 * GIB, (0, 100, 80), 0, 4 * GIB, 4 * GIB),
        (10 * GIB, None, (0, 0, 80), 0, 0, 50 * GIB),  # of the 60 that the node gives: 10 + 80 % of 50
        (10**9, 1_500_000_000, (0, 0, 80), 0, 0, 1_399_996_416),  # 1.4e9, down to a page
    ],
)
def test_memory_is_protected_from_min_to_high(
    request_: int, limit: int | None, rules: tuple[int, int, int], least: int, low: int, high: int | None
) -> None:
    named = dict(zip(("minLimitPercent", "lowLimitPercent", "throttlingPercent"), rules, strict=True))
    slo = {"resourceQOSStrategy": {"lsClass": {"memoryQOS": {"enable": True, **named}}}}
    limits = {"limits": {"memory": str(limit)}} if limit else {}
    one = pod("web", "LS", 9500, requests={"cpu": "1", "memory": str(request_)}, **limits)
    node = machine(memory="64Gi", allocatable={"memory": "60Gi"})
    found = Desk(node, slo, one).round().knobs[WEB]
    shown = {"memory.min": least, "memory.low": low, "memory.high": "max" if high is None else high}
    assert {name: found[name] for name in shown} == {name: str(amount) for name, amount in shown.items()}


@pytest.mark.parametrize(
    ("ways", "start", "end", "mask"),
    [
        (0x7FF, 0, 100, 0x7FF),
        (0x7FF, 0, 30, 0xF),  # 3.3 of 11 ways, up to 4
        (0x7FF, 50, 100, 0x7C0),  # from 5.5, up to 6
        (0xFFF, 10, 80, 0x3FC),  # from 1.2, up to 2, to 9.6, up to 10
        (0xFFFFF, 0, 10, 0x3),
    ],
)
def test_a_part_of_the_cache_is_rounded_up_at_both_ends(ways: int, start: int, end: int, mask: int) -> None:
    assert cache_mask(ways, start, end) == mask


@pytest.mark.parametrize(
    ("amd", "percent", "told"), [(False, 25, 30), (False, 90, 90), (False, 1, 10), (True, 25, 40), (True, 100, 2048)]
)
def test_bandwidth_is_told_in_the_words_of_the_vendor(amd: bool, percent: int, told: int) -> None:
    slo = {"resourceQOSStrategy": {"beClass": {"resctrlQOS": {"enable": True, "mbaPercent": percent}}}}
    hardware = CacheHardware(0xFFF, (0,), True, amd)
    assert Desk(machine(cache=hardware), slo).round().caches.lines["BE"][1] == f"MB:0={told}"


@pytest.mark.parametrize(
    ("milli", "shares", "weight"), [(0, 2, 1), (1, 2, 1), (500, 512, 20), (1000, 1024, 39), (2000, 2048, 79), (10**7, 262_144, 10_000)]
)  # fmt: skip
def test_a_request_becomes_shares_and_a_weight(milli: int, shares: int, weight: int) -> None:
    found = Limits(cpu_request_milli=milli)
    assert (found.shares, found.weight) == (shares, weight)


def test_what_a_container_saved_is_used_up_by_what_is_above_its_limit_and_comes_back_below_sixty_percent() -> None:
    """A period of 100 s and twice the limit hold 10000 % seconds; a quarter is there at first.

    At 150 % of the limit 50 % seconds go in each second: 2500 last for 50. At 80 % nothing comes back, at 20 % 80 a second.
    """
    slo = {
        "cpuBurstStrategy": {
            "policy": "cfsQuotaBurstOnly",
            "cfsQuotaBurstPercent": 200,
            "cfsQuotaBurstPeriodSeconds": 100,
        }
    }
    one = Desk(machine(), slo, pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": "2"}))
    one.uses(web=3000)

    def left() -> int:
        one.round()
        return one.kept.raised["web", "main"].tokens // 1000

    assert left() == 2500  # time begins
    assert [left() for _ in range(50)][-3:] == [100, 50, 0]
    one.uses(web=1600)
    assert left() == 0
    one.uses(web=400)
    assert [left() for _ in range(2)] == [80, 160]
