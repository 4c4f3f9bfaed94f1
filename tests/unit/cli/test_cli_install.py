"""`tidegate install`: what is there is listed, what is asked for is installed, and nothing else."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from node_agent import environments as making
from node_agent.program_list import INSTALLED, Environment
from tidegate_cli.commands.install import install


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of which somebody asked that they be installed."""
    asked: list[Path] = []

    def take(folder: Path, environment: Environment) -> bool:
        asked.append(folder)
        if folder.name == "kserve":
            raise making.InstallFailed("no index is reached")
        return not (folder / INSTALLED).exists()

    monkeypatch.setattr(making, "install", take)
    return asked


def test_without_names_what_can_be_installed_is_listed_and_nothing_is(made: list[Path], tmp_path: Path) -> None:
    said = CliRunner().invoke(install, ["--environments", str(tmp_path)]).output
    assert "triton: not installed (nvidia-pytriton" in said and "*/tritonserver" in said
    assert made == [] and list(tmp_path.iterdir()) == []


def test_those_that_are_named_are_installed_and_a_failure_is_said(made: list[Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(install, ["--environments", str(tmp_path), "triton", "kserve", "storage"])
    assert made == [tmp_path / "triton", tmp_path / "kserve"]
    assert done.exit_code == 1 and "kserve: no index is reached" in done.output
    assert f"triton: installed in {tmp_path / 'triton'}" in done.output


def test_a_name_that_is_none_is_refused_with_those_that_are(made: list[Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(install, ["--environments", str(tmp_path), "tritton"])
    assert done.exit_code == 1 and "there is no environment tritton; there are kserve, storage, triton" in done.output
    assert made == []


def test_environments_of_a_file_of_ones_own_are_there_too(made: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "programs.yaml"
    file.write_text("environments: {mine: {requirements: [x==1]}}\n")
    done = CliRunner().invoke(install, ["--environments", str(tmp_path), "--programs", str(file), "mine"])
    assert done.exit_code == 0 and made == [tmp_path / "mine"]
    file.write_text("programms: []\n")
    done = CliRunner().invoke(install, ["--environments", str(tmp_path), "--programs", str(file)])
    assert done.exit_code == 1 and "unknown keys programms" in done.output
