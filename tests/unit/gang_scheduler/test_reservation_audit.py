"""What is easily got wrong about reservations: whose they are, what they hold besides amounts, where they can be used."""

import json
from typing import Any

import pytest

from kube import Key

A = {"app": "a"}
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
RESERVATION = "Reservation.scheduling.koordinator.sh"
PORT = [{"containerPort": 80, "hostPort": 8080}]


def used(toy: Any, pod: str) -> str:
    """The reservation that a pod was given."""
    told = toy.pod(pod).annotations.get(ALLOCATED)
    return str(json.loads(told)["name"]) if told else ""


def with_port(cpu: int) -> list[Any]:
    return [{"name": "main", "ports": PORT, "resources": {"requests": {"cpu": cpu}}}]


@pytest.mark.parametrize(
    ("owner", "owned"),
    [
        ({"labelSelector": {}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}}, False),
        ({"controller": {"name": "web", "kind": "ReplicaSet"}}, True),
        ({"controller": {"name": "side"}}, True),
        ({"controller": {"name": "side", "controller": True}}, False),
        ({"controller": {"name": "web", "controller": True}}, True),
        ({"controller": {"name": "web", "uid": "other"}}, False),
        ({"object": {"kind": "Pod", "apiVersion": "v1", "name": "mine"}, "labelSelector": {"matchLabels": A}}, True),
        ({"controller": {"name": "web"}, "labelSelector": {"matchLabels": {"app": "b"}}}, False),
    ],
)
def test_owners_are_found_by_selectors_and_by_any_reference_that_fits(toy: Any, owner: Any, owned: bool) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4, owners=[owner])
    toy.settle()
    references = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "side", "uid": "s"},
    ]
    metadata = {"name": "mine", "labels": A, "ownerReferences": references}
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
    toy.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    toy.settle()
    assert (toy.bound() == ["mine"]) is owned


@pytest.mark.parametrize("once", [True, False])
def test_a_reservation_of_the_same_name_has_none_of_the_owners_of_the_one_before(toy: Any, once: bool) -> None:
    toy.node("n1", cpu=8)
    toy.reservation("r", cpu=3, allocateOnce=once)
    toy.settle()
    toy.pods("before", cpu=3, labels=A)
    toy.settle()
    toy.delete(Key(RESERVATION, "", "r"))
    toy.settle()
    toy.reservation("r", cpu=3, allocateOnce=once)
    toy.settle()
    assert (toy.reserved("r")["phase"], toy.reserved("r").get("currentOwners")) == ("Available", None)
    toy.pods("other", cpu=3)
    toy.settle()
    assert toy.where("other") == ""
    toy.pods("after", cpu=3, labels=A)
    toy.settle()
    assert used(toy, "after") == "r"
    assert [owner["name"] for owner in toy.reserved("r")["currentOwners"]] == ["after"]


def test_a_reservation_holds_the_host_ports_of_its_template(toy: Any) -> None:
    toy.node("n1", cpu=8)
    toy.reservation("r", cpu=1, pod={"containers": with_port(1)}, allocateOnce=False)
    toy.settle()
    toy.pods("other", cpu=1)
    toy.put(pod_with_port("thief", {}))
    toy.settle()
    assert toy.bound() == ["other"]
    assert "no free host port 8080/TCP" in toy.message("thief")
    toy.put(pod_with_port("mine", A))
    toy.settle()
    assert (used(toy, "mine"), toy.where("thief")) == ("r", "")
    toy.gone("mine")
    toy.settle()
    assert toy.where("thief") == ""
    toy.delete(Key(RESERVATION, "", "r"))
    toy.settle()
    assert toy.where("thief") == "n1"


def pod_with_port(name: str, labels: dict[str, str]) -> Any:
    spec = {"containers": with_port(1)}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def test_a_reservation_on_a_node_that_is_not_ready_is_used_when_it_is_again(toy: Any) -> None:
    not_ready = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=4)
    toy.settle()
    toy.node("n1", cpu=4, spec={"taints": not_ready})
    toy.pods("mine", cpu=4, labels=A)
    toy.settle()
    assert (toy.bound(), toy.reserved("r")["phase"]) == ([], "Available")
    assert "reservation r" in toy.message("mine")
    toy.node("n1", cpu=4)
    toy.settle()
    assert used(toy, "mine") == "r"


def test_of_a_ttl_and_a_time_the_time_counts_and_zero_is_for_ever(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("ever", cpu=1, ttl="0s")
    toy.reservation("short", cpu=1, ttl="10m")
    toy.reservation("late", cpu=1, ttl="10m", expires="2027-01-01T00:00:00Z")
    toy.settle()
    toy.now += 11 * 60_000
    toy.settle()
    assert [toy.reserved(name)["phase"] for name in ("ever", "short", "late")] == ["Available", "Failed", "Available"]


def test_an_owner_may_take_more_than_an_aligned_reservation_has_and_its_status_says_what_it_takes(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=2, allocateOnce=False)
    toy.settle()
    toy.pods("mine", cpu=3, labels=A)
    toy.settle()
    assert used(toy, "mine") == "r"
    assert toy.reserved("r")["allocatable"] == {"cpu": "2"}
    assert toy.reserved("r")["nodeName"] == "n1"
    assert [item["type"] for item in toy.reserved("r")["conditions"] if item["status"] == "True"] == [
        "Scheduled",
        "Ready",
    ]
