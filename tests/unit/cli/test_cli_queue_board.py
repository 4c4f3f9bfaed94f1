"""What `tidegate queue` prints."""

from typing import Any

from kube import Manifest, parse_time
from tidegate_cli.queue_board import cluster_queue_lines, tree_lines, waiting_lines

NOW = parse_time("2026-01-01T01:00:00Z")


def queue(name: str, parent: str = "", **status: Any) -> Manifest:
    return {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}, "status": {"state": "Open", **status}}


def names(lines: list[str]) -> list[str]:
    return [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in lines[1:]]


def test_children_stand_below_their_parents_by_name() -> None:
    queues = [queue("b", "root"), queue("team-2", "a"), queue("root"), queue("a", "root"), queue("team-1", "a")]

    assert names(tree_lines(queues)) == ["root", "  a", "    team-1", "    team-2", "  b"]


def test_a_queue_without_a_parent_is_a_child_of_the_root_and_stands_alone_where_there_is_none() -> None:
    assert names(tree_lines([queue("root"), queue("loose")])) == ["root", "  loose"]
    assert names(tree_lines([queue("loose"), queue("lost", "gone")])) == ["loose", "lost"]


def test_who_is_let_in_and_not_placed_waits_too() -> None:
    line = tree_lines([queue("q", pending=2, inqueue=3, running=4, allocated={"cpu": "30"})])[1]

    assert "cpu=30" in line
    assert line.split()[-2:] == ["4", "5"]


def group(name: str, where: str, phase: str, minute: int, *conditions: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": "team", "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z"}
    return {
        "metadata": metadata,
        "spec": {"queue": where, "minMember": 2},
        "status": {"phase": phase, "conditions": list(conditions)},
    }


def test_those_that_wait_in_a_queue_stand_oldest_first_with_their_reason() -> None:
    told = {"type": "Unschedulable", "status": "True", "reason": "QueueCapability", "message": "cpu capability 40"}
    past = {"type": "Unschedulable", "status": "False", "message": "of old"}
    groups = [
        group("young", "q", "Inqueue", 50, told, past),
        group("old", "q", "Pending", 10),
        group("running", "q", "Running", 5),
        group("elsewhere", "other", "Pending", 5),
    ]

    lines = waiting_lines(groups, "q", NOW)

    assert [line.split()[0] for line in lines] == ["GROUP", "old", "young"]
    assert lines[2].endswith("cpu capability 40")
    assert waiting_lines(groups, "empty", NOW) == []


def test_cluster_queues_say_what_they_use_of_each_flavor() -> None:
    usage = [{"name": "spot", "resources": [{"name": "cpu", "total": "3"}]}]
    status = {"flavorsUsage": usage, "pendingWorkloads": 2, "admittedWorkloads": 1}
    found = {"metadata": {"name": "team"}, "spec": {"cohortName": "all"}, "status": status}

    assert cluster_queue_lines([found])[1].split() == ["team", "all", "spot/cpu=3", "2", "1"]
