"""The demo's folder, the processes it looks at, and what it writes."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tidegate_cli.demo.board import Board, PodView
from tidegate_cli.demo.cast import CAST, RING
from tidegate_cli.demo.closing import show_findings, show_next
from tidegate_cli.demo.course import Findings
from tidegate_cli.demo.data_folder import MARK, Unusable, make_fresh
from tidegate_cli.demo.pod_processes import kill_container, left_behind
from tidegate_cli.demo.screen import Screen
from tidegate_cli.supervisor import endpoint


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is marked as a pod's, in a folder of the test's."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"],
        cwd=tmp_path,
        env={"TIDEGATE_POD_UID": "uid-1"},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_what_an_earlier_demo_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    make_fresh(folder)
    (folder / "nats").mkdir()
    (folder / "nats" / "old").touch()
    make_fresh(folder)
    assert [entry.name for entry in folder.iterdir()] == [MARK]


def test_a_folder_that_is_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Unusable, match="was not made by the demo"):
        make_fresh(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    make_fresh(tmp_path)
    endpoint.write(tmp_path, endpoint.mine("127.0.0.1:1", "users.yaml", {}, ""))
    with pytest.raises(Unusable, match="a demo is running"):
        make_fresh(tmp_path)


def test_processes_of_a_killed_demo_are_named(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    (tmp_path / MARK).touch()
    with pytest.raises(Unusable, match=f"{sleeper.pid} "):
        make_fresh(tmp_path)


def test_a_place_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match="choose another folder with --data-dir"):
        make_fresh(tmp_path / "file" / "demo")


def test_processes_that_have_to_do_with_a_folder_are_found(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert [process.split()[0] for process in left_behind(tmp_path)] == [str(sleeper.pid)]
    assert left_behind(tmp_path / "elsewhere") == []


def test_the_process_of_a_pod_is_killed_and_no_other(sleeper: subprocess.Popen[bytes]) -> None:
    for container_id, uid in (
        (f"process://{sleeper.pid}", "uid-2"),
        (f"process://{os.getpid()}", "uid-1"),
        ("containerd://abc", "uid-1"),
        ("process://", "uid-1"),
    ):
        with pytest.raises(ValueError, match="process"):
            kill_container(container_id, uid)
    assert sleeper.poll() is None
    assert kill_container(f"process://{sleeper.pid}", "uid-1") == sleeper.pid
    assert sleeper.wait() == -signal.SIGKILL


def screen(terminal: bool, board: Board) -> tuple[Screen, io.StringIO]:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, highlight=False, color_system=None)
    return Screen(console, board, lambda: 12.34), output


def test_without_a_terminal_each_thing_is_one_line() -> None:
    shown, output = screen(False, Board())
    with shown:
        shown.headline("apply " + "x" * 200)
        shown.happened("ring-allreduce: all [4] pods run")
        shown.detail("needs cpu 1")
        shown.refresh()
    assert output.getvalue().splitlines() == [
        "  12.3 s  > apply " + "x" * 200,
        "  12.3 s  ring-allreduce: all [4] pods run",
        "          | needs cpu 1",
    ]


def test_on_a_terminal_the_table_shows_every_pod_and_the_room() -> None:
    board = Board(node="n", cpu_milli=8000)
    board.job(RING).pods = {
        "a": PodView("a", "Running", 3, 1000),
        "b": PodView("b", "Pending", 3, 1000),
        "c": PodView("c", "Pending"),
        "d": PodView("d", "Failed", 3, 1000),
    }
    shown, output = screen(True, board)
    with shown:
        shown.refresh()
    text = output.getvalue()
    assert "2 of 8 CPUs given away" in text
    marks = "●◐○✗" if "●" in text else "RPPF"
    assert marks in text


def test_the_closing_table_names_every_job_and_what_is_wrong() -> None:
    console = Console(file=io.StringIO(), width=140, color_system=None)
    results = {act.name: f"result of {act.name}" for act in CAST}
    show_findings(console, Board(), Findings(results, ("g: Waiting", "  needs cpu 1"), ("a thing is wrong",)))
    show_next(console, "bin/tidegate")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(result in text for result in results.values())
    assert "needs cpu 1" in text
    assert "wrong: a thing is wrong" in text
    assert "bin/tidegate down" in text
