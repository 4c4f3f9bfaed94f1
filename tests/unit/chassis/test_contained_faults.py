"""A core raises: what it stumbled over is set aside with its error, and everything else goes on being decided."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.inquest import Inquest
from chassis.private_state import PrivateState
from chassis.quarantine import FIRST_PAUSE_MS
from kube import Decision, Edit, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, encode_commit


class BrittleCore:
    """Labels every ConfigMap. The names of maps say where it raises about them.

    ``trap``: as it decides about it. ``swamp``: as it decides, whatever it is told to leave alone. ``bad``: as it folds it.
    ``scrap``: when what it decided is to be stored. ``void``: whatever there is, once such a map was.
    """

    def __init__(self) -> None:
        self.maps: dict[Key, bool] = {}
        self.mended: set[Key] = set()
        self.heard: list[str] = []

    def fold(self, events: Sequence[Event], now: int) -> None:
        for event in events:
            if event.key.name.startswith("bad"):
                raise ValueError(f"{event.key.name} cannot be folded")
            self.maps[event.key] = event.new is not None and "done" not in event.new.labels
            if event.new is not None and "mended" in event.new.labels:
                self.mended.add(event.key)
            if event.new is None:
                del self.maps[event.key]

    def hear(self, service: str, decision: Decision) -> None:
        if decision.reason == "poison":
            raise ValueError("cannot be heard")
        self.heard.append(decision.reason)

    def assume(self, decision_id: str, decision: Decision) -> None:
        if decision.subject.name.startswith("unassumable"):
            raise ValueError("cannot be assumed")

    def settle(self, outcome: Outcome) -> None: ...

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        decided = []
        for key, plain in self.maps.items():
            if key.name.startswith("swamp"):
                raise LookupError(f"{key.name} is bottomless")
            if not plain or key in in_flight:
                continue
            if key.name.startswith("trap") and key not in self.mended:
                raise RuntimeError(f"{key.name} snaps")
            patch: Manifest = {"metadata": {"labels": {"done": {1} if key.name == "scrap" else "yes"}}}
            decided.append(Decision("MapLabelled", key, mutations=(Mutation(Verb.PATCH, key, patch=patch),)))
        return decided

    def deadline(self) -> int | None:
        return None

    def query(self, name: str, arguments: Manifest) -> Manifest:
        if arguments.get("name") == "riddle":
            raise RuntimeError("cannot be answered")
        return {"maps": len(self.maps)}

    def check(self) -> list[str]:
        return []


class Hopeless(BrittleCore):
    """Raises whatever there is."""

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        raise RuntimeError("out of order")


def decided(rig: Any) -> list[str]:
    return sorted({name for _, name in rig.decisions()})


def parked(rig: Any) -> list[tuple[str, str]]:
    return [(item.source, item.error) for item in rig.do(rig.bus.parked())]


def status(rig: Any) -> Manifest:
    return json.loads(rig.do(rig.bus.request(subjects.question("toy", "status"), b"")))


def key(name: str) -> Key:
    return Key("ConfigMap", "default", name)


@pytest.mark.parametrize("bad", ["trap", "swamp", "bad", "scrap", "unassumable"])
def test_what_the_core_stumbles_over_is_set_aside_and_the_others_are_decided(rig: Any, bad: str) -> None:
    rig.start(core=BrittleCore)
    rig.make("a", bad, "b")
    rig.make("c")
    assert decided(rig) == ["a", "b", "c"]
    ((source, error),) = parked(rig)
    assert source == str(key(bad))
    assert any(words in error for words in (bad, "cannot be assumed", "TypeError"))
    assert list(status(rig)["aside"]) == [str(key(bad))]


@pytest.mark.parametrize("bad", ["trap", "swamp", "bad"])
def test_what_stood_there_before_the_service_began_is_set_aside_too(rig: Any, bad: str) -> None:
    rig.make("a", bad, "b")
    rig.start(core=BrittleCore)
    assert decided(rig) == ["a", "b"] and len(parked(rig)) == 1


def test_several_are_found_each_for_itself(rig: Any) -> None:
    rig.start(core=BrittleCore)
    rig.make("a", "trap-1", "swamp", "trap-2", "bad", "b")
    assert decided(rig) == ["a", "b"]
    assert sorted(source.rpartition("/")[2] for source, _ in parked(rig)) == ["bad", "swamp", "trap-1", "trap-2"]


def test_who_asks_is_told_why_nothing_happens(rig: Any) -> None:
    rig.start(core=BrittleCore)
    rig.make("trap")
    question = json.dumps({"kind": "ConfigMap", "namespace": "default", "name": "trap"}).encode()
    answer = json.loads(rig.do(rig.bus.request(subjects.question("toy", "explain"), question)))
    assert answer["verdict"] == "SetAside" and "RuntimeError: trap snaps" in answer["message"]


@pytest.mark.parametrize("bad", ["trap", "swamp", "bad"])
def test_it_is_tried_again_more_and_more_seldom(rig: Any, bad: str) -> None:
    rig.start(core=BrittleCore)
    rig.make(bad)
    rig.loop.advance(20 * FIRST_PAUSE_MS)
    assert 4 <= len(parked(rig)) <= 6, "after 0, 5, 15, 35 and 75 s"
    began = len(rig.commits())
    rig.loop.advance(3_600_000)
    assert len(rig.commits()) - began < 20
    rig.make("later")
    assert decided(rig) == ["later"]


def test_a_mended_object_is_decided_about_soon(rig: Any) -> None:
    decider = rig.start(core=BrittleCore)
    rig.make("trap")
    rig.loop.advance(120_000)
    assert decider.quarantine.cases[key("trap")].times > 3
    rig.fact(Edit(key("trap"), "u-trap", {"labels": {"mended": "yes"}}))
    rig.loop.advance(FIRST_PAUSE_MS + 100)
    assert decided(rig) == ["trap"] and status(rig)["aside"] == {}


@pytest.mark.parametrize("bad", ["trap", "bad"])
def test_an_object_that_is_deleted_is_forgotten(rig: Any, bad: str) -> None:
    decider = rig.start(core=BrittleCore)
    rig.make(bad)
    rig.fact(Edit(key(bad), f"u-{bad}", removed=True))
    assert decider.quarantine.cases == {} and decider.quarantine.deadline() is None


def test_a_decision_that_the_core_cannot_hear_is_set_aside_and_the_others_are_heard(rig: Any) -> None:
    other = rig.bus.log(subjects.decisions("other"))
    rig.start(core=lambda: rig.cores.append(BrittleCore()) or rig.cores[-1], inputs=("other",))
    for number, reason in enumerate(["first", "poison", "last"]):
        said = Decision("Said", key("x"), reason=reason)
        payload = encode_commit(CommitHead("other", 1, 0, 0), [(f"other/1/{number}", said)])
        rig.do(other.append(payload, expected=number, message_id=str(number)))
    rig.make("a")
    assert rig.cores[-1].heard[-1] == "last" and decided(rig) == ["a"]
    assert [source for source, _ in parked(rig)] == ["decision.other/2"]


def test_what_was_heard_before_stands_in_for_what_cannot_be_heard(rig: Any) -> None:
    """Of some decisions only the newest is read at a start: without the one before, nothing would be known."""
    other = rig.bus.log(subjects.decisions("other"))
    rig.start(core=lambda: rig.cores.append(BrittleCore()) or rig.cores[-1], inputs=("other",))
    for number, reason in enumerate(["good", "poison"]):
        said = Decision("EntitlementsComputed", key("x"), reason=reason)
        payload = encode_commit(CommitHead("other", 1, 0, 0), [(f"other/1/{number}", said)])
        rig.do(other.append(payload, expected=number, message_id=str(number), topic="entitlements"))
    assert len(rig.cores) == 2 and rig.cores[-1].heard == ["good"]


def test_a_core_that_always_raises_is_made_again_less_and_less_often_and_says_so(rig: Any) -> None:
    decider = rig.start(core=Hopeless)
    rig.make("a")
    rig.loop.advance(600_000)
    assert len(rig.commits()) < 25
    assert not decider.ready.is_set() and "out of order" in status(rig)["trouble"]
    assert len(parked(rig)) < 25
    decider.make_core = BrittleCore
    rig.loop.advance(61_000)
    assert decided(rig) == ["a"] and decider.ready.is_set() and not status(rig)["trouble"]


def test_a_question_that_cannot_be_answered_ends_nothing(rig: Any) -> None:
    decider = rig.start(core=BrittleCore)
    term = decider.term
    with pytest.raises(Exception, match="cannot be answered"):
        rig.do(rig.bus.request(subjects.question("toy", "explain"), b'{"name": "riddle"}'))
    rig.make("a")
    assert decider.term is term and decided(rig) == ["a"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.sampled_from(["ok", "trap", "swamp", "bad"]), max_size=30),
)
def test_the_search_finds_exactly_those_that_raise(names: list[str]) -> None:
    """Compared with the plain reading: those whose name says so."""
    objects = [
        Object(Key("ConfigMap", "default", f"{name}-{number}"), f"u{number}", revision=number)
        for number, name in enumerate(names)
    ]
    store = Store()
    for item in objects:
        store.put(item)
    inquest = Inquest(BrittleCore, store, PrivateState(), (), frozenset(), frozenset(), 1)
    found = {culprit.item.key.name: culprit.hidden for culprit in inquest.culprits()}
    expected = {item.name: not item.name.startswith("trap") for item in objects if not item.name.startswith("ok")}
    if len(expected) <= 20:
        assert found == expected


@pytest.mark.parametrize("bad", ["trap", "swamp", "bad"])
def test_who_was_kept_away_before_is_found_at_once(bad: str) -> None:
    store, made = Store(), [0]
    for number in range(2_000):
        name = bad if number == 3 else f"m{number}"
        store.put(Object(key(name), name, revision=number))

    def make() -> BrittleCore:
        made[0] += 1
        return BrittleCore()

    released = [(key("m7"), False), (key(bad), bad != "trap")]
    inquest = Inquest(make, store, PrivateState(), (), frozenset(), frozenset(), 1, released)
    assert [culprit.item.key.name for culprit in inquest.culprits()] == [bad]
    assert made[0] == 4
