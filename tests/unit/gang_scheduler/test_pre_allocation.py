"""Reservations over pods that run: where they stand, what they hold as these leave, and who gets in when."""

import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import Key, Outcome

A = {"app": "a"}
FLAG = {"pod.koordinator.sh/is-pre-allocatable": "true"}
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
SEVERAL = {"enableMultiple": True}
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def phase(toy: Any, name: str = "r") -> tuple[str, str]:
    status = toy.reserved(name)
    return status.get("phase", ""), status.get("nodeName", "")


def over(toy: Any, *names: str) -> list[str]:
    """The reservations that pods were given."""
    return [json.loads(toy.pod(name).annotations.get(ALLOCATED, '{"name": ""}'))["name"] for name in names]


def test_a_reservation_stands_over_a_running_pod_and_holds_its_room_when_it_leaves(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", cpu=3, labels=A, node="n1")
    toy.reservation("r", cpu=4, preAllocation=True)
    toy.settle()
    assert phase(toy) == ("Waiting", "n1") and over(toy, "old") == ["r"]
    toy.pods("mine", cpu=1, labels=A)
    toy.pods("other", cpu=1)
    toy.settle()
    assert toy.bound() == ["old"]
    told = toy.explain("Reservation", "r")
    assert (told["verdict"], told["rule"]) == ("Waiting", "Waiting") and "default/old" in told["message"]
    assert "reservation r: it waits for old to leave n1" in toy.explain("Pod", "mine")["message"]
    toy.gone("old")
    toy.settle()
    assert over(toy, "mine", "other") == ["r", ""]
    assert phase(toy) == ("Succeeded", "n1")


def test_without_pre_allocation_it_waits_for_free_room(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", cpu=3, labels=A, node="n1")
    toy.reservation("r", cpu=4)
    toy.settle()
    assert phase(toy) == ("Pending", "")


def test_free_room_goes_before_room_of_others(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=4)
    toy.pods("old", cpu=3, labels=A, node="n1")
    toy.reservation("r", cpu=4, preAllocation=True)
    toy.settle()
    assert phase(toy) == ("Available", "n2") and over(toy, "old") == [""]


def test_it_stands_over_one_pod_unless_it_may_over_several(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", 3, cpu=1, labels=A, node="n1")
    toy.reservation("r", cpu=3, preAllocation=True)
    toy.settle()
    assert phase(toy) == ("Pending", "")
    said = toy.reserved("r")["conditions"][0]["message"]
    assert "Insufficient cpu" in said and "after one pod of its owners had left" in said
    toy.reservation("s", cpu=3, preAllocation=True, preAllocationPolicy=SEVERAL)
    toy.settle()
    assert phase(toy, "s") == ("Waiting", "n1")
    assert sorted(over(toy, "old-0", "old-1", "old-2")) == ["", "s", "s"]


def test_only_pods_that_match_are_waited_for(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=4)
    toy.pods("owner", cpu=4, labels=A, node="n1")
    toy.pods("flagged", cpu=4, labels=FLAG, node="n2")
    toy.reservation("r", cpu=4, preAllocation=True)
    toy.reservation("c", cpu=4, preAllocation=True, preAllocationPolicy={"mode": "Cluster"})
    toy.settle()
    assert (phase(toy), phase(toy, "c")) == (("Waiting", "n1"), ("Waiting", "n2"))
    toy.reservation("late", cpu=4, preAllocation=True)
    toy.settle()
    assert phase(toy, "late") == ("Pending", "")


def test_pods_of_higher_pre_allocatable_priority_are_waited_for_first(toy: Any) -> None:
    annotation = "pod.koordinator.sh/pre-allocatable-priority"
    for node, value in (("n1", "1"), ("n2", "7"), ("n3", "bad")):
        toy.node(node, cpu=2)
        toy.pods(f"on-{node}", cpu=2, labels=A, annotations={annotation: value}, node=node)
    toy.reservation("r", cpu=2, preAllocation=True)
    toy.settle()
    assert phase(toy) == ("Waiting", "n2")


def test_the_rules_of_placement_hold_for_it(toy: Any) -> None:
    toy.node("n1", cpu=4, labels={"zone": "a"})
    toy.pods("old", cpu=3, labels=A, node="n1")
    pod = {"nodeSelector": {"zone": "b"}, "containers": [{"resources": {"requests": {"cpu": 4}}}]}
    toy.reservation("r", cpu=4, pod=pod, preAllocation=True)
    toy.settle()
    assert phase(toy) == ("Pending", "")


def test_what_leaves_early_is_held_and_others_do_not_get_it(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", 2, cpu=2, labels=A, node="n1")
    toy.reservation("r", cpu=4, preAllocation=True, preAllocationPolicy=SEVERAL, allocateOnce=False)
    toy.settle()
    toy.gone("old-0")
    toy.pods("other", cpu=1)
    toy.settle()
    assert phase(toy) == ("Waiting", "n1") and toy.where("other") == ""
    toy.gone("old-1")
    toy.settle()
    assert phase(toy) == ("Available", "n1") and toy.where("other") == ""
    assert not toy.reserved("r").get("currentOwners")


def test_a_refused_placement_leaves_nothing_behind(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", cpu=4, labels=A, node="n1")
    toy.reservation("r", cpu=4, preAllocation=True)
    toy.entitle()
    (decision,) = toy.core.decide(toy.now, frozenset())
    toy.core.assume("d", decision)
    assert toy.core.check() == []
    toy.core.settle(Outcome("d", decision.name, decision.subject, False))
    assert toy.core.check() == []
    record = toy.core.cluster.pods[Key("Pod", "default", "old")]
    assert record.reservation == ""
    toy.settle()
    assert phase(toy) == ("Waiting", "n1")


def test_it_expires_while_it_waits(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("old", cpu=4, labels=A, node="n1")
    toy.reservation("r", cpu=4, preAllocation=True, ttl="10m")
    toy.settle()
    toy.now += 600_000
    toy.settle()
    assert phase(toy)[0] == "Failed"
    toy.gone("old")
    toy.pods("other", cpu=4)
    toy.settle()
    assert toy.bound() == ["other"]


@pytest.mark.parametrize("several", [False, True])
@QUIET
@given(sizes=st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=3), asked=st.integers(1, 6))
def test_it_finds_a_place_where_trying_all_does_and_waits_for_nobody_whom_it_could_spare(
    new_toy: Any, several: bool, sizes: list[list[int]], asked: int
) -> None:
    toy = new_toy()
    wants: list[int] = []
    for at, listed in enumerate(sizes):
        fitting = [size for place, size in enumerate(listed) if sum(listed[: place + 1]) <= 6]
        toy.node(f"n{at}", cpu=6)
        for number, size in enumerate(fitting):
            toy.pods(f"p{at}-{number}", cpu=size, labels=A, node=f"n{at}")
        free = 6 - sum(fitting)
        most = len(fitting) if several else 1
        wants += [
            count
            for count in range(min(most, len(fitting)) + 1)
            if any(free + sum(chosen) >= asked for chosen in combinations(fitting, count))
        ]
    policy = {"preAllocationPolicy": SEVERAL} if several else {}
    toy.reservation("r", cpu=asked, preAllocation=True, allocateOnce=False, **policy)
    toy.settle()
    waited = [pod.name for pod in toy.store.of_kind("Pod").values() if over(toy, pod.name) == ["r"]]
    if not wants:
        assert phase(toy) == ("Pending", "")
    elif min(wants) == 0:
        assert phase(toy)[0] == "Available" and not waited
    else:
        assert phase(toy)[0] == "Waiting"
        node = toy.reserved("r")["nodeName"]
        there = {pod.name: pod_cpu(pod) for pod in toy.store.of_kind("Pod").values() if toy.where(pod.name) == node}
        free = 6 - sum(there.values())
        left = [free + sum(there[one] for one in waited if one != spared) for spared in waited]
        assert all(have < asked for have in left) and free + sum(map(there.__getitem__, waited)) >= asked


def pod_cpu(pod: Any) -> int:
    return int(pod.spec["containers"][0]["resources"]["requests"]["cpu"])
