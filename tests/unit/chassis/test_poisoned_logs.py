"""A service's own log holds something that nobody can read: the service leads on, and knows what it decided."""

from typing import Any

from tidegate import subjects

GARBAGE = b"\xff\xff not a message"


def spoil(rig: Any) -> int:
    """Put garbage behind what the service has written."""
    log = rig.bus.log(subjects.decisions("toy"))

    async def append() -> int:
        last = await log.last()
        return await log.append(GARBAGE, expected=last, message_id=f"garbage/{last}")

    return rig.do(append())


def decided(rig: Any) -> list[str]:
    """The maps that were decided about, over all terms that can be read."""
    from tidegate.codec.decisions import decode_commit
    from tidegate.decision.v1 import decision_pb2

    entries = [entry.payload for entry in rig.bus.log(subjects.decisions("toy")).entries(0) if entry.payload != GARBAGE]
    commits = map(decision_pb2.Commit.FromString, entries)
    return [decision.subject.name for commit in commits for _, decision in decode_commit(commit)]


def test_a_service_takes_the_lead_though_its_log_ends_in_garbage(rig: Any) -> None:
    rig.start()
    rig.stop()
    spoil(rig)
    spoil(rig)
    decider = rig.start()
    rig.make("x")
    assert decider.ready.is_set() and decided(rig) == ["x"]


def test_what_was_decided_before_the_garbage_counts_as_done(rig: Any) -> None:
    """The decision has no outcome yet: the successor must not make it again."""
    rig.start()
    rig.make("x")
    rig.stop()
    spoil(rig)
    decider = rig.start()
    assert len(decider.term.intake.in_flight) == 1 and decided(rig) == ["x"]


def test_garbage_in_its_own_log_is_parked(rig: Any) -> None:
    rig.start()
    rig.stop()
    sequence = spoil(rig)
    rig.start()
    assert [item.source for item in rig.do(rig.bus.parked())] == [f"decision.toy/{sequence}"]


def test_a_log_of_nothing_but_garbage_is_like_an_empty_one(rig: Any) -> None:
    spoil(rig)
    rig.make("x")
    decider = rig.start()
    assert decider.ready.is_set() and decided(rig) == ["x"]
