"""Reservations: placed like pods, held for their owners, used first, gone when their time is over."""

import json
from typing import Any

import pytest

from kube import Outcome, Verb

A = {"app": "a"}
AFFINITY = "scheduling.koordinator.sh/reservation-affinity"
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
GPU = "nvidia.com/gpu"


def affinity(**parts: Any) -> dict[str, str]:
    return {AFFINITY: json.dumps(parts)}


def used(toy: Any, pod: str) -> str:
    """The reservation that a pod was given."""
    told = toy.pod(pod).annotations.get(ALLOCATED)
    return str(json.loads(told)["name"]) if told else ""


def test_a_reservation_holds_room_that_others_do_not_get(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3)
    toy.settle()
    assert (toy.reserved("r")["phase"], toy.reserved("r")["nodeName"]) == ("Available", "n1")
    assert toy.reserved("r")["allocatable"] == {"cpu": "3"}
    toy.pods("other", cpu=2)
    toy.settle()
    assert toy.bound() == []
    assert "Insufficient cpu" in toy.message("other")


def test_its_owner_uses_it_first_though_another_node_is_fuller(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=4)
    toy.reservation("r", cpu=1)
    toy.settle()
    toy.pods("filler", cpu=3, node="n2")
    toy.pods("mine", cpu=1, labels=A)
    toy.settle()
    assert (toy.where("mine"), used(toy, "mine")) == ("n1", "r")
    assert toy.reserved("r")["phase"] == "Succeeded"
    assert [owner["name"] for owner in toy.reserved("r")["currentOwners"]] == ["mine"]


def test_a_reservation_for_one_pod_is_over_with_its_first_owner_and_the_rest_of_it_is_free(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3)
    toy.settle()
    toy.pods("mine", cpu=1, labels=A)
    toy.pods("next", cpu=3)
    toy.settle()
    assert toy.bound() == ["mine", "next"]


def test_a_reservation_for_many_is_filled_and_freed_by_its_owners(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3, allocateOnce=False)
    toy.settle()
    toy.pods("mine", 2, cpu=1, labels=A)
    toy.settle()
    assert toy.reserved("r")["allocated"] == {"cpu": "2"}
    toy.gone("mine-0", "mine-1")
    toy.settle()
    assert toy.reserved("r")["phase"] == "Available"
    assert not toy.reserved("r").get("allocated")
    toy.pods("other", cpu=2)
    toy.settle()
    assert toy.bound() == []


@pytest.mark.parametrize(("policy", "bound"), [("Default", True), ("Aligned", True), ("Restricted", False)])
def test_only_a_restricted_reservation_keeps_its_owner_from_what_is_free_besides(
    toy: Any, policy: str, bound: bool
) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=2, allocatePolicy=policy)
    toy.settle()
    toy.pods("mine", cpu=3, labels=A)
    toy.settle()
    assert (used(toy, "mine") == "r") is bound
    assert bound or "it has too little cpu (needs 3, 2 left)" in toy.message("mine")


def test_the_restricted_resources_can_be_named(toy: Any) -> None:
    toy.node("n1", cpu=4, memory="8Gi")
    options = {"scheduling.koordinator.sh/reservation-restricted-options": '{"resources": ["memory"]}'}
    pod = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    toy.reservation("r", cpu=0, pod=pod, allocatePolicy="Restricted", metadata={"annotations": options})
    toy.settle()
    toy.pods("mine", cpu=2, memory="1Gi", labels=A)
    toy.settle()
    assert used(toy, "mine") == "r"


