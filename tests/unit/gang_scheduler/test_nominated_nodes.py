"""Nominated nodes: who waits for victims is told where, and whoever is nominated goes there first."""

from typing import Any

from kube import Key, merge


def nominated(toy: Any, name: str) -> str:
    return str(toy.pod(name).status.get("nominatedNodeName") or "")


def nominate(toy: Any, name: str, node: str) -> None:
    """Somebody says in a pod's status where it should go."""
    pod = toy.pod(name)
    toy.fold([toy.store.put(pod.changed(status=merge(pod.status, {"nominatedNodeName": node})))])


def test_who_waits_for_victims_is_told_the_node_and_goes_there(toy: Any) -> None:
    toy.lingering = True
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=4)
    toy.pods("a", cpu=4, node="n1", priority=2)
    toy.pods("b", cpu=4, node="n2", priority=1)
    toy.pods("high", cpu=3, priority=9)
    toy.settle()
    assert (toy.evicted, nominated(toy, "high")) == (["b"], "n2")
    toy.gone("b", "a")
    toy.settle()
    assert toy.where("high") == "n2"


def test_every_member_of_a_gang_is_told_its_own_node(toy: Any) -> None:
    toy.lingering = True
    for name in ("n1", "n2"):
        toy.node(name, cpu=4)
        toy.pods(f"low-{name}", cpu=4, node=name, priority=1)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=3, priority=9)
    toy.settle()
    assert {nominated(toy, "g-0"), nominated(toy, "g-1")} == {"n1", "n2"}


def test_who_waits_for_nobodys_room_any_more_has_no_node_in_view(toy: Any) -> None:
    toy.lingering = True
    toy.node("n1", cpu=4)
    toy.pods("low", cpu=4, node="n1", priority=1)
    toy.pods("high", cpu=3, priority=9)
    toy.settle()
    assert nominated(toy, "high") == "n1"
    toy.delete(Key("Node", "", "n1"))
    toy.gone("low")
    toy.settle()
    assert nominated(toy, "high") == ""


def test_a_nominated_node_comes_before_a_better_one_if_it_fits(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.node("n2", cpu=8)
    toy.pods("fits", cpu=1)
    toy.pods("not", cpu=6)
    nominate(toy, "fits", "n2")
    nominate(toy, "not", "n1")
    toy.settle()
    assert (toy.where("fits"), toy.where("not")) == ("n2", "n2")


def test_an_owner_of_a_reservation_goes_where_it_is_nominated_first(toy: Any) -> None:
    toy.node("n1", cpu=4)
    toy.reservation("r", cpu=2)
    toy.settle()
    toy.node("n2", cpu=8)
    for name, node in (("here", "n1"), ("there", "n2")):
        toy.pods(name, cpu=2, labels={"app": "a"})
        nominate(toy, name, node)
    toy.settle()
    assert (toy.where("here"), toy.where("there")) == ("n1", "n2")
    assert "reservation-allocated" in str(toy.pod("here").annotations)
