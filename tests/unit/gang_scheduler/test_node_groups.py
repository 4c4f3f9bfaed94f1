"""Volcano's node groups: which nodes are for which queues."""

from typing import Any

import pytest

NODE_GROUP = "volcano.sh/nodegroup-name"


@pytest.fixture
def grouped(toy: Any) -> Any:
    """Nodes a and b of groups of their names, and one of none; queues qa and qb."""
    for name in ("a", "b"):
        toy.node(name, cpu=4, labels={NODE_GROUP: name})
    toy.node("c", cpu=4)
    for name in ("root", "qa", "qb"):
        toy.queues[name] = {"parent": "" if name == "root" else "root"}
    return toy


def say(toy: Any, queue: str, **groups: list[str]) -> None:
    toy.queues[queue]["node_groups"] = groups
    toy.entitle()


def ask(toy: Any, name: str, queue: str, cpu: int = 1, **parts: Any) -> str:
    """The node that a new pod gets."""
    toy.pods(name, cpu=cpu, queue=queue, **parts)
    toy.settle()
    return str(toy.where(name))


def test_nodes_of_groups_are_for_queues_that_speak_of_groups(grouped: Any) -> None:
    assert ask(grouped, "p", "qa") == "c"
    assert ask(grouped, "wide", "qa", 4) == ""
    assert "2 node(s) are in no node group that its queue may use" in grouped.message("wide")
    say(grouped, "qa", preferred=["b"])
    grouped.settle()
    assert grouped.where("wide") == "b"


def test_a_queue_may_have_to_be_in_a_group(grouped: Any) -> None:
    say(grouped, "qa", required=["a"])
    assert [ask(grouped, f"p{at}", "qa", 2) for at in range(3)] == ["a", "a", ""]
    assert ask(grouped, "other", "qb") == "c"


def test_a_queue_may_have_to_stay_out_of_a_group(grouped: Any) -> None:
    say(grouped, "qa", forbidden=["a"])
    assert sorted(ask(grouped, f"p{at}", "qa", 4) for at in range(3)) == ["", "b", "c"]


def test_a_group_may_be_wanted_or_avoided(grouped: Any) -> None:
    say(grouped, "qa", preferred=["b"])
    assert [ask(grouped, f"p{at}", "qa", 4) for at in range(3)] == ["b", "a", "c"]
    grouped.finish("p0", "p1", "p2")
    say(grouped, "qa", avoided=["a", "b"])
    assert ask(grouped, "q0", "qa", 4) == "c"
    assert ask(grouped, "q1", "qa", 4) == "a"


def test_a_queue_that_says_nothing_has_what_those_above_say(grouped: Any) -> None:
    grouped.queues["child"] = {"parent": "qa"}
    say(grouped, "qa", required=["a"])
    assert ask(grouped, "p", "child") == "a"


def test_members_of_a_group_follow_its_queue(grouped: Any) -> None:
    say(grouped, "qa", required=["a"])
    grouped.pods("w", 2, group="g", cpu=1)
    grouped.settle()
    grouped.group("g", 2, queue="qa")
    grouped.settle()
    assert [grouped.where(f"w-{at}") for at in range(2)] == ["a", "a"]


def test_daemons_go_with_their_nodes(grouped: Any) -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "d", "ownerReferences": owner},
        "spec": {"containers": [{"name": "c"}], "nodeSelector": {"kubernetes.io/hostname": "a"}},
        "status": {"phase": "Pending"},
    }
    grouped.put(manifest)
    grouped.settle()
    assert grouped.where("d") == "a"


def test_without_groups_all_nodes_are_for_all(toy: Any) -> None:
    toy.node("a", cpu=4)
    assert ask(toy, "p", "default", 4) == "a"
    assert ask(toy, "q", "default", 4) == ""
    toy.node("b", cpu=4, labels={NODE_GROUP: "x"})
    toy.settle()
    assert toy.where("q") == ""
    toy.node("b", cpu=4)
    toy.settle()
    assert (toy.where("q"), toy.core.check()) == ("b", [])


def test_running_pods_stay_when_groups_change(grouped: Any) -> None:
    assert ask(grouped, "p", "qa") == "c"
    say(grouped, "qa", required=["a"])
    grouped.settle()
    assert (grouped.where("p"), grouped.core.check()) == ("c", [])
