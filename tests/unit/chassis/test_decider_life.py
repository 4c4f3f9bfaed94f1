"""The shell of a deciding service: it decides, is answered, dies, and goes on where it was."""

import json
import logging
from typing import Any

import pytest

from bus import RequestFailed
from kube import Decision, Edit, Key
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.decisions import CommitHead, encode_commit
from tidegate.codec.facts import FactSet

Rig = Any


def config_map(name: str) -> Key:
    return Key("ConfigMap", "default", name)


def test_what_should_happen_is_committed_with_what_it_was_decided_on(rig: Rig) -> None:
    rig.start()
    revision = rig.make("x", "y")
    started, commit = rig.commits()
    assert (started.leader_started, started.epoch, list(started.decisions)) == (True, 1, [])
    assert (commit.epoch, commit.decided_on, commit.now_ms) == (1, revision, rig.loop.now_ms)
    assert rig.decisions() == [("toy/1/1", "x"), ("toy/1/2", "y")]


def test_a_subject_is_left_alone_until_its_outcome_came(rig: Rig) -> None:
    decider = rig.start()
    rig.make("x")
    rig.make("y")
    assert [name for _, name in rig.decisions()] == ["x", "y"]
    assert set(decider.term.intake.in_flight) == {config_map("x"), config_map("y")}
    rig.answer("toy/1/1", "x")
    assert set(decider.term.intake.in_flight) == {config_map("y")}
    assert [outcome.decision_id for outcome in rig.cores[0].settled] == ["toy/1/1"]
    assert list(rig.cores[0].assumed) == ["toy/1/2"]
    assert len(rig.decisions()) == 2


def test_a_refused_decision_is_made_again_at_once_and_then_more_and_more_seldom(rig: Rig) -> None:
    rig.start()
    rig.make("x")
    waits = []
    for number in range(1, 9):
        before = rig.loop.now_ms
        rig.answer(f"toy/1/{number}", "x", applied=False)
        while len(rig.decisions()) == number:
            rig.loop.advance(50)
        waits.append(rig.loop.now_ms - before)
    assert waits == [0, 0, 100, 200, 400, 800, 1600, 3200]


def test_a_commit_names_the_subjects_that_are_left_alone(rig: Rig) -> None:
    """It is the one thing that a decision depends on which no log tells: it could not be made again otherwise."""
    rig.start()
    rig.make("x")
    for number in range(1, 4):
        rig.answer(f"toy/1/{number}", "x", applied=False)
    rig.make("y")
    assert [ref.name for ref in rig.commits()[-1].resting] == ["x"]
    rig.loop.advance(10_000)
    rig.make("z")
    assert [ref.name for ref in rig.commits()[-1].resting] == []


def test_an_applied_decision_ends_the_pauses(rig: Rig) -> None:
    rig.start()
    rig.make("x")
    for number in range(1, 4):
        rig.answer(f"toy/1/{number}", "x", applied=False)
    rig.loop.advance(100)
    rig.answer("toy/1/4", "x")
    rig.make("x")
    rig.answer("toy/1/5", "x", applied=False)
    assert len(rig.decisions()) == 6


def test_a_deadline_wakes_the_core_though_no_fact_comes(rig: Rig) -> None:
    rig.start()
    due = rig.loop.now_ms + 90_000
    rig.make("later", since=due)
    rig.loop.advance(89_999)
    assert rig.decisions() == []
    rig.loop.advance(1)
    assert rig.decisions() == [("toy/1/1", "later")]
    assert rig.cores[0].decided_at == [due]


def test_decisions_without_an_outcome_are_recalled_after_a_restart_and_not_made_again(rig: Rig) -> None:
    rig.start()
    rig.make("x")
    rig.make("y")
    rig.answer("toy/1/1", "x")
    rig.stop()
    rig.start()
    core = rig.cores[1]
    assert list(core.assumed) == ["toy/1/2"]
    assert [name for _, name in rig.decisions()] == ["x", "y"]
    rig.answer("toy/1/2", "y", applied=False)
    assert rig.decisions()[-1] == ("toy/4/1", "y")


