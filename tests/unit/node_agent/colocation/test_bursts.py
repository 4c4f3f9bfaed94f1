"""Bursts: what the kernel saves up, and quotas that are raised while there is room."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

from node_agent.domain.colocation.bursts import CALM_MS, any_raised
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.node_slo import NO_RULES, node_slo
from node_agent.domain.colocation.pods import NodePod

WEB, MAIN = Group(Tier.BURSTABLE, "web"), Group(Tier.BURSTABLE, "web", "main")


def web(limit: str = "2", **parts: Any) -> NodePod:
    return pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": limit}, **parts)


def strategy(policy: str, **more: Any) -> dict[str, Any]:
    return {"cpuBurstStrategy": {"policy": policy, "cfsQuotaBurstPercent": 200, **more}}


def quota(one: Desk, **said: Any) -> int:
    return int(one.round(**said).knobs.get(MAIN, {}).get("cpu.max", "200000 100000").split()[0])


def test_what_the_kernel_saves_up_is_never_more_than_the_quota_however_it_is_asked_for() -> None:
    for percent, saved in ((10, "20000"), (100, "200000"), (1000, "200000")):
        found = Desk(machine(), strategy("cpuBurstOnly", cpuBurstPercent=percent), web()).round().knobs
        assert found[MAIN]["cpu.max.burst"] == found[WEB]["cpu.max.burst"] == saved


def test_a_pod_says_itself_what_holds_for_it_and_one_without_a_limit_saves_nothing() -> None:
    own = {"annotations": {"koordinator.sh/cpuBurst": '{"policy": "none"}'}}
    found = Desk(machine(), strategy("auto"), web(metadata=own), pod("free", "LS", 9500, requests={"cpu": "1"})).round()
    assert MAIN not in found.knobs
    assert found.knobs[Group(Tier.BURSTABLE, "free", "main")]["cpu.max.burst"] == "0"


def test_a_container_with_a_limit_beside_one_without_leaves_the_pod_nothing_to_save_up() -> None:
    both = [
        {"name": "main", "resources": {"limits": {"cpu": "1"}}},
        {"name": "side", "resources": {"requests": {"cpu": "1"}}},
    ]
    found = Desk(machine(), strategy("cpuBurstOnly"), pod("web", "LS", 9500, containers=both)).round().knobs
    assert (found[WEB]["cpu.max.burst"], found[MAIN]["cpu.max.burst"]) == ("0", "100000")


def test_a_quota_that_is_met_rises_by_a_fifth_up_to_its_most() -> None:
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), web())
    one.uses(web=2000).stalls(("web",))
    assert [quota(one) for _ in range(5)] == [240_000, 288_000, 345_600, 400_000, 400_000]
    assert one.round().knobs[WEB]["cpu.max"] == "400000 100000"


def test_a_raised_quota_goes_back_though_the_clock_was_set_back() -> None:
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), web())
    one.uses(web=2000).stalls(("web",))
    assert quota(one) == 240_000
    one.now -= 3_600_000
    one.uses(web=100).stalls()
    found = [quota(one) for _ in range(CALM_MS // 1000 + 2)]
    assert (found[0], found[-1]) == (240_000, 200_000)


def test_a_raised_quota_goes_back_where_the_shared_cpus_have_no_room() -> None:
    """And step by step where it was not met for a while: Koordinator leaves it for ever."""
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), web())
    one.uses(web=2000).stalls(("web",)).round()
    one.round()
    one.uses(web=12_000).stalls(("web",))
    assert [quota(one) for _ in range(3)] == [230_400, 200_000, 200_000]
    one.uses(web=2000).stalls(("web",))
    assert [quota(one) for _ in range(2)] == [240_000, 288_000]
    one.uses(web=100)
    assert quota(one) == 288_000
    assert quota(one, seconds=CALM_MS / 1000) == 230_400
    assert quota(one) == 230_400
    assert quota(one, seconds=CALM_MS / 1000) == 200_000


@pytest.mark.parametrize(
    ("cpus", "asked", "own", "used", "room"),
    [
        ("", 10, 9000, 4499, True),  # 10 of 20 are shared, half of them may be used, nine tenths of that is the mark
        ("", 10, 9000, 4500, False),
        ("0-9", 10, 9000, 4499, True),
        ("0-9", 10, 9000, 4500, False),
        ("", 0, 9000, 8999, True),  # no pod with cpus of its own: 20 are shared
        ("", 0, 9000, 9000, False),
    ],
)
def test_there_is_room_below_nine_tenths_of_the_part_of_the_shared_cpus_that_may_be_used(
    cpus: str, asked: int, own: int, used: int, room: bool
) -> None:
    """What best effort uses, and pods with CPUs of their own, counts on neither side; whether they have them yet or will."""
    word = {"annotations": {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": cpus})}} if cpus else {}
    pods = [web(), pod("hog", "BE", 5500)]
    uses = {"web": used, "hog": 3000}
    if asked:
        amounts = {"cpu": str(asked), "memory": "1G"}
        pods.append(pod("own", "LSR", 9500, requests=amounts, limits=amounts, metadata=word))
        uses["own"] = own
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), *pods)
    one.uses(**uses).stalls(("web",))
    assert quota(one) == (240_000 if room else 200_000)


def test_without_fresh_samples_no_quota_rises() -> None:
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), web())
    one.uses(web=2000).stalls(("web",)).round()
    assert quota(one, seconds=11, fresh=False) == 240_000


def test_a_period_lets_a_container_beyond_its_limit_only_for_what_it_saved() -> None:
    one = Desk(machine(), strategy("cfsQuotaBurstOnly", cfsQuotaBurstPeriodSeconds=40), web())
    one.uses(web=4000).stalls(("web",))
    quotas = [quota(one) for _ in range(14)]
    assert max(quotas) == 400_000 and quotas[-1] == 200_000
    one.uses(web=200)
    one.round(10)
    one.uses(web=4000).stalls(("web",))
    assert quota(one) == 240_000


def test_time_matters_where_a_pod_says_itself_that_its_quota_may_be_raised() -> None:
    """Whether anything is looked at each second depends on it, though the node's rules raise nothing."""
    for policy, matters in (("cfsQuotaBurstOnly", True), ("auto", True), ("cpuBurstOnly", False), ("none", False)):
        own = {"annotations": {"koordinator.sh/cpuBurst": json.dumps({"policy": policy})}}
        assert any_raised([web(), web(metadata=own)], NO_RULES.burst) is matters
        assert any_raised([web()], node_slo(strategy(policy)).burst) is matters


