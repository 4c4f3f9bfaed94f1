"""Every scenario, the shared ones and our own, run against the whole system in virtual time."""

from pathlib import Path

import pytest

from testing.scenarios import load_scenario, scenario_files
from testing.scenarios.known import load_known_differences, strangers, surprise
from testing.scenarios.report import line
from testing.scenarios.run import run_scenario

HERE = Path(__file__).parent
CASES = {f"{path.parent.name}/{path.stem}": path for path in scenario_files([HERE / "cases", HERE / "own"])}
KNOWN = load_known_differences(HERE / "known_differences.yaml")


@pytest.mark.parametrize("case", CASES)
def test_a_scenario_ends_as_it_says(case: str) -> None:
    """A known difference has to fail; one that passes is to be taken off the list."""
    from tidegate_cli.sim.world import open_world

    result = run_scenario(load_scenario(CASES[case]), open_world)
    assert not surprise(result, KNOWN), surprise(result, KNOWN)
    if not result.passed and result.name in KNOWN:
        pytest.xfail(f"{KNOWN[result.name]}: {line(result)}")
    assert result.passed, line(result)


def test_every_known_difference_is_a_scenario() -> None:
    assert strangers(KNOWN, [path.stem for path in CASES.values()]) == []
