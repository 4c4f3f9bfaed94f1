"""When lines of a log were written: noted as it grows, and told of lines, also of those that were rotated away."""

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.times import rfc3339_milli
from node_agent.runtime import syscalls
from node_agent.runtime.log_pieces import LogReader
from node_agent.runtime.log_times import LogTimes, TimeKeeper, bytes_before, times_of
from node_agent.runtime.logs import previous_of, rotate, set_aside

START_MS = 1_767_225_600_000


@dataclass
class Writing:
    """A log that grows and is rotated, and all that is in it: ``told`` has its lines with their times, by attempt."""

    file: Path
    now: int = START_MS
    told: list[tuple[int, bytes]] = field(default_factory=list)
    _rest: bool = False

    def __post_init__(self) -> None:
        self.file.touch()
        self.keeper = TimeKeeper(self.file)

    def write(self, text: bytes, after_ms: int = 0) -> None:
        """So much later ``text`` is written, and noted."""
        self.now += after_ms
        with self.file.open("ab") as stream:
            stream.write(text)
        self.keeper.note(self.now)
        for line in text.splitlines(keepends=True):
            if self._rest:
                moment, begun = self.told.pop()
                self.told.append((moment, begun + line))
            else:
                self.told.append((self.now, line))
            self._rest = not line.endswith(b"\n")

    def rotate(self) -> None:
        """It is found to be too long."""
        if not self._rest and self.file.stat().st_size:
            rotate(self.file, 0, 9)
            self.keeper.note(self.now)


def read(file: Path, tail: int = -1, since_ms: int = 0, timestamps: bool = False) -> bytes:
    """All that is told."""
    reader = LogReader(file, tail, since_ms, timestamps)
    piece = reader.first()
    data = piece.data
    while piece.data:
        piece = reader.after(piece.position)
        data += piece.data
    return data


STEPS = st.lists(
    st.tuples(st.sampled_from((b"one\n", b"a\nb\n", b"begun ", b"\r50%\r\n", b"")), st.integers(1, 50)) | st.none(),
    max_size=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.integers(-1, 6), st.integers(0, 300), st.booleans())