@pytest.mark.parametrize(
    ("owner", "owned"),
    [
        ({"object": {"namespace": "default", "name": "mine"}}, True),
        ({"object": {"namespace": "default", "name": "yours"}}, False),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "default"}}, True),
        ({"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "elsewhere"}}, False),
        ({"labelSelector": {"matchLabels": A}}, True),
        ({"labelSelector": {"matchLabels": A}, "object": {"name": "yours"}}, False),
        ({}, False),
    ],
)
def test_an_owner_is_who_fits_all_that_one_element_of_the_list_names(toy: Any, owner: Any, owned: bool) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4, owners=[{"object": {"name": "nobody"}}, owner])
    toy.settle()
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "labels": A, "ownerReferences": [reference]},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]},
        "status": {"phase": "Pending"},
    }
    toy.put(pod)
    toy.settle()
    assert (toy.bound() == ["mine"]) is owned


def test_who_asks_for_a_reservation_goes_nowhere_else(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("mine", cpu=1, labels=A, annotations=affinity(reservationSelector={"pool": "gold"}))
    toy.settle()
    assert "the pod goes only into a reservation, and none is there" in toy.message("mine")
    toy.reservation("silver", cpu=1)
    toy.settle()
    assert toy.bound() == []
    toy.reservation("gold", cpu=1, metadata={"labels": {"pool": "gold"}})
    toy.settle()
    assert used(toy, "mine") == "gold"


def test_taints_of_a_reservation_are_tolerated_in_the_affinity_to_it(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=2, allocateOnce=False, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    toy.settle()
    toy.pods("bare", cpu=1, labels=A)
    toy.pods("able", cpu=1, labels=A, annotations=affinity(name="r", tolerations=[{"key": "k", "operator": "Exists"}]))
    toy.settle()
    assert (used(toy, "bare"), used(toy, "able")) == ("", "r")


def test_an_unschedulable_reservation_holds_its_room_and_gives_it_to_nobody(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3, unschedulable=True)
    toy.settle()
    toy.pods("mine", cpu=3, labels=A)
    toy.settle()
    assert toy.bound() == []
    assert "reservation r: it is unschedulable" in toy.message("mine")
    toy.reservation("r", cpu=3, unschedulable=False)
    toy.settle()
    assert used(toy, "mine") == "r"


def test_who_ignores_reservations_takes_what_they_hold(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4)
    toy.settle()
    toy.pods("any", cpu=2, labels=A | {"scheduling.koordinator.sh/reservation-ignored": "true"})
    toy.settle()
    assert (toy.bound(), used(toy, "any")) == (["any"], "")
    toy.pods("mine", cpu=3, labels=A)
    toy.settle()
    assert toy.bound() == ["any"]


def test_an_exact_match_takes_no_reservation_of_another_size(toy: Any) -> None:
    toy.node("n1", cpu=8)
    toy.reservation("large", cpu=3)
    toy.reservation("right", cpu=2)
    toy.settle()
    exact = {"scheduling.koordinator.sh/exact-match-reservation": '{"resourceNames": ["cpu"]}'}
    toy.pods("mine", cpu=2, labels=A, annotations=exact)
    toy.settle()
    assert used(toy, "mine") == "right"


def test_of_several_reservations_the_order_decides_and_then_the_fullest(toy: Any) -> None:
    toy.node("n1", cpu=16)
    order = "scheduling.koordinator.sh/reservation-order"
    toy.reservation("large", cpu=4)
    toy.reservation("tight", cpu=2)
    toy.reservation("last", cpu=3, metadata={"labels": {order: "7"}})
    toy.reservation("first", cpu=5, metadata={"labels": {order: "3"}})
    toy.settle()
    for name in ("p1", "p2", "p3", "p4"):
        toy.pods(name, cpu=2, labels=A)
        toy.settle()
    assert [used(toy, name) for name in ("p1", "p2", "p3", "p4")] == ["first", "last", "tight", "large"]


def test_a_gang_starts_in_reservations_and_beside_them(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=4)
    toy.reservation("r1", cpu=3)
    toy.reservation("r2", cpu=3)
    toy.settle()
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=3, labels=A)
    made = toy.settle()
    assert toy.bound() == ["g-0", "g-1"]
    assert {used(toy, "g-0"), used(toy, "g-1")} == {"r1", "r2"}
    assert sum(mutation.verb is Verb.BIND for mutation in made[0].mutations) == 2


def test_a_gang_that_its_reservations_do_not_hold_leaves_them_as_they_were(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3, allocateOnce=False)
    toy.settle()
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=3, labels=A)
    toy.settle()
    assert toy.bound() == []
    toy.pods("lone", cpu=3, labels=A)
    toy.settle()
    assert used(toy, "lone") == "r"


