"""Scenarios of virtual time on a real API server, with the same expectations: those that need 10 seconds of time at most.

All of them take a quarter of an hour: TIDEGATE_LAB=all plays every twelfth, with TIDEGATE_LAB_CASES=all it plays all.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from cluster_tools import running_system
from control_plane import ControlPlane
from live_cluster import LiveCluster
from live_target import LiveTarget

from kube import Manifest
from testing.scenarios import Scenario, load_scenario, scenario_files
from testing.scenarios.report import line
from testing.scenarios.run import run_scenario
from testing.scenarios.scenario import Advance, Expect, Matcher, Mismatch
from testing.scenarios.target import Target

HERE = Path(__file__).parent
CASES = HERE.parent / "scenarios" / "cases"
AREAS = ("gang", "queue", "preemption", "topology", "lifecycle")
MOST_MS = 10_000
EVERY = 1 if os.environ.get("TIDEGATE_LAB_CASES") == "all" else 12
DIFFERENCES = yaml.safe_load((HERE / "other_on_kubernetes.yaml").read_text()) or {}
"""Why a scenario does not end on an API server as it does in virtual time."""


def _playable() -> dict[str, Scenario]:
    found = [load_scenario(path) for path in scenario_files([CASES / area for area in AREAS])]
    short = [one for one in found if sum(step.ms for step in one.steps if isinstance(step, Advance)) <= MOST_MS]
    # Those of one policy stand together: a policy is set when services start.
    short.sort(key=lambda one: (json.dumps(one.policy, sort_keys=True), one.area, one.name))
    return {f"{one.area}/{one.name}": one for one in short}


PLAYABLE = _playable()
CHOSEN = [name for number, name in enumerate(PLAYABLE) if number % EVERY == 0]


@dataclass(frozen=True)
class Patient:
    """A matcher for real time: what is not so yet may come to be so within ``SECONDS``."""

    matcher: Matcher
    SECONDS: ClassVar[float] = 8.0

    def mismatch(self, target: Target) -> Mismatch | None:
        """The difference that stays, or None."""
        until = time.monotonic() + self.SECONDS
        while (found := self.matcher.mismatch(target)) is not None and time.monotonic() < until:
            time.sleep(0.2)
        return found


def patient(scenario: Scenario) -> Scenario:
    """The scenario with matchers for real time."""
    steps = [
        replace(step, matchers=tuple(map(Patient, step.matchers))) if isinstance(step, Expect) else step
        for step in scenario.steps
    ]
    return replace(scenario, steps=tuple(steps))


def settings(policy: Manifest) -> list[str]:
    """The policy of a scenario as settings of services."""
    ordering, given = policy.get("ordering"), []
    for name, setting in (("strict-fifo", "strict_fifo"), ("fifo", "fifo")):
        if ordering == name:
            given += [f"queue_manager.{setting}=true", f"gang_scheduler.{setting}=true"]
    if ordering == "fair":
        given.append("queue_manager.fair_sharing=true")
    given += [f"queue_manager.{name}={policy[name]}" for name in ("queueing", "overcommit") if name in policy]
    for name in ("preemption", "reclaim", "backfill"):
        if name in policy:
            given.append(f"gang_scheduler.{name}={str(policy[name]).lower()}")
    if "placement" in policy:
        given.append(f"gang_scheduler.placement={policy['placement']}")
    if "gangEviction" in policy:
        given.append(f"gang_scheduler.gang_eviction={policy['gangEviction']}")
    return given


class Systems:
    """The running system of one policy at a time."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self._policy: Manifest | None = None

    def under(self, policy: Manifest) -> LiveCluster:
        """The cluster, driven under ``policy``."""
        if policy != self._policy:
            self.stop()
            number = len(list(self._folder.iterdir()))
            self._policy = policy
            self._system = running_system(
                self._plane,
                self._folder / f"{number}",
                schedulers="tidegate,volcano,default-scheduler",
                settings=settings(policy),
            )
            self._live = LiveCluster(self._plane, self._system.__enter__())
        return self._live

    def stop(self) -> None:
        """Stop what runs."""
        if self._policy is not None:
            self._live.close()
            self._system.__exit__(None, None, None)
            self._policy = None


@pytest.fixture(scope="module")
def systems(empty_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Systems]:
    made = Systems(empty_plane, tmp_path_factory.mktemp("systems"))
    yield made
    made.stop()


@pytest.mark.parametrize("name", CHOSEN)
def test_a_scenario_ends_on_an_api_server_as_it_says(systems: Systems, name: str) -> None:
    scenario = PLAYABLE[name]
    if scenario.name in DIFFERENCES:
        pytest.skip(f"{name}: {DIFFERENCES[scenario.name]}")
    live = systems.under(scenario.policy)

    result = run_scenario(patient(scenario), lambda _policy, simulate, _seed: LiveTarget(live, simulate))

    assert result.passed, line(result)


def test_every_difference_is_a_scenario_that_could_be_played() -> None:
    assert DIFFERENCES.keys() <= {one.name for one in PLAYABLE.values()}
