"""``tidegate sim``: which files it runs, what it writes and with what it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tidegate_cli.sim.command import sim_command
from tidegate_cli.sim.runner import SimOptions, run_files, simulate


def _write(folder: Path, name: str, expect: dict[str, Any]) -> None:
    document = {"scenario": name, "area": "gang", "title": "t", "origin": "o", "steps": [{"expect": expect}]}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "gang"
    folder.mkdir()
    _write(folder, "good", {"evictedCount": 0})
    _write(folder, "poor", {"evictedCount": 1})
    (folder / "torn.yaml").write_text("a: [")
    return folder


def test_each_file_has_its_line_and_the_last_line_counts(cases: Path, open_naive: Callable[..., Any]) -> None:
    lines: list[str] = []
    assert simulate(SimOptions((cases,)), open_naive, lines.append) == 1
    assert lines[:2] == ["PASS gang/good", "FAIL gang/poor: step 1, evictedCount, wanted 1, got 0"]
    assert lines[2].startswith("FAIL gang/torn: step 0, load, wanted a scenario, got")
    assert lines[3] == "1 passed, 2 failed"


def test_it_ends_with_zero_when_all_passed(cases: Path, open_naive: Callable[..., Any]) -> None:
    assert simulate(SimOptions((cases / "good.yaml",)), open_naive, lambda text: None) == 0


def test_nothing_to_run_is_no_success(tmp_path: Path, open_naive: Callable[..., Any]) -> None:
    lines: list[str] = []
    assert simulate(SimOptions((tmp_path,)), open_naive, lines.append) == 1
    assert simulate(SimOptions((tmp_path / "gone",)), open_naive, lines.append) == 1
    assert lines == ["0 passed, 0 failed", f"{tmp_path / 'gone'}: there is no such file or folder"]


def test_the_command_tells_json_when_asked(cases: Path, open_naive: Callable[..., Any]) -> None:
    result = CliRunner().invoke(sim_command(open_naive), ["--json", str(cases / "good.yaml")])
    assert result.exit_code == 0
    assert json.loads(result.output)["scenarios"] == [{"area": "gang", "name": "good", "passed": True}]
    assert CliRunner().invoke(sim_command(open_naive), [str(cases)]).exit_code == 1


def test_several_processes_give_the_same_results_in_the_same_order(cases: Path) -> None:
    """The factory is looked up by its name in each process; one that cannot start fails every scenario alike."""
    files = [cases / "good.yaml", cases / "poor.yaml"]
    results = list(run_files(files, json.dumps, 2, 0))  # type: ignore[arg-type]
    assert [(one.name, one.passed, one.matcher) for one in results] == [
        ("good", False, "error"),
        ("poor", False, "error"),
    ]
