"""Moves of pods on a real API server: reservation, eviction through the Eviction API, the pod that its controller makes again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import ControlPlane
from live_target import LiveTarget
from test_handed_cases import Systems, patient

from testing.scenarios import load_scenario
from testing.scenarios.report import line
from testing.scenarios.run import run_scenario

OWN = Path(__file__).parent.parent / "scenarios" / "own" / "descheduling"


@pytest.fixture(scope="module")
def systems(empty_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Systems]:
    made = Systems(empty_plane, tmp_path_factory.mktemp("systems"))
    yield made
    made.stop()


@pytest.mark.parametrize("name", ["own-gang-keeps-its-minimum", "own-moved-with-a-reservation"])
def test_a_migration_ends_on_an_api_server_as_it_does_in_virtual_time(systems: Systems, name: str) -> None:
    scenario = load_scenario(OWN / f"{name}.yaml")
    live = systems.under(scenario.policy)
    result = run_scenario(patient(scenario), lambda _policy, simulate, _seed: LiveTarget(live, simulate))
    assert result.passed, line(result)
