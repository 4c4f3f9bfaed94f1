"""What several services do together so that pods get their place: cases of our own, in virtual time."""

from pathlib import Path

import pytest

from testing.scenarios import load_scenario, scenario_files
from testing.scenarios.report import line
from testing.scenarios.run import run_scenario

CASES = {path.stem: path for path in scenario_files([Path(__file__).parent])}


@pytest.mark.parametrize("case", CASES)
def test_a_case_ends_as_it_says(case: str) -> None:
    from tidegate_cli.sim.world import open_world

    result = run_scenario(load_scenario(CASES[case]), open_world)
    assert result.passed, line(result)
