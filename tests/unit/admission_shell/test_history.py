"""What was decided and what came of it, from logs that are read side by side."""

from typing import Any

import pytest

from admission.history import History
from kube import Decision, Key, Outcome
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.codec.facts import FactSet, encode

JOB = Key("Job.batch.volcano.sh", "default", "a")
GARBAGE = b"\xff\xff not a message"


class Told:
    """A history whose logs the test writes."""

    def __init__(self, desk: Any) -> None:
        self.desk, self.history = desk, History(desk.bus, ("toy",))

    def follow(self, *works: Any) -> None:
        self.desk.tasks += [self.desk.loop.create_task(work) for work in works]
        self.desk.loop.settle()

    def put(self, name: str, payload: bytes) -> None:
        log = self.desk.bus.log(name)

        async def append() -> None:
            last = await log.last()
            await log.append(payload, expected=last, message_id=f"test/{name}/{last}")

        self.desk.do(append())

    def decide(self) -> None:
        decision = Decision("JobStarted", JOB, reason="Asked", message="it was asked for")
        self.put(subjects.decisions("toy"), encode_commit(CommitHead("toy", 1, 0, 5), [("toy/1/1", decision)]))

    def answer(self, applied: bool = True) -> None:
        outcome = Outcome("toy/1/1", "JobStarted", JOB, applied, {} if applied else {str(JOB): "is gone"})
        self.put(subjects.FACTS, encode(FactSet(6, outcomes=(outcome,))))

    def newest(self) -> list[tuple[str, bool | None]]:
        return [(item.message, item.applied) for item in self.history.newest("", None, 10)]


@pytest.fixture
def told(desk: Any) -> Told:
    desk.kill_gateway()
    return Told(desk)


@pytest.mark.parametrize("outcomes_first", [False, True])
def test_an_outcome_finds_its_decision_whichever_is_read_first(told: Told, outcomes_first: bool) -> None:
    told.decide()
    told.answer()
    works = [told.history.follow("toy"), told.history.follow_outcomes()]
    for work in reversed(works) if outcomes_first else works:
        told.follow(work)
    assert told.newest() == [("it was asked for", True)]


def test_what_has_no_outcome_yet_is_open(told: Told) -> None:
    told.decide()
    told.follow(told.history.follow("toy"), told.history.follow_outcomes())
    assert told.newest() == [("it was asked for", None)]
    told.answer(applied=False)
    assert told.newest() == [(f"it was asked for — refused: {JOB} is gone", False)]


def test_what_cannot_be_read_is_passed_over(told: Told) -> None:
    told.put(subjects.decisions("toy"), GARBAGE)
    told.put(subjects.FACTS, GARBAGE)
    told.follow(told.history.follow("toy"), told.history.follow_outcomes())
    told.decide()
    told.answer()
    assert told.newest() == [("it was asked for", True)]
