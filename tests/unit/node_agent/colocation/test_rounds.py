"""What is handed on from round to round spares work and changes nothing."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.node_agent.colocation.conftest import STALE_MS, Desk, machine, pod

from node_agent.domain.colocation.core import enforce
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.domain.colocation.situation import Situation

PINNED = {"annotations": {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}'}}
BATCH = {"kubernetes.io/batch-cpu": "500"}
PODS = (
    pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": "2"}),
    pod("pinned", "LSR", 9500, requests={"cpu": "2"}, limits={"cpu": "2"}, metadata=PINNED),
    pod("daemon", "SYSTEM", 9500),
    pod("hog", "BE", 5500, requests=BATCH, limits=BATCH),
    pod("web", "LS", 9500, requests={"cpu": "1"}, limits={"cpu": "3"}),
)
"""The last one is a later version of the first."""


def _rules(policy: str, burst: str, on: bool) -> dict[str, Any]:
    qos = {"cpuQOS": {"enable": on}, "memoryQOS": {"enable": on, "lowLimitPercent": 50, "throttlingPercent": 80}}
    return {
        "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressPolicy": policy},
        "cpuBurstStrategy": {"policy": burst},
        "resourceQOSStrategy": dict.fromkeys(("lsClass", "beClass"), qos),
    }


ROUNDS = st.lists(
    st.tuples(
        st.sampled_from([(), PODS[:1], PODS[:4], PODS[1:]]),
        st.builds(
            _rules, st.sampled_from(["cpuset", "cfsQuota", "weight"]), st.sampled_from(["none", "auto"]), st.booleans()
        ),
        st.sampled_from([machine(4), machine(4, lends=BATCH), machine(8)]),
        st.integers(0, 3000),
        st.booleans(),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=150)
@given(ROUNDS)
def test_a_round_decides_as_one_to_which_nothing_but_the_state_was_handed_on(rounds: list[Any]) -> None:
    desk = Desk(machine(), {})
    for pods, rules, node, used, meets in rounds:
        if desk.slo != (slo := node_slo(rules)):
            desk.slo = slo
        desk.machine, desk.pods = node, {one.uid: one for one in pods}
        desk.uses(**{one.uid: used for one in pods}).stalls(tuple(desk.pods) if meets else ())
        before = desk.kept
        for _ in range(2):
            done, bare = desk.round(), replace(before, standing=None)
            situation = Situation(desk.now, desk.slo, desk.machine, desk.pods, desk.sample, STALE_MS)
            assert done == enforce(situation, bare)
            before = done.kept


def test_a_round_in_which_nothing_changed_works_out_nothing_anew() -> None:
    desk = Desk(machine(), _rules("cfsQuota", "none", True), *PODS[:4]).uses(web=500, hog=2000)
    first, second = desk.round(), desk.round()
    assert second.kept.standing is first.kept.standing is not None
    desk.pods["web"] = PODS[4]
    assert desk.round().kept.standing is not first.kept.standing