def test_the_lines_that_are_told_are_those_of_a_list(
    tmp_path: Path, steps: list[tuple[bytes, int] | None], tail: int, since: int, timestamps: bool
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    log = Writing(tmp_path / "main.log")
    for step in steps:
        if step is None:
            log.rotate()
        else:
            log.write(*step)
    begin = START_MS + since if since else 0
    wanted = [(moment, line) for moment, line in log.told if moment >= begin]
    if tail >= 0:
        wanted = wanted[len(wanted) - min(tail, len(wanted)) :]
    expected = b"".join(
        (rfc3339_milli(moment).encode() + b" " if timestamps else b"") + line for moment, line in wanted
    )
    assert read(log.file, tail, begin, timestamps) == expected


def test_what_is_cut_while_it_is_copied_counts_from_its_new_beginning(tmp_path: Path) -> None:
    """The log is cut a moment after its times were renamed; what is noted in between is of what is gone."""
    log = Writing(tmp_path / "main.log")
    log.write(b"first\n" * 10)
    times_of(log.file).rename(tmp_path / "elsewhere")
    log.write(b"lost\n", 5)
    log.file.write_bytes(b"")
    log.write(b"new\n", 5)
    assert LogTimes.read(log.file, 0, 1).at(0) == START_MS + 10
    assert times_of(log.file).stat().st_size == 16


def test_times_go_with_what_an_attempt_wrote(tmp_path: Path) -> None:
    for number in range(3):
        set_aside(tmp_path / "main.log")
        log = Writing(tmp_path / "main.log", now=START_MS + number * 1000)
        log.write(b"%d\n" % number)
        if number == 0:
            log.rotate()
    assert read(tmp_path / "main.log", timestamps=True) == rfc3339_milli(START_MS + 2000).encode() + b" 2\n"
    assert (
        read(previous_of(tmp_path / "main.log"), timestamps=True) == rfc3339_milli(START_MS + 1000).encode() + b" 1\n"
    )
    assert len(list(tmp_path.iterdir())) == 4


def test_a_log_without_times_was_written_when_its_file_was_changed_last(tmp_path: Path) -> None:
    file = tmp_path / "main.log"
    file.write_bytes(b"old\n")
    changed = file.stat().st_mtime_ns // 1_000_000
    assert read(file, timestamps=True) == rfc3339_milli(changed).encode() + b" old\n"
    assert (read(file, since_ms=changed), read(file, since_ms=changed + 1)) == (b"old\n", b"")


def test_times_that_are_longer_than_the_limit_are_rotated_with_their_log(tmp_path: Path) -> None:
    log = Writing(tmp_path / "main.log")
    for _ in range(10):
        log.write(b"\n", 1)
    assert not rotate(log.file, 160, 3)
    assert rotate(log.file, 159, 3)
    assert times_of(tmp_path / "main.log.1").stat().st_size == 160


def test_growth_is_noticed_also_where_nothing_more_can_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(file: str) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(syscalls, "watch_writes", none_left)
    log = Writing(tmp_path / "main.log")
    assert log.keeper.changes == -1
    log.write(b"here\n")
    assert LogTimes.read(log.file, 0, 1).at(0) == START_MS


def with_times(folder: Path, noted: Sequence[tuple[int, int]], last_ms: int) -> Path:
    """A log that was changed last at ``last_ms``, and of which this was noted: moments and sizes, both rising."""
    file = folder / "main.log"
    file.touch()
    os.utime(file, ns=(0, last_ms * 1_000_000))
    times_of(file).write_bytes(array("q", [number for pair in noted for number in pair]).tobytes())
    return file


STEP = st.tuples(st.integers(0, 3), st.integers(1, 4))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=20), st.integers(0, 90), st.integers(1, 20), st.integers(0, 70))
def test_the_times_of_a_part_are_those_that_the_whole_tells(
    tmp_path: Path, steps: list[tuple[int, int]], start: int, length: int, since: int
) -> None:
    noted = [(sum(later for later, _ in steps[:end]), sum(more for _, more in steps[:end])) for end in range(1, 21)]
    noted = noted[: len(steps)]
    last_ms = 65
    file = with_times(tmp_path, noted, last_ms)

    times = LogTimes.read(file, start, start + length)
    assert [times.at(position) for position in range(start, start + length)] == [
        next((moment for moment, size in noted if size > position), last_ms)
        for position in range(start, start + length)
    ]

    size = 90
    before = max((known for moment, known in noted if moment < since), default=0)
    all_noted_before = all(moment < since for moment, _ in noted)
    assert bytes_before(file, since, size) == (size if all_noted_before and last_ms < since else before)


def bytes_read() -> int:
    """What this thread has read until now."""
    return int(Path("/proc/thread-self/io").read_text().split()[1])


def test_of_the_times_of_a_long_log_little_more_is_read_than_those_of_the_piece(tmp_path: Path) -> None:
    line, lines = b"fifteen letters\n", 1 << 16
    file = with_times(tmp_path, [(START_MS + number, len(line) * number) for number in range(1, lines + 1)], START_MS)
    file.write_bytes(line * lines)
    reader = LogReader(file, since_ms=START_MS + lines // 2, timestamps=True)
    slack = 16 << 10

    before = bytes_read()
    piece = reader.first()
    assert piece.data.startswith(rfc3339_milli(START_MS + lines // 2).encode() + b" fifteen")
    in_piece = piece.data.count(b"\n")
    assert bytes_read() - before < in_piece * (16 + 16) + slack

    before = bytes_read()
    after = reader.after(piece.position)
    assert after.data.count(b"\n") == in_piece == (32 << 10) // len(line)
    assert bytes_read() - before < in_piece * (16 + 16) + slack
