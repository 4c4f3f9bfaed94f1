"""Why somebody waits is written a moment later, once: not at all of those who find their place within it."""

from typing import Any

import pytest

from gang_scheduler.domain.core import SchedulerCore
from kube import Decision

LATER = 1_000


@pytest.fixture
def patient(new_toy: Any) -> Any:
    """A cluster whose scheduler tells after a second."""
    toy = new_toy(core=SchedulerCore(told_after_ms=LATER))
    toy.node("n", cpu=32)
    toy.settle()
    return toy


def decided(toy: Any) -> list[Decision]:
    """What is decided and done now."""
    made: list[Decision] = toy.core.decide(toy.now, frozenset())
    for decision in made:
        toy.apply(decision)
    return made


def names(decisions: list[Decision]) -> list[str]:
    return [decision.name for decision in decisions]


def test_a_gang_that_is_whole_within_the_second_was_never_told_that_it_waits(patient: Any) -> None:
    patient.group("g", 10)
    told = []
    for number in range(10):
        patient.pods(f"p{number}", group="g", cpu=1)
        told += decided(patient)
        patient.now += LATER // 20
    assert names(told) == ["GangPlaced"]
    assert patient.core.deadline() is None


def test_a_gang_that_waits_on_is_told_once_of_all_its_pods_as_it_is_then(patient: Any) -> None:
    patient.group("g", 10)
    began = patient.now
    for number in range(5):
        patient.pods(f"p{number}", group="g", cpu=1)
        assert decided(patient) == []
        patient.now += LATER // 10
    assert patient.core.deadline() == began + LATER

    patient.now = began + LATER - 1
    assert decided(patient) == []
    patient.now = began + LATER
    (told,) = decided(patient)

    assert told.name == "WaitExplained"
    assert "5" in told.message
    assert {one.key.name for one in told.mutations} == {"g", *(f"p{number}" for number in range(5))}
    assert decided(patient) == []
    assert patient.core.deadline() is None


def test_who_asks_is_answered_before_it_is_written(patient: Any) -> None:
    patient.group("g", 2)
    patient.pods("p", group="g", cpu=1)
    assert decided(patient) == []
    answer = patient.core.query("explain", {"kind": "PodGroup", "namespace": "default", "name": "g"})
    assert "1" in str(answer)


def test_what_is_on_its_way_when_it_is_due_is_told_after_it(patient: Any) -> None:
    patient.group("g", 2)
    patient.pods("p", group="g", cpu=1)
    group = patient.core.cluster.groups
    (key,) = {found.key for found in group.values()}
    assert patient.core.decide(patient.now, frozenset()) == []
    patient.now += LATER
    assert patient.core.decide(patient.now, frozenset({key})) == []
    assert patient.core.deadline() == patient.now + LATER
    patient.now += LATER
    assert names(decided(patient)) == ["WaitExplained"]


def test_who_goes_before_it_is_due_is_told_nothing(patient: Any) -> None:
    patient.pods("big", cpu=64)
    assert decided(patient) == []
    patient.gone("big")
    patient.now += LATER
    assert decided(patient) == []
    patient.now += LATER
    assert decided(patient) == []
    assert patient.core.deadline() is None
