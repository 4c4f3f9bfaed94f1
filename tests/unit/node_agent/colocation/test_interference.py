"""Who disturbs whom, and how it is found out: best effort is held where that helps, and not for what it does not do."""

import random
from typing import Any

import pytest
from tests.unit.node_agent.colocation.conftest import Desk, machine, pod

from node_agent.domain.colocation.core import Enforcement
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Stall

BEST_EFFORT = Group(Tier.BEST_EFFORT)


_RULE = "resourceUsedThresholdWithBE"
DISTURBED: dict[str, Any] = {
    _RULE: {"enable": True, "cpuSuppressThresholdPercent": 95, "cpuSuppressPolicy": "cfsQuota"}
}


def online_and_hogs() -> tuple[NodePod, ...]:
    return pod("web", "LS", 9500, requests={"cpu": "1"}), pod("big", "BE", 5000), pod("small", "BE", 5000)


def quota(found: Enforcement) -> int:
    """What best effort is held to, in milli-cores."""
    return int(found.knobs[BEST_EFFORT]["cpu.max"].split()[0]) // 100


def known(usual: Stall, rules: dict[str, Any] = DISTURBED) -> Desk:
    """A node that knows what is usual for its online pod."""
    one = Desk(machine(20), rules, *online_and_hogs())
    for _ in range(60):
        one.uses(web=1000, big=100).stalls(web=usual).round()
    return one


def test_a_pod_that_waits_much_longer_than_usual_holds_best_effort_below_what_it_uses() -> None:
    """Long before the threshold would; and it gets all of it back at once when it was held for a while."""
    one = known(Stall(cpu=40))
    one.uses(web=1000, big=6000, small=2000).stalls(web=Stall(cpu=300))
    assert one.round().disturbances == (), "it may be over already"
    found = one.round()
    assert quota(found) == 5_600
    (told,) = found.disturbances
    assert (told.victim, told.culprit, told.kind, told.stall, told.usual) == ("web", "big", "cpu", 300, 33)
    assert told.described(one.pods) == (
        "default/web waits for cpu 30.0 % of the time (usually 3.3 %); default/big takes most of what best effort has"
    )
    one.uses(web=1000, big=4000, small=1600).stalls(web=Stall(cpu=20))
    assert [quota(one.round()) for _ in range(11)] == [5_600] * 9 + [18_000] * 2


def test_by_weight_best_effort_has_no_quota_before_it_disturbs_somebody_and_none_after() -> None:
    """Its weight lets online pods go first at once, where a quota makes CPUs idle that nobody asks for."""
    one = known(Stall(cpu=40), {_RULE: {**DISTURBED[_RULE], "cpuSuppressPolicy": "weight"}})
    one.uses(web=1000, big=14000, small=5000).stalls(web=Stall(cpu=20))
    assert "cpu.max" not in one.round().knobs.get(BEST_EFFORT, {})
    one.uses(web=1000, big=6000, small=2000).stalls(web=Stall(cpu=300))
    one.round()
    assert quota(one.round()) == 5_600
    one.uses(web=1000, big=4000, small=1600).stalls(web=Stall(cpu=20))
    held = [one.round() for _ in range(11)]
    assert [quota(found) for found in held[:9]] == [5_600] * 9
    assert all("cpu.max" not in found.knobs.get(BEST_EFFORT, {}) for found in held[9:])


def test_by_weight_best_effort_is_held_to_its_quota_while_nobody_measures() -> None:
    one = known(Stall(cpu=40), {_RULE: {**DISTURBED[_RULE], "cpuSuppressPolicy": "weight"}})
    assert quota(one.round(11, fresh=False)) == 18_000
    assert "cpu.max" not in one.uses(web=1000).round().knobs.get(BEST_EFFORT, {})


def test_what_is_over_in_the_next_round_holds_nobody() -> None:
    one = known(Stall(cpu=40))
    for stall in (900, 20, 900, 20, 900):
        found = one.uses(web=1000, big=6000).stalls(web=Stall(cpu=stall)).round()
        assert quota(found) == 18_000 and found.disturbances == ()


def test_a_look_too_short_to_tell_how_long_somebody_waits_is_no_round_of_a_trial() -> None:
    one = known(Stall(cpu=40))
    one.uses(web=1000, big=6000).stalls(web=Stall(cpu=300)).round()
    one.over_ms = 200
    assert quota(one.round()) == 18_000
    one.over_ms = 1_000
    assert quota(one.round()) == 4_200


def test_what_best_effort_gets_back_is_no_more_than_the_threshold_leaves_by_then() -> None:
    one = known(Stall(cpu=40))
    for _ in range(2):
        one.uses(web=1000, big=8000).stalls(web=Stall(cpu=300)).round()
    quotas = [quota(one.uses(web=9000, big=5600).stalls(web=Stall()).round()) for _ in range(11)]
    assert quotas == [5_600] * 9 + [10_000] * 2


