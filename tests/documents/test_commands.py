"""Every command of the documents works, in the order in which a reader comes to it."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_commands import Command, commands_in
from generate import ROOT

DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("**/*.md")),
    *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("services/*/README.md")),
    *sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("libs/*/README.md")),
]
COMMANDS = {name: list(commands_in(ROOT / name, name)) for name in DOCUMENTS}
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SECONDS = 100.0
"""Longer than `up` tries, so that it can say what went wrong."""
LEFT_OUT = {".git", ".tidegate"}


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if COMMANDS[name]])
def test_what_a_document_makes_can_be_made(name: str) -> None:
    """Targets are looked up, not run: the tests themselves are one of them."""
    unknown = [
        f"{one.place}: make {target}" for one in COMMANDS[name] for target in one.targets if target not in TARGETS
    ]
    assert unknown == []


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that looks like the clone and has a data folder of its own; what runs in it is stopped at the end."""
    made = Path(tempfile.mkdtemp(prefix="tidegate-documents-"))
    made.chmod(0o711)  # pods run as other users: they have to get through to their folders
    for entry in ROOT.iterdir():
        if entry.name not in LEFT_OUT:
            (made / entry.name).symlink_to(entry)
    yield made
    _run(made, ".venv/bin/tidegate down")
    shutil.rmtree(made)


@pytest.mark.system
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [name for name in DOCUMENTS if any(not one.targets for one in COMMANDS[name])])
def test_the_commands_of_a_document_work(name: str, folder: Path) -> None:
    """One after the other, as they stand; what a document starts it stops."""
    for one in COMMANDS[name]:
        if not one.targets:
            done = _run(folder, one.runnable)
            assert done.returncode == 0, f"{one.place}: {one.text}\n{done.stdout}{done.stderr}{_last_words(folder)}"
    assert not (folder / ".tidegate" / "endpoint.json").exists(), f"{name} leaves a system running"


def _run(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEGATE_", "PYTEST_"))}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )


def _last_words(folder: Path) -> str:
    """The ends of the logs, to be read where a command failed."""
    return _run(folder, "tail -n 3 .tidegate/logs/*.log").stdout


def test_a_command_that_holds_the_terminal_is_started_in_the_background() -> None:
    assert Command("", ".venv/bin/tidegate up").runnable == ".venv/bin/tidegate up --detach"
    assert Command("", ".venv/bin/tidegate up -d --port 1").runnable == ".venv/bin/tidegate up -d --port 1"
    assert Command("", "tidegate up --sim-nodes 3").runnable == "tidegate up --detach --sim-nodes 3"
