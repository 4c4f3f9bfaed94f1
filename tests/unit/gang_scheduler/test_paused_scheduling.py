"""An operator's switch: while scheduling is paused nothing is placed and nobody is evicted, and whoever asks is told by whom."""

from typing import Any

import pytest

from kube.scheduling_pause import Pause, switched

BY, SINCE = "ops", "2026-01-01T00:00:00Z"


def pause(toy: Any) -> None:
    toy.put(switched(Pause(BY, SINCE, "the network is mended"), BY, SINCE))


def resume(toy: Any) -> None:
    toy.put(switched(None, BY, SINCE))


def test_nothing_is_placed_while_scheduling_is_paused_and_all_of_it_after(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.settle()
    pause(toy)
    toy.group("g", 2)
    toy.pods("g", 2, group="g", cpu=1)
    toy.pods("single", cpu=1)
    toy.settle()
    assert [
        toy.where(name)
        for name in (
            "g-0",
            "g-1",
            "single",
        )
    ] == ["", "", ""]
    resume(toy)
    toy.settle()
    assert [
        toy.where(name)
        for name in (
            "g-0",
            "g-1",
            "single",
        )
    ] == ["n", "n", "n"]


def test_nobody_is_evicted_while_scheduling_is_paused(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.pods("low", cpu=4, priority=1)
    toy.settle()
    pause(toy)
    toy.pods("high", cpu=4, priority=9)
    toy.settle()
    assert toy.evicted == []
    resume(toy)
    toy.settle()
    assert toy.evicted == ["low"]


def test_a_reservation_that_came_while_scheduling_was_paused_stands_after(toy: Any) -> None:
    toy.node("n", cpu=4)
    toy.settle()
    pause(toy)
    toy.reservation("r", cpu=2)
    toy.settle()
    assert "nodeName" not in toy.reserved("r")
    resume(toy)
    toy.settle()
    assert toy.reserved("r")["nodeName"] == "n"


@pytest.mark.parametrize(("cpu", "then"), [(1, ""), (9, "; then: 0/1 nodes are available")])
def test_whoever_asks_is_told_who_paused_it_and_what_keeps_them_waiting_besides(toy: Any, cpu: int, then: str) -> None:
    toy.node("n", cpu=4)
    toy.settle()
    pause(toy)
    toy.pods("p", cpu=cpu)
    toy.settle()
    answer = toy.explain("Pod", "p")
    said = f"scheduling is paused since {SINCE} by {BY}: the network is mended"
    assert answer["rule"] == "SchedulingPaused"
    assert answer["message"].startswith(said + then)
    assert "tidegate resume scheduling" in answer["waysOut"][0]


@pytest.mark.parametrize("name", ["scheduling", "other"])
def test_only_the_switch_itself_pauses(toy: Any, name: str) -> None:
    manifest = switched(Pause(BY, SINCE, ""), BY, SINCE)
    manifest["metadata"]["name"] = name
    toy.node("n", cpu=4)
    toy.put(manifest)
    toy.pods("p", cpu=1)
    toy.settle()
    assert [toy.where(name) for name in ("p",)] == ["" if name == "scheduling" else "n"]