def feels(one: Desk, stall: Stall, hogs: int = 6000) -> Enforcement:
    return one.uses(web=1000, big=hogs // 4 * 3, small=hogs // 4).stalls(web=stall).round()


DEARER = [
    (Stall(cpi=1100), Stall(cpi=1650), Stall(cpi=1800), "needs 1.80 cycles per instruction (usually 1.10)"),
    (Stall(stretch=400), Stall(stretch=480), Stall(stretch=600), "computes for 0.60 ms at a time (usually 0.40)"),
]


@pytest.mark.parametrize(("usual", "noise", "dear", "told"), DEARER)
def test_work_that_costs_more_than_usual_leaves_best_effort_next_to_nothing_as_long_as_it_costs_less_so(
    usual: Stall, noise: Stall, dear: Stall, told: str
) -> None:
    one = known(usual)
    assert quota(feels(one, noise)) == 18_000
    found = feels(one, dear)
    assert quota(found) == 20
    (first,) = found.disturbances
    assert first.described(one.pods) == f"default/web {told}; default/big takes most of what best effort has"
    held = [feels(one, usual, 20) for _ in range(10)]
    assert [quota(found) for found in held] == [20] * 9 + [18_000]
    assert [len(found.disturbances) for found in held] == [1] * 9 + [0], "it is told for as long as it goes on"
    assert quota(feels(one, dear)) == 20
    assert [quota(feels(one, usual, 20)) for _ in range(20)] == [20] * 19 + [18_000], "twice as long"


@pytest.mark.parametrize(("usual", "dear"), [(usual, dear) for usual, _, dear, _ in DEARER])
def test_work_that_costs_as_much_without_best_effort_costs_that_for_some_minutes(usual: Stall, dear: Stall) -> None:
    one = known(usual)
    assert [quota(feels(one, dear)), quota(feels(one, dear, 20))] == [20, 18_000]
    assert [quota(feels(one, dear)) for _ in range(60)] == [18_000] * 60
    one.now += 300_000
    assert [quota(feels(one, dear)) for _ in range(2)] == [18_000, 20]


@pytest.mark.parametrize("kind", ["cpi", "stretch"])
def test_what_work_usually_costs_beside_best_effort_is_found_out_by_one_round_without_it(kind: str) -> None:
    """Nothing is told of before that is known, and it is known of the next pod of the workload."""
    one = Desk(machine(20), DISTURBED, *online_and_hogs())

    def cost(amount: int) -> Stall:
        return Stall(**{kind: amount})

    assert quota(feels(one, Stall(cpu=10))) == 18_000, "it was measured, but not this"
    found = [feels(one, cost(1190)), feels(one, cost(1000), 20), *[feels(one, cost(1200)) for _ in range(60)]]
    assert [quota(done) for done in found] == [20] + [18_000] * 61
    assert not any(done.disturbances for done in found)
    del one.pods["web"]
    for _ in range(60):
        one.uses(big=6000).stalls().round()
    one.pods["next"] = pod("web", "LS", 9500, requests={"cpu": "1"}, metadata={"uid": "next"})
    done = one.uses(next=1000, big=6000).stalls(next=cost(1600)).round()
    assert [(told.victim, told.usual) for told in done.disturbances] == [("next", 1000)]


def test_what_pods_wait_for_in_that_round_they_wait_for_by_themselves() -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    feels(one, Stall(cpu=110, stretch=400))
    feels(one, Stall(cpu=100, stretch=390), 20)
    assert [quota(feels(one, Stall(cpu=290, stretch=400))) for _ in range(9)] == [18_000] * 9
    assert [quota(feels(one, Stall(cpu=300, stretch=400))) for _ in range(2)] == [18_000, 4_200]


def test_what_disturbs_a_pod_of_which_nothing_is_known_is_found_out_in_the_same_way() -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    assert feels(one, Stall(stretch=600)).disturbances == ()
    found = feels(one, Stall(stretch=400), 20)
    assert quota(found) == 20
    assert [(told.victim, told.stall, told.usual) for told in found.disturbances] == [("web", 600, 400)]


def test_best_effort_is_let_go_when_nobody_works_who_could_be_disturbed_and_held_again_when_somebody_does() -> None:
    one = known(Stall(stretch=400))
    feels(one, Stall(stretch=600))
    assert min(quota(one.uses(web=1, big=6000).stalls(web=Stall()).round()) for _ in range(9)) >= 18_000
    assert quota(feels(one, Stall(stretch=600))) == 20


def test_the_least_that_best_effort_is_promised_stays_its_own() -> None:
    one = known(Stall(stretch=400))
    one.slo = node_slo({_RULE: {**DISTURBED[_RULE], "cpuSuppressMinPercent": 10}})
    feels(one, Stall(stretch=600))
    assert [quota(feels(one, Stall(stretch=stall), 2000)) for stall in (420, 420)] == [2_000, 2_000]


def test_best_effort_is_let_go_when_holding_it_does_not_help() -> None:
    """What a pod waits for though nearly nothing else runs is its own doing, and no disturbance for some minutes."""
    one = known(Stall(cpu=40))
    found = []
    for used in (6000, 6000, 4200, 2940, 2058):
        done = one.uses(web=1000, big=used).stalls(web=Stall(cpu=300)).round()
        found.append((quota(done), len(done.disturbances)))
    assert found == [(18_000, 0), (4_200, 1), (2_940, 1), (2_058, 1), (18_000, 0)]

    def told(stall: int) -> list[int]:
        one.uses(web=1000, big=6000).stalls(web=Stall(cpu=stall)).round()
        return [found.usual for found in one.round().disturbances]

    assert told(800) == [], "not three times what is usual now"
    assert told(950) == [300]
    one.uses(web=1000, big=6000).stalls(web=Stall()).round(400)
    one.round(20)
    assert told(300) == [33]


def test_a_stall_that_falls_while_best_effort_is_held_keeps_it_held_and_has_to_fall_on() -> None:
    one = known(Stall(cpu=40))
    held = []
    for stall in (400, 410, 350, 320, 290, 280, 250, 240, 230):
        found = one.uses(web=1000, big=6000).stalls(web=Stall(cpu=stall)).round()
        held.append(len(found.disturbances))
    assert held[:6] == [0, 1, 1, 1, 1, 1] and sum(held) < len(held) - 1


def test_who_is_disturbed_no_more_though_best_effort_was_let_go_was_disturbed_by_something_else() -> None:
    """For some minutes as much is no disturbance."""
    one = known(Stall(cpu=40))
    for stall in (300, 300, *[20] * 14):
        one.uses(web=1000, big=6000).stalls(web=Stall(cpu=stall)).round()
    for _ in range(5):
        assert quota(one.uses(web=1000, big=6000).stalls(web=Stall(cpu=800)).round()) == 18_000


def test_best_effort_that_disturbs_again_at_once_is_held_for_twice_as_long() -> None:
    """So whom it disturbs is disturbed for two rounds in a minute and a half at last."""
    one, held, lengths = known(Stall(cpu=40)), False, [0]
    for _ in range(600):
        found = one.uses(web=1000, big=4000 if held else 8000).stalls(web=Stall(cpu=20 if held else 400)).round()
        held = quota(found) < 18_000
        if held:
            lengths[-1] += 1
        elif lengths[-1]:
            lengths.append(0)
    assert lengths[:6] == [10, 20, 40, 80, 80, 80]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
def test_waiting_that_comes_and_goes_whatever_best_effort_does_costs_it_next_to_nothing(share: float) -> None:
    """Over five minutes of chance, drawn fifty times, 97 of 100 parts of what the threshold leaves stay best effort's."""
    kept = 0.0
    for seed in range(50):
        chance, one, used = random.Random(seed), known(Stall(cpu=20)), 8000
        for _ in range(300):
            stall = chance.randint(100, 200) if chance.random() < share else chance.randint(0, 99)
            used = min(18_000, quota(one.uses(web=1000, big=used).stalls(web=Stall(cpu=stall)).round()))
            kept += used / 18_000 / 300 / 50
    assert kept >= 0.97


def test_what_a_pod_waits_for_while_it_does_nothing_is_not_what_is_usual() -> None:
    one = known(Stall(cpu=100))
    for _ in range(60):
        one.uses(web=5, big=100).stalls(web=Stall()).round()
    for _ in range(3):
        assert one.uses(web=1000, big=6000).stalls(web=Stall(cpu=250)).round().disturbances == ()


def test_what_a_pod_waits_for_when_it_starts_is_not_what_is_usual() -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    one.uses(web=1000, big=100).stalls(web=Stall(cpu=800)).round()
    one.uses(web=1000, big=6000).stalls(web=Stall(cpu=400)).round()
    assert [told.usual for told in one.round().disturbances] == [100]


@pytest.mark.parametrize(
    ("stall", "used", "throttled"),
    [
        (Stall(cpu=90), 6000, ()),  # too short to matter
        (Stall(cpu=400), 500, ()),  # best effort does nothing
        (Stall(cpu=400), 6000, ("web",)),  # its own quota keeps it
    ],
)
def test_what_is_no_disturbance_holds_nobody(stall: Stall, used: int, throttled: tuple[str, ...]) -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    one.uses(web=1000, big=used).stalls(throttled, web=stall).round()
    found = one.round()
    assert found.disturbances == () and found.knobs[BEST_EFFORT]["cpu.max"] == "1800000 100000"


def test_a_pod_that_meets_its_own_quota_far_more_often_than_usual_is_disturbed() -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    one.uses(web=1000, big=6000).stalls(("web",), web=Stall(quota=500))
    assert [one.round().disturbances for _ in range(2)] == [(), ()], "nobody knows yet what is usual"
    one = known(Stall(quota=60))
    one.uses(web=1000, big=6000).stalls(("web",), web=Stall(quota=500)).round()
    assert [(told.kind, told.usual) for told in one.round().disturbances] == [("quota", 53)]


def test_memory_is_taken_by_whom_has_most_of_it() -> None:
    one = Desk(machine(20), DISTURBED, *online_and_hogs())
    one.uses(memory=1, web=1000, big=(6000, 1), small=(10, 5)).stalls(web=Stall(memory=400)).round()
    assert [(told.culprit, told.kind) for told in one.round().disturbances] == [("small", "memory")]
