"""Roles of a job beside each other, and replicas apart: Volcano's task-topology annotations."""

from typing import Any

import pytest

AFFINITY = "volcano.sh/task-topology-affinity"
APART = "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"


def job(toy: Any, annotations: dict[str, str], least: int = 0, **roles: tuple[int, int]) -> None:
    """A gang of roles, each with a number of pods and what each asks for of cpu."""
    toy.group("g", least or sum(count for count, _ in roles.values()), annotations=annotations)
    for role, (count, cpu) in roles.items():
        toy.put(*(member(role, index, cpu) for index in range(count)))
    toy.settle()


def member(role: str, index: int, cpu: int) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{role}-{index}",
            "annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": role},
        },
        "spec": {
            "schedulerName": "tidegate",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Pending"},
    }


def nodes(toy: Any, count: int, cpu: int) -> None:
    for index in range(count):
        toy.node(f"n{index}", cpu=cpu)


def by_node(toy: Any) -> list[list[str]]:
    """The roles on each node that has any, sorted."""
    found: dict[str, list[str]] = {}
    for name in [name for name in toy.bound() if not name.startswith("used")]:
        found.setdefault(toy.where(name), []).append(name.partition("-")[0])
    return sorted(sorted(roles) for roles in found.values())


def test_workers_are_beside_their_parameter_servers_which_keep_apart(toy: Any) -> None:
    nodes(toy, 3, 8)
    job(toy, {AFFINITY: "ps,worker", APART: "ps"}, ps=(2, 1), worker=(4, 2))
    assert by_node(toy) == [["ps", "worker", "worker"]] * 2


def test_replicas_keep_apart_as_far_as_there_are_nodes(toy: Any) -> None:
    nodes(toy, 2, 8)
    job(toy, {APART: "worker"}, worker=(3, 1))
    assert by_node(toy) == [["worker"], ["worker", "worker"]]


def test_roles_that_keep_apart_share_no_node(toy: Any) -> None:
    nodes(toy, 2, 8)
    job(toy, {APART: "ps,worker"}, ps=(2, 1), worker=(2, 1))
    assert by_node(toy) == [["ps", "ps"], ["worker", "worker"]]


def test_replicas_that_want_to_be_together_go_to_the_node_that_takes_all_of_them(toy: Any) -> None:
    toy.node("small", cpu=2)
    toy.node("wide", cpu=8)
    toy.pods("used", cpu=1, node="small")
    job(toy, {AFFINITY: "worker"}, worker=(3, 1))
    assert by_node(toy) == [["worker"] * 3]


def test_a_wish_keeps_no_gang_from_starting(toy: Any) -> None:
    nodes(toy, 1, 4)
    job(toy, {APART: "ps;worker;ps,worker"}, ps=(2, 1), worker=(2, 1))
    assert by_node(toy) == [["ps", "ps", "worker", "worker"]]


def test_a_replacement_goes_back_to_its_partner(toy: Any) -> None:
    nodes(toy, 3, 8)
    job(toy, {AFFINITY: "ps,worker", APART: "ps"}, ps=(2, 1), worker=(2, 2))
    home = toy.where("worker-1")
    toy.delete(toy.pod("worker-1").key)
    toy.put(member("worker", 2, 2))
    toy.settle()
    assert toy.where("worker-2") == home


def test_a_role_of_which_nothing_is_said_is_packed_as_ever(toy: Any) -> None:
    nodes(toy, 2, 8)
    toy.pods("used", cpu=1, node="n1")
    job(toy, {APART: "worker"}, worker=(2, 1), other=(2, 1))
    assert {toy.where("worker-0"), toy.where("worker-1")} == {"n0", "n1"}
    assert toy.where("other-0") == toy.where("other-1") == "n1"


@pytest.mark.parametrize("text", ["", ";", ",;,", "nobody,noone"])
def test_annotations_that_say_nothing_change_nothing(toy: Any, text: str) -> None:
    nodes(toy, 2, 8)
    toy.pods("used", cpu=1, node="n1")
    job(toy, {AFFINITY: text}, worker=(2, 1))
    assert toy.where("worker-0") == toy.where("worker-1") == "n1"


def test_the_order_that_is_asked_for_says_who_founds_the_groups(toy: Any) -> None:
    nodes(toy, 2, 4)
    job(toy, {AFFINITY: "a,b", APART: "b", ORDER: "b,a"}, a=(2, 1), b=(2, 1))
    assert by_node(toy) == [["a", "b"]] * 2
