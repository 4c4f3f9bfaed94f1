"""Room that was freed for somebody is for that one: while victims leave, against newcomers, and across a restart."""

from typing import Any

from gang_scheduler.domain.core import SchedulerCore
from kube import Event, Verb


def restart(toy: Any) -> None:
    """The scheduler starts with nothing but its private state."""
    remembered = toy.core.remember() or toy.core._remembered
    toy.core = SchedulerCore()
    if remembered:
        toy.core.restore(remembered)
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    toy.entitle()


def crowd(toy: Any) -> None:
    """A full node, and somebody more important for whom one of two pods has to go; it takes its time."""
    toy.lingering = True
    toy.node("n", cpu=4)
    toy.pods("low", cpu=3, priority=1, node="n")
    toy.pods("mid", cpu=1, priority=5, node="n")
    toy.pods("high", cpu=3, priority=9)
    toy.settle()


def test_a_newcomer_does_not_take_the_room_of_a_victim(toy: Any) -> None:
    crowd(toy)
    assert toy.evicted == ["low"]
    toy.pods("late", cpu=1, priority=9)
    toy.settle()
    toy.gone("low")
    toy.settle()
    assert toy.where("high") == "n"
    assert toy.evicted == ["low", "mid"]


def test_nobody_is_evicted_twice_while_victims_leave(toy: Any) -> None:
    crowd(toy)
    for number in range(3):
        toy.pods(f"other-{number}", cpu=1, priority=1)
        toy.settle()
    assert toy.evicted == ["low"]
    assert "room for high is kept until 1 evicted pod has left it" in toy.message("high")


def test_idle_room_beside_a_leaving_victim_is_kept_as_far_as_it_is_needed(toy: Any) -> None:
    """Of three idle cpus two are needed beside the four that come; one is free for others."""
    toy.lingering = True
    toy.node("n", cpu=7)
    toy.pods("low", cpu=4, priority=1, node="n")
    toy.pods("high", cpu=6, priority=9)
    toy.settle()
    toy.pods("small", cpu=1, priority=1)
    toy.pods("large", cpu=2, priority=1)
    toy.settle()
    assert toy.where("small") == "n"
    assert toy.where("large") == ""
    toy.gone("low")
    toy.settle()
    assert toy.where("high") == "n"


def test_the_room_is_kept_across_a_restart(toy: Any) -> None:
    crowd(toy)
    restart(toy)
    toy.pods("late", cpu=3, priority=1)
    toy.gone("low")
    restart(toy)
    toy.settle()
    assert toy.where("high") == "n"
    assert toy.where("late") == ""
    assert toy.evicted == ["low"]


def test_a_promise_ends_with_the_one_to_whom_it_was_given(toy: Any) -> None:
    crowd(toy)
    toy.delete(toy.pod("high").key)
    toy.pods("late", cpu=3, priority=1)
    toy.gone("low")
    toy.settle()
    assert toy.where("late") == "n"
    assert not toy.core.claims


def test_another_place_is_taken_if_it_is_free_first(toy: Any) -> None:
    crowd(toy)
    toy.node("m", cpu=4)
    toy.settle()
    assert toy.where("high") == "m"
    toy.gone("low")
    toy.pods("late", cpu=3, priority=1)
    toy.settle()
    assert toy.where("late") == "n"


def test_queue_room_is_kept_too(toy: Any) -> None:
    """The node is large; the queue's four cpus are what somebody waits for."""
    toy.lingering = True
    toy.queues = {"q": {"capability": {"cpu": 4}, "deserved": {"cpu": 4}}}
    toy.node("n", cpu=20)
    toy.pods("low", cpu=3, priority=1, node="n", queue="q")
    toy.pods("high", cpu=4, priority=9, queue="q")
    toy.settle()
    assert toy.evicted == ["low"]
    toy.pods("late", cpu=1, priority=5, queue="q")
    toy.settle()
    assert toy.where("late") == ""
    toy.gone("low")
    toy.settle()
    assert toy.where("high") == "n"


def test_two_at_once_get_victims_of_their_own(toy: Any) -> None:
    toy.lingering = True
    for index in range(3):
        toy.node(f"n{index}", cpu=2)
        toy.pods(f"low-{index}", cpu=2, priority=1, node=f"n{index}")
    toy.pods("high", 2, cpu=2, priority=9)
    made = [decision for decision in toy.settle() if decision.name == "GangPreempted"]
    victims = [m.key.name for decision in made for m in decision.mutations if m.verb is Verb.EVICT]
    assert len(victims) == len(set(victims)) == 2
    toy.gone(*victims)
    toy.settle()
    assert len(toy.bound("high")) == 2


def test_the_decision_names_who_goes_for_whom_and_why(toy: Any) -> None:
    crowd(toy)
    (made,) = [decision for decision in toy.log if decision.name == "GangPreempted"]
    assert made.subject.name == "high"
    assert made.reason == "PreemptedByPriority"
    assert made.message == (
        "1 pod is evicted for default/high to start on n, as it has priority 9: "
        "default/low (priority 1, queue default, on n)"
    )
