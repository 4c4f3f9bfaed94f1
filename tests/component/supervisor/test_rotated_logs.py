"""What the parts print goes into files of a bounded size, whole lines, none of them lost."""

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate_cli.supervisor import child as children
from tidegate_cli.supervisor.child import Child
from tidegate_cli.supervisor.log_file import RotatedFile
from tidegate_cli.supervisor.plan import Program

LINES = "import sys\nfor n in range(int(sys.argv[1])): print(f'{n:06d}', 'x' * 50, flush=n % 100 == 0)"


def files(folder: Path, name: str = "part.log") -> list[Path]:
    """Oldest first."""
    older = [folder / f"{name}.{number}" for number in (9, 8, 7, 6, 5, 4, 3, 2, 1)]
    return [file for file in (*older, folder / name) if file.exists()]


def content(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in files(folder))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30), cut=st.integers(1, 7))
def test_lines_stay_whole_and_in_order_however_they_come(
    pieces: list[list[int]], cut: int, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    text = b"".join(b"y" * size + b"\n" for piece in pieces for size in piece)
    for start in range(0, len(text), cut):
        # Every piece by another object, as after a restart, if it begins a line.
        if start == 0 or text[start - 1 : start] == b"\n":
            file = RotatedFile(folder / "part.log", largest_bytes=64, kept=9)
        file.write(text[start : start + cut])
    kept = files(folder)
    assert text.endswith(content(folder)) and (len(kept) == 10 or content(folder) == text)
    assert all(found.read_bytes().endswith(b"\n") and found.stat().st_size <= 64 + 31 for found in kept)


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "part.log", largest_bytes=100, kept=3)
    for number in range(200):
        file.write(b"%06d\n" % number)
    assert [found.name for found in files(tmp_path)] == ["part.log.3", "part.log.2", "part.log.1", "part.log"]
    assert sum(found.stat().st_size for found in files(tmp_path)) <= 400
    assert content(tmp_path).endswith(b"000198\n000199\n")


def test_what_found_no_room_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real = RotatedFile(tmp_path / "part.log"), RotatedFile._append

    def full(self: RotatedFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    file.write(b"one\n")
    monkeypatch.setattr(RotatedFile, "_append", full)
    file.write(b"two\n")
    file.write(b"three\n")
    monkeypatch.setattr(RotatedFile, "_append", real)
    file.write(b"four\n")
    assert content(tmp_path) == b"one\n10 bytes were lost: there was no room for them\nfour\n"


async def test_no_line_of_a_part_is_lost_over_its_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "RotatedFile", lambda file: RotatedFile(file, largest_bytes=40_000, kept=9))
    child = Child(Program("part", (sys.executable, "-c", LINES, "1000")), tmp_path, lambda _: None)
    running = asyncio.create_task(child.keep_running())
    async with asyncio.timeout(120):
        while child.restarts < 3:
            await asyncio.sleep(0.02)
    await child.stop(5.0)
    await running
    lines = content(tmp_path).decode().splitlines()
    numbers = [int(line.split()[0]) for line in lines]
    runs = [number for number in numbers if number == 999]
    assert len(runs) >= 3 and all(line.endswith("x" * 50) for line in lines)
    for before, after in itertools.pairwise(numbers):
        assert after in (before + 1, 0), "nothing is missing but what a stopped process did not print"
    assert len(files(tmp_path)) > 3 and all(found.stat().st_size <= 40_000 + (1 << 16) for found in files(tmp_path))
