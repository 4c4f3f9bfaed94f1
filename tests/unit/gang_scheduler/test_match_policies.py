"""Koordinator's match policies of gangs: who counts towards the minimum when members come later."""

from typing import Any

import pytest

KOORDINATOR = "gang.scheduling.koordinator.sh/"
POLICIES = ("once-satisfied", "only-waiting", "waiting-and-running", "nonsense", "")


def members(toy: Any, policy: str, count: int, first: int = 0, least: int = 2, cpu: int = 1) -> None:
    """Pods that name their gang, its minimum and its policy."""
    annotations = {KOORDINATOR + "name": "g", KOORDINATOR + "min-available": str(least)}
    if policy:
        annotations[KOORDINATOR + "match-policy"] = policy
    for number in range(first, first + count):
        toy.pods(f"w-{number}", cpu=cpu, annotations=annotations)
    toy.settle()


@pytest.mark.parametrize("policy", POLICIES)
def test_whatever_the_policy_a_gang_starts_whole(toy: Any, policy: str) -> None:
    toy.node("n", cpu=8)
    members(toy, policy, 1)
    assert toy.bound() == []
    members(toy, policy, 1, first=1)
    assert toy.bound() == ["w-0", "w-1"]


@pytest.mark.parametrize(
    ("policy", "bound"),
    [("once-satisfied", 3), ("only-waiting", 2), ("waiting-and-running", 3), ("nonsense", 3), ("", 3)],
)
def test_a_member_that_comes_later_joins_those_that_run_unless_only_the_waiting_count(
    toy: Any, policy: str, bound: int
) -> None:
    toy.node("n", cpu=8)
    members(toy, policy, 2)
    members(toy, policy, 1, first=2)
    assert len(toy.bound()) == bound
    if bound == 2:
        assert "1 of the 2 pods that g needs at once is there" in toy.message("w-2")
        members(toy, policy, 1, first=3)
        assert toy.bound() == ["w-0", "w-1", "w-2", "w-3"]


def test_beyond_the_minimum_nobody_follows_at_once_where_only_the_waiting_count(toy: Any) -> None:
    toy.node("n", cpu=8)
    members(toy, "only-waiting", 3)
    assert toy.bound() == ["w-0", "w-1"]


@pytest.mark.parametrize(("policy", "again"), [("once-satisfied", 1), ("waiting-and-running", 0), ("", 0)])
def test_after_all_have_failed_only_a_gang_satisfied_once_needs_no_minimum(toy: Any, policy: str, again: int) -> None:
    toy.node("n", cpu=8)
    members(toy, policy, 2)
    toy.finish("w-0", "w-1", phase="Failed")
    members(toy, policy, 1, first=2)
    assert len(toy.bound("w-2")) == again


def test_what_a_gang_lacks_beside_those_that_run_comes_together(toy: Any) -> None:
    toy.node("n", cpu=4)
    members(toy, "waiting-and-running", 4, least=4)
    toy.gone("w-0", "w-1")
    toy.pods("other", cpu=1)
    toy.settle()
    members(toy, "waiting-and-running", 1, first=4, least=4)
    assert toy.bound() == ["other", "w-2", "w-3"]
    assert "3 of the 4 pods that g needs are there, 2 of them on nodes" in toy.message("w-4")
    members(toy, "waiting-and-running", 1, first=5, least=4)
    assert toy.bound() == ["other", "w-2", "w-3"], "one has room, two have not"
    toy.gone("other")
    toy.settle()
    assert toy.bound() == ["w-2", "w-3", "w-4", "w-5"]


def test_replacements_come_one_by_one_without_a_policy(toy: Any) -> None:
    toy.node("n", cpu=4)
    members(toy, "", 4, least=4)
    toy.gone("w-0", "w-1")
    toy.settle()
    members(toy, "", 1, first=4, least=4)
    assert toy.bound() == ["w-2", "w-3", "w-4"]


def test_a_pod_group_may_name_the_policy(toy: Any) -> None:
    toy.node("n", cpu=8)
    toy.group("g", 2, annotations={KOORDINATOR + "match-policy": "only-waiting"})
    toy.pods("w", 3, cpu=1, group="g")
    toy.settle()
    assert toy.bound() == ["w-0", "w-1"]
