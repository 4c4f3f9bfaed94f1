"""What was decided and what came of it, from logs that are read side by side."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from admission.history import History
from admission.view import View
from admission.writes import Writes
from kube import Decision, Edit, Key, Outcome
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.codec.facts import FactSet, encode
from tidegate.fact.v1 import fact_pb2

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


def wrote(told: Told, *edits: Edit) -> list[tuple[str, str]]:
    """What is told of writes after these."""
    told.put(subjects.FACTS, encode(FactSet(6, edits)))
    told.follow(told.history.follow_outcomes())
    return [(item.source, item.name) for item in told.history.writes.newest("default", JOB, 10)]


def test_who_made_changed_and_deleted_an_object_is_told(told: Told) -> None:
    edits = (
        Edit(JOB, "u", {"name": "a"}, {}, {}, fresh=True, actor="ada"),
        Edit(JOB, "u", body={"spec": {"minAvailable": 2}}, actor="bob"),
        Edit(JOB, "u", {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, actor="bob"),
        Edit(JOB, "u", removed=True, actor="cluster_gateway"),
    )
    assert wrote(told, *edits) == [("ada", "ObjectCreated"), ("bob", "ObjectChanged"), ("bob", "ObjectDeleted")]


@pytest.mark.parametrize("actor", ["gang_scheduler", "cluster_gateway", "node/n1"])
def test_what_the_system_itself_changes_is_no_write_of_a_user(told: Told, actor: str) -> None:
    assert wrote(told, Edit(JOB, "u", {"name": "a"}, {}, {}, fresh=True, actor=actor)) == []


def test_members_that_are_written_at_once_are_told_one_by_one(told: Told) -> None:
    others = [Key(JOB.kind, "default", name) for name in ("b", "a", "c")]
    assert len(wrote(told, *(Edit(key, "u", {}, {}, {}, fresh=True, actor="ada") for key in others))) == 1
    assert [one.about.name for one in told.history.writes.newest("", None, 2)] == ["a", "c"]
    assert told.history.writes.newest("team", None, 9) == []
    assert told.history.writes.newest("", None, 9, lambda key: key.name == "c")[0].message == "ada created Job c"


def test_what_somebody_has_read_already_is_noted_once_and_not_read_again(told: Told) -> None:
    """The log is read for the past; what the view of the facts is told of from then on comes from there."""
    log = told.desk.bus.log(subjects.FACTS)
    read, readers = log.read, list[int]()

    async def counted(after: int) -> AsyncIterator[Any]:
        readers.append(after)
        try:
            async for entries in read(after):
                yield entries
        finally:
            readers.remove(after)

    def write(name: str) -> None:
        made = Edit(Key(JOB.kind, "default", name), "u", {}, {}, {}, fresh=True, actor="ada")
        told.put(subjects.FACTS, encode(FactSet(6, (made,))))

    log.read = counted
    write("past")
    told.follow(told.history.follow_outcomes(), View(told.desk.bus, told.history.hear).run())
    for name in ("first", "second", "third"):
        write(name)
        assert len(readers) == 1
    assert [one.about.name for one in told.history.writes.newest("", None, 9)] == ["past", "first", "second", "third"]


def test_only_the_newest_writes_are_kept_each_object_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of objects that were written alike each is told of by itself, and the oldest ones go first."""
    monkeypatch.setattr("admission.writes.KEPT", 3)
    writes = Writes()
    for revision, names in enumerate(("ab", "cd", "e"), 1):
        edits = tuple(Edit(JOB._replace(name=name), name, {}, {}, {}, fresh=True, actor="ada") for name in names)
        writes.note(fact_pb2.ChangeSet.FromString(encode(FactSet(5, edits))), revision)
        assert len(writes.newest("", None, 9)) <= 3
    assert [(one.about.name, one.revision) for one in writes.newest("", None, 9)] == [("c", 2), ("d", 2), ("e", 3)]
    assert [one.message for one in writes.newest("", JOB._replace(name="d"), 9)] == ["ada created Job d"]
