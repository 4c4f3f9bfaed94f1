"""Environments that programs run in: made when asked to, and whole or not there."""

from pathlib import Path

import pytest

from node_agent.environments import InstallFailed, install, is_installed
from node_agent.program_list import PACKAGES, Environment

WANTED = Environment(("some==1.0",), {"{packages}/stub": "{packages}/backend/stub"})


class Pip:
    """Does what the commands would do; ``broken`` ends the one that installs."""

    def __init__(self, broken: bool = False) -> None:
        self.broken, self.commands = broken, list[list[str]]()

    def __call__(self, command: list[str]) -> None:
        self.commands.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        elif self.broken:
            raise InstallFailed("no network")
        else:
            packages = Path(command[0]).parents[1] / PACKAGES
            (packages / "backend").mkdir(parents=True, exist_ok=True)
            (packages / "stub").write_text("x")


def test_an_environment_is_made_once(tmp_path: Path) -> None:
    pip = Pip()
    assert install(tmp_path / "e", WANTED, pip)
    assert pip.commands[1][1:4] == ["-m", "pip", "install"] and "some==1.0" in pip.commands[1]
    copied = tmp_path / "e" / PACKAGES / "backend" / "stub"
    assert copied.read_text() == "x" and copied.stat().st_mode & 0o111
    assert not install(tmp_path / "e", WANTED, pip)
    assert len(pip.commands) == 2


def test_one_that_could_not_be_finished_is_not_installed_and_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(InstallFailed, match="no network"):
        install(tmp_path / "e", WANTED, Pip(broken=True))
    assert not is_installed(tmp_path / "e", WANTED)
    pip = Pip()
    assert install(tmp_path / "e", WANTED, pip)
    assert ["venv" in command for command in pip.commands] == [False]
    assert is_installed(tmp_path / "e", WANTED)


def test_other_requirements_are_installed_anew(tmp_path: Path) -> None:
    install(tmp_path / "e", WANTED, Pip())
    assert install(tmp_path / "e", Environment(("some==2.0",)), Pip())


def test_a_file_that_is_not_there_to_be_copied_is_said(tmp_path: Path) -> None:
    with pytest.raises(InstallFailed, match="nothing"):
        install(tmp_path / "e", Environment(("some",), {"nothing": "x"}), Pip())
    assert not is_installed(tmp_path / "e", Environment(("some",), {"nothing": "x"}))
