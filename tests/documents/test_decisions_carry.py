"""Decisions that are made in scenarios carry what the document says that they may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from document_event import SUBJECT
from document_events import EVENTS
from generate import ROOT

from bus import MemoryBus
from kube import Decision, Mutation
from testing.scenarios import load_scenario, scenario_files
from testing.scenarios.run import run_scenario
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2
from tidegate.services import DECIDERS
from tidegate_cli.sim import world
from tidegate_cli.sim.services import Policy

CASES = ROOT / "tests" / "scenarios" / "cases"
AREAS = ("admission", "colocation", "descheduling", "gang", "lifecycle", "queue")


@pytest.mark.parametrize("area", AREAS)
def test_a_decision_carries_what_the_document_says(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all scenarios of an area, in virtual time."""
    wrong = {
        f"{decision.name} carries {word}"
        for file in scenario_files([CASES / area])
        for decision in _decided(file, monkeypatch)
        for word in _unknown(decision)
    }
    assert sorted(wrong) == []


def _unknown(decision: Decision) -> Iterator[str]:
    event = EVENTS[decision.name]
    if decision.payload and not event.payload:
        yield "a payload"
    for mutation in decision.mutations:
        if not set(_words(decision, mutation)) & set(event.carries):
            yield _words(decision, mutation)[-1]


def _words(decision: Decision, mutation: Mutation) -> list[str]:
    verb, kind = mutation.verb.name, mutation.key.kind.partition(".")[0]
    about = [f"{verb} {SUBJECT}"] if mutation.key.kind == decision.subject.kind else []
    return [*about, f"{verb} {kind}"]


def _decided(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Decision]:
    buses: list[MemoryBus] = []

    class Kept(MemoryBus):
        def __init__(self) -> None:
            super().__init__()
            buses.append(self)

    scenario = load_scenario(file)
    try:
        Policy.of(scenario.policy)
    except ValueError:
        return  # a rule of sharing that there is not yet
    monkeypatch.setattr(world, "MemoryBus", Kept)
    run_scenario(scenario, world.open_world)
    for bus in buses:
        for service in DECIDERS:
            yield from _commits(bus.log(subjects.decisions(service)))


def _commits(log: Any) -> Iterator[Decision]:
    for entry in log.entries(0):
        commit = decision_pb2.Commit.FromString(entry.payload)
        yield from (decision for _, decision in decode_commit(commit))