def test_a_reservation_counts_for_no_queue_until_its_owner_comes(toy: Any) -> None:
    toy.queues = {"small": {"capability": {"cpu": 2}}}
    toy.node("n1", cpu=8)
    toy.reservation("r", cpu=4)
    toy.settle()
    assert toy.reserved("r")["phase"] == "Available"
    toy.pods("mine", cpu=3, labels=A, queue="small")
    toy.settle()
    assert toy.bound() == []
    toy.pods("fits", cpu=2, labels=A, queue="small")
    toy.settle()
    assert used(toy, "fits") == "r"


def test_nobody_is_evicted_for_a_reservation_and_it_is_nobodys_victim(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("low", cpu=2, node="n1", priority=1)
    toy.reservation("r", cpu=2, pod={"containers": [{"resources": {"requests": {"cpu": "2"}}}], "priority": 0})
    toy.reservation("wants", cpu=2, pod={"containers": [{"resources": {"requests": {"cpu": "2"}}}], "priority": 9})
    toy.settle()
    held = [name for name in ("r", "wants") if toy.reserved(name)["phase"] == "Available"]
    assert held == ["wants"]
    toy.pods("high", cpu=4, priority=10)
    toy.settle()
    assert toy.evicted == []
    toy.pods("middle", cpu=2, priority=10)
    toy.settle()
    assert (toy.evicted, toy.where("middle")) == (["low"], "n1")


def test_room_of_victims_and_of_a_reservation_on_one_node_is_put_together_for_its_owner(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.pods("low", cpu=2, node="n1", priority=1)
    toy.reservation("r", cpu=2)
    toy.settle()
    toy.pods("mine", cpu=4, labels=A, priority=9)
    toy.settle()
    assert (toy.evicted, used(toy, "mine")) == (["low"], "r")


def test_the_cards_of_a_reservation_are_its_owners(toy: Any) -> None:
    toy.node("n1", cpu=8, **{GPU: 4})
    toy.reservation("r", cpu=1, pod={"containers": [{"resources": {"requests": {GPU: "3"}}}]}, allocateOnce=False)
    toy.settle()
    toy.pods("other", 2, requests={GPU: 1})
    toy.settle()
    assert len(toy.bound("other")) == 1
    toy.pods("mine", requests={GPU: 2}, labels=A)
    toy.settle()
    assert used(toy, "mine") == "r"
    toy.pods("more", requests={GPU: 1}, labels=A)
    toy.settle()
    names = ("mine", "more", *toy.bound("other"))
    told = [json.loads(toy.pod(name).annotations["tidegate.dev/devices"])[GPU] for name in names]
    assert sorted(card for cards in told for card in cards) == [0, 1, 2, 3]


def test_what_was_assumed_and_refused_leaves_the_reservation_as_it_was(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3)
    toy.settle()
    toy.pods("mine", cpu=3, labels=A)
    (decided,) = toy.core.decide(toy.now, frozenset())
    toy.core.assume("x", decided)
    assert toy.core.check() == []
    toy.core.settle(Outcome("x", decided.name, decided.subject, False, {"": "stale"}))
    assert toy.core.check() == []
    toy.settle()
    assert used(toy, "mine") == "r"


def test_people_are_told_which_reservation_was_used_and_who_uses_it(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=3, allocateOnce=False)
    toy.settle()
    toy.pods("mine", cpu=1, labels=A)
    toy.settle()
    assert "in the room of reservation r" in toy.explain("Pod", "mine")["message"]
    assert toy.explain("Reservation", "r")["message"] == (
        "reservation r holds room on n1, used by default/mine; left: cpu 2"
    )
