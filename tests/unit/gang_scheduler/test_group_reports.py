"""Who decides goes before who reports: the status of a gang follows its pods when there is nothing more urgent to do."""

from typing import Any

from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.domain.reasons.group_reports import OLDEST_MS
from kube import Decision, Event, Key, Outcome

GROUP = "PodGroup.scheduling.volcano.sh"


def running_gang(toy: Any, name: str, size: int = 3) -> None:
    """A gang whose pods run, and whose status says so."""
    toy.group(name, size)
    toy.pods(name, size, group=name, cpu=1)
    toy.settle()


def names(decisions: list[Decision]) -> list[str]:
    return [f"{decision.name} {decision.subject.name}" for decision in decisions]


def test_a_gang_is_reported_at_once_while_nothing_else_happens(toy: Any) -> None:
    toy.node("n", cpu=32)
    running_gang(toy, "g")
    toy.finish("g-0")
    assert names(toy.core.decide(toy.now, frozenset())) == ["GangObserved g"]


def test_a_report_waits_for_what_is_decided_and_for_what_is_on_its_way(toy: Any) -> None:
    toy.node("n", cpu=32)
    running_gang(toy, "g")
    toy.finish("g-0")
    toy.group("h", 2)
    toy.pods("h", 2, group="h", cpu=1)
    (placed,) = toy.core.decide(toy.now, frozenset())
    assert names([placed]) == ["GangPlaced h"]
    toy.core.assume("d", placed)
    toy.finish("g-1")
    assert toy.core.decide(toy.now, frozenset({placed.subject})) == []
    toy.apply(placed)
    toy.core.settle(Outcome("d", placed.name, placed.subject, True))
    reports = {decision.subject.name: decision for decision in toy.core.decide(toy.now, frozenset())}
    assert set(reports) == {"g", "h"}
    assert reports["g"].mutations[0].patch["succeeded"] == 2, "told once, of both"


def test_a_report_is_never_older_than_half_a_second(toy: Any) -> None:
    toy.node("n", cpu=32)
    running_gang(toy, "g")
    toy.finish("g-0")
    others = frozenset({Key(GROUP, "default", "other")})
    assert names(toy.core.decide(toy.now, others)) == []
    due = toy.core.deadline()
    assert due is not None and due <= toy.now + OLDEST_MS
    assert names(toy.core.decide(toy.now + OLDEST_MS - 1, others)) == []
    assert names(toy.core.decide(toy.now + OLDEST_MS, others)) == ["GangObserved g"]


def test_a_gang_with_a_decision_on_its_way_is_reported_after_its_outcome(toy: Any) -> None:
    toy.node("n", cpu=32)
    running_gang(toy, "g")
    toy.finish("g-0")
    key = Key(GROUP, "default", "g")
    for at in (0, OLDEST_MS, 3 * OLDEST_MS):
        assert names(toy.core.decide(toy.now + at, frozenset({key}))) == []
    toy.core.settle(Outcome("d", "GangObserved", key, True))
    assert names(toy.core.decide(toy.now + 4 * OLDEST_MS, frozenset())) == ["GangObserved g"]


def test_a_successor_reports_whatever_else_is_on_its_way(toy: Any) -> None:
    """A report that its predecessor had put off is not put off again."""
    toy.node("n", cpu=32)
    running_gang(toy, "g")
    toy.finish("g-0")
    others = frozenset({Key(GROUP, "default", "other")})
    assert names(toy.core.decide(toy.now, others)) == []
    successor = SchedulerCore()
    successor.fold([Event(None, item) for item in toy.store.objects.values()], toy.now)
    successor.hear("queue_manager", toy._told)
    assert names(successor.decide(toy.now, others)) == ["GangObserved g"]