def test_an_outcome_that_came_while_nobody_led_is_known_to_the_successor(rig: Rig) -> None:
    decider = rig.start()
    rig.make("x")
    rig.stop()
    rig.answer("toy/1/1", "x")
    decider = rig.start()
    assert rig.cores[1].assumed == {} and len(decider.term.intake.in_flight) == 0
    assert len(rig.decisions()) == 1


def snapshot(rig: Rig, sequence: int) -> None:
    content = facts.encode_snapshot([], sequence, rig.loop.now_ms, {})
    rig.do(rig.bus.log(subjects.FACTS).put_snapshot(sequence, content))


def test_a_successor_begins_from_a_snapshot_not_after_what_its_predecessor_had_decided_on(rig: Rig) -> None:
    """What happened behind that is told to it as changes, not as a state: it may hang on an edge."""
    rig.make("a")
    snapshot(rig, 1)
    rig.start()
    decided_on = rig.make("b")
    rig.answer("toy/1/1", "b")
    rig.stop()
    rig.fact(Edit(config_map("b"), "", removed=True))
    snapshot(rig, 4)
    assert rig.commits()[-1].decided_on == decided_on == 2
    decider = rig.start()
    assert [fold for fold in rig.cores[1].folds if fold] == [["b"], ["b"], ["b"]]
    assert decider.term.intake.fold.revision == 4


def test_without_so_old_a_snapshot_a_whole_log_is_read_from_its_beginning(rig: Rig) -> None:
    rig.start()
    rig.make("a")
    rig.stop()
    rig.make("b")
    snapshot(rig, 2)
    rig.start()
    assert rig.cores[1].folds[-2:] == [["a"], ["b"]]


def test_a_trimmed_log_leaves_only_the_newest_snapshot_to_begin_from(rig: Rig) -> None:
    rig.start()
    rig.make("a")
    rig.stop()
    rig.make("b")
    snapshot(rig, 2)
    rig.make("c")
    rig.do(rig.bus.log(subjects.FACTS).trim(3))
    decider = rig.start()
    assert rig.cores[1].folds[-1:] == [["c"]]
    assert decider.term.intake.fold.revision == 3


def test_the_second_of_two_waits_for_the_lease_and_takes_over_when_the_first_is_gone(rig: Rig) -> None:
    rig.start("a")
    rig.start("b")
    assert len(rig.cores) == 1
    rig.make("x")
    rig.stop(0)
    assert len(rig.cores) == 2
    assert [commit.epoch for commit in rig.commits() if commit.leader_started] == [1, 3]
    assert list(rig.cores[1].assumed) == ["toy/1/1"]


def test_the_core_that_decides_is_told_and_none_where_another_process_leads(rig: Rig) -> None:
    """What is done beside the decisions, by what the core knows, is done by the leader alone."""
    first, second = rig.start("a"), rig.start("b")
    assert first.deciding is rig.cores[0] and second.deciding is None
    rig.stop(0)
    assert first.deciding is None and second.deciding is rig.cores[1]


