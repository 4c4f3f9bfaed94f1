"""The list of scenarios that are known to fail."""

from pathlib import Path

import pytest

from testing.scenarios import ScenarioError
from testing.scenarios.known import load_known_differences, strangers, surprise
from testing.scenarios.run import Result


def test_a_listed_scenario_that_passes_is_named_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text("- {scenario: a, reason: devices are not placed yet}\n")
    known = load_known_differences(path)
    told = surprise(Result("gang", "a", True), known)
    assert told == "gang/a passes, but is listed as a known difference (devices are not placed yet): take it off"
    assert surprise(Result("gang", "a", False), known) == ""
    assert surprise(Result("gang", "b", True), known) == ""


def test_a_name_that_no_scenario_has_is_found() -> None:
    assert strangers({"a": "x", "z": "y"}, ["a", "b"]) == ["z"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- {scenario: a}", "reason: None is no text"),
        ("- {name: a, reason: b}", "unknown key 'name'"),
        ("- {scenario: a, reason: b}\n- {scenario: a, reason: c}", "a is listed twice"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_list_that_is_written_wrong_is_told_of(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=told):
        load_known_differences(path)