def test_switched_off_nothing_is_raised() -> None:
    one = Desk(machine(), strategy("cfsQuotaBurstOnly"), web())
    one.uses(web=2000).stalls(("web",)).round()
    one.slo = Desk(machine(), strategy("none")).slo
    assert one.round().knobs == {} and one.kept.raised == {}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20_000), st.sampled_from([1, 30, 70])), max_size=30))
def test_a_quota_stays_between_the_limit_and_its_most(story: list[tuple[bool, int, int]]) -> None:
    one = Desk(machine(), strategy("auto", cfsQuotaBurstPercent=250), web())
    for met, used, seconds in story:
        one.uses(web=used).stalls(("web",) if met else ())
        found = one.round(seconds).knobs
        amount = int(found[MAIN]["cpu.max"].split()[0])
        assert 200_000 <= amount <= 500_000
        assert int(found[MAIN]["cpu.max.burst"]) <= amount, "the kernel refuses a burst above the quota"


def test_a_guaranteed_pod_that_shares_cpus_may_burst_and_one_with_its_own_may_not() -> None:
    whole = {"cpu": "1", "memory": "1Gi"}
    shares, pinned = (
        pod("shares", "", 9500, requests=whole, limits=whole),
        pod("own", "LSR", 9500, requests=whole, limits=whole),
    )
    found = Desk(
        machine(), strategy("cpuBurstOnly"), shares, pinned, pod("hog", "BE", 5000, limits={"cpu": "1"})
    ).round()
    assert {key.pod for key, files in found.knobs.items() if "cpu.max.burst" in files} == {"shares"}


FASTER = {"metadata": {"annotations": {"node.koordinator.sh/cpu-normalization-ratio": "1.20"}}}


def test_where_a_core_does_more_than_the_one_that_limits_count_quotas_are_less_by_that() -> None:
    """4 cores are 400000 us of plain ones, 333333.3 at 1.2 each; 500 milli-cores that are lent 50000, 41666.7."""
    lent = {"kubernetes.io/batch-cpu": "500"}
    pods = (
        web("4"),
        pod("plain", priority=9500, requests={"cpu": "1"}, limits={"cpu": "2"}),
        pod("free", "LS", 9500, requests={"cpu": "1"}),
        pod("sure", "LSR", 9500, requests={"cpu": "2", "memory": "1G"}, limits={"cpu": "2", "memory": "1G"}),
        pod("crunch", "BE", 5500, requests=lent, limits=lent),
        pod("crawl", "BE", 5500, requests={"cpu": "1"}, limits={"cpu": "2"}),
    )
    found = Desk(machine(node=FASTER), {}, *pods).round().knobs
    assert {group.pod: files["cpu.max"] for group, files in found.items() if "cpu.max" in files} == {
        "web": "333334 100000",
        "plain": "166667 100000",
        "crunch": "41667 100000",
    }
    slower = {"metadata": {"annotations": {"node.koordinator.sh/cpu-normalization-ratio": "0.80"}}}
    assert Desk(machine(node=slower), {}, web("4")).round().knobs == {}


def test_bursts_begin_at_the_quota_that_the_cores_make_of_a_limit() -> None:
    """One place decides about the quota: the saved-up part stays within it, and it is raised from there."""
    one = Desk(machine(node=FASTER), strategy("auto"), web("4"))
    one.uses(web=3400).stalls(("web",))
    knobs = one.round().knobs
    assert (knobs[MAIN]["cpu.max"], knobs[MAIN]["cpu.max.burst"]) == ("400000 100000", "333334")
    assert [quota(one) for _ in range(4)] == [480_000, 576_000, 666_668, 666_668]