def test_a_leader_that_was_followed_is_refused_and_stops(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Two that both believe to hold the lease: the log lets only the newer one write."""
    first = rig.start("a")
    del rig.bus.holders["toy"]
    second = rig.start("b")
    with caplog.at_level(logging.WARNING):
        rig.make("x")
    leaders = [commit for commit in rig.commits() if not commit.leader_started]
    assert [commit.epoch for commit in leaders] == [2]
    assert second.ready.is_set() and not first.ready.is_set()
    assert "leadership_lost" in caplog.text
    assert rig.bus.holders == {"toy": "b"}


def test_a_fact_that_cannot_be_read_is_parked_and_the_rest_goes_on(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.start()
    rig.raw_fact(b"\xff\xff not a message")
    rig.make("x")
    (parked,) = rig.do(rig.bus.parked())
    assert (parked.service, parked.source, parked.payload) == ("toy", "fact/1", b"\xff\xff not a message")
    assert rig.decisions() == [("toy/1/1", "x")]


def test_a_service_starts_though_the_newest_fact_cannot_be_read(rig: Rig) -> None:
    rig.make("x")
    rig.raw_fact(b"\xff\xff not a message")
    decider = rig.start()
    assert decider.ready.is_set()
    assert rig.decisions() == [("toy/1/1", "x")]


def test_a_commit_of_another_service_that_cannot_be_read_is_parked(rig: Rig) -> None:
    other = rig.bus.log(subjects.decisions("other"))
    rig.do(other.append(b"\xff\xff", expected=0, message_id="a"))
    rig.start(inputs=("other",))
    rig.do(other.append(b"\xff\xff", expected=1, message_id="b"))
    heard = Decision("Said", config_map("x"), reason="hello")
    payload = encode_commit(CommitHead("other", 1, 0, 0), [("other/1/1", heard)])
    rig.do(other.append(payload, expected=2, message_id="c"))
    assert rig.cores[0].heard == ["hello"]
    assert [item.source for item in rig.do(rig.bus.parked())] == ["decision.other/2"]


def test_the_newest_entitlements_are_heard_by_who_starts_later(rig: Rig) -> None:
    other = rig.bus.log(subjects.decisions("other"))
    for number, (name, topic) in enumerate([("EntitlementsComputed", "entitlements")] * 2 + [("Said", "")]):
        said = Decision(name, config_map("q"), reason=str(number))
        payload = encode_commit(CommitHead("other", 1, 0, 0), [(f"other/1/{number}", said)])
        rig.do(other.append(payload, expected=number, message_id=str(number), topic=topic))
    rig.start(inputs=("other",))
    assert rig.cores[0].heard == ["1", "2"]
    rig.make("x")
    assert dict(rig.commits()[-1].inputs) == {"other": 3}


def test_questions_are_answered_from_the_present_state(rig: Rig) -> None:
    rig.start()
    rig.make("x")
    answer = rig.do(rig.bus.request(subjects.question("toy", "explain"), b'{"about":"x"}'))
    assert json.loads(answer) == {"name": "explain", "plain": ["x"], "about": "x", "now": rig.loop.now_ms}
    rig.stop()
    with pytest.raises(Exception, match="nobody answers"):
        rig.do(rig.bus.request(subjects.question("toy", "explain"), b"{}"))


def test_a_question_that_fails_fails_for_the_asker_alone(rig: Rig) -> None:
    rig.start()
    with pytest.raises(RequestFailed):
        rig.do(rig.bus.request(subjects.question("toy", "explain"), b"no json"))
    rig.make("x")
    assert len(rig.decisions()) == 1


def test_the_same_facts_make_the_same_commits_bytes_and_all(rig: Rig) -> None:
    rig.start()
    rig.make("b", "a")
    rig.answer("toy/1/1", "b", applied=False)
    first = [entry.payload for entry in rig.bus.log(subjects.decisions("toy")).entries(0)]
    other = type(rig)()
    try:
        other.start()
        other.make("b", "a")
        other.answer("toy/1/1", "b", applied=False)
        assert [entry.payload for entry in other.bus.log(subjects.decisions("toy")).entries(0)] == first
    finally:
        other.close()


def test_an_empty_change_set_only_moves_the_revision(rig: Rig) -> None:
    decider = rig.start()
    rig.raw_fact(facts.encode(FactSet(rig.loop.now_ms)))
    assert decider.term.intake.fold.revision == 1 and rig.cores[0].folds == [[]]


def test_who_leads_hears_first_what_it_told_last_itself(rig: Rig) -> None:
    own = rig.bus.log(subjects.decisions("toy"))
    told = Decision("EntitlementsComputed", config_map("q"), reason="told")
    payload = encode_commit(CommitHead("toy", 1, 0, 0), [("toy/1/1", told)])
    rig.do(own.append(payload, expected=0, message_id="told", topic="entitlements"))
    rig.start()
    assert rig.cores[0].heard == ["told"]
    rig.make("x")
    assert dict(rig.commits()[-1].inputs) == {}, "its own log is none of its inputs"
