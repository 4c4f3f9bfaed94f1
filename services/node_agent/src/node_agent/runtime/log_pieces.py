"""What a container wrote, told piece by piece: from a line or from a time on, each line behind its time where that is wanted."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kube.times import rfc3339_milli
from node_agent.runtime.log_times import LogTimes, bytes_before
from node_agent.runtime.logs import newest_first

_CHUNK = 32 << 10
MOST_BYTES = 1 << 20
"""The last lines of a log, and what was rotated away of it, are cut to their end; the file itself is told as a whole."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``position``: where in the newest file of the log the next one begins."""

    data: bytes
    position: int


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads the log whose newest file is ``file``; ``tail`` lines from its end, all for a negative number.

    Lines that were there before ``since_ms``, in milliseconds since the epoch, are left out.
    """

    file: Path
    tail: int = -1
    since_ms: int = 0
    timestamps: bool = False

    def first(self) -> Piece:
        """What is told at first."""
        if self.tail >= 0:
            return self._last_lines()
        start, _ = self._span(self.file)
        older = b"" if start else self._rotated()
        return Piece(older, 0) if older else self.after(start)

    def after(self, position: int) -> Piece:
        """What stands behind ``position``, at most one chunk of it."""
        if self.file.stat().st_size < position:  # it was rotated
            position = 0
        data = _read(self.file, position, _CHUNK)
        return Piece(self._told(self.file, position, data), position + len(data))

    def _last_lines(self) -> Piece:
        parts: list[bytes] = []
        position, left = 0, self.tail
        for file in newest_first(self.file):
            start, size = self._span(file)
            first = max(start, _start_of_last(file, size, left))
            if file == self.file:
                position = size
            first = max(first, size - MOST_BYTES)
            data = _read(file, first, size - first)
            parts.insert(0, self._told(file, first, data))
            left -= _lines_in(data)
            if start or left <= 0:
                break
        return Piece(_cut(b"".join(parts)), position)

    def _rotated(self) -> bytes:
        """The end of what was rotated away."""
        parts: list[bytes] = []
        left = MOST_BYTES
        for file in newest_first(self.file):
            if file == self.file:
                continue
            start, size = self._span(file)
            first = max(start, size - left)
            data = _read(file, first, size - first)
            parts.insert(0, self._told(file, first, data))
            left -= len(data)
            if start or not left:
                break
        return _cut(b"".join(parts))

    def _span(self, file: Path) -> tuple[int, int]:
        """Where in a file is the first line that is wanted, and where is its end."""
        size = file.stat().st_size
        if not self.since_ms:
            return 0, size
        start = bytes_before(file, self.since_ms, size)
        if start in (0, size) or _read(file, start - 1, 1) == b"\n":
            return start, size
        # The line that was being written then began before.
        rest = _read(file, start, size - start)
        return start + (rest.find(b"\n") + 1 or len(rest)), size

    def _told(self, file: Path, start: int, data: bytes) -> bytes:
        """``data``, which is at ``start`` of ``file``, as it is to be told."""
        if not self.timestamps or not data:
            return data
        times, position, told = LogTimes.read(file, start, start + len(data)), start, []
        within = start > 0 and _read(file, start - 1, 1) != b"\n"
        for line in _lines(data):
            told.append(line if within else rfc3339_milli(times.at(position)).encode() + b" " + line)
            position += len(line)
            within = False
        return b"".join(told)


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines with their ends; a carriage return alone is none."""
    *whole, rest = data.split(b"\n")
    yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _cut(data: bytes) -> bytes:
    """The end of what is more than can be told at once, from a line on."""
    if len(data) <= MOST_BYTES:
        return data
    data = data[-MOST_BYTES:]
    return data[data.find(b"\n") + 1 :]


def _lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


def _start_of_last(file: Path, size: int, lines: int) -> int:
    """Where the last ``lines`` lines of the first ``size`` bytes begin."""
    if lines <= 0:
        return size
    start, data = size, b""
    while start > 0 and data.count(b"\n", 0, -1) < lines:
        step = min(_CHUNK, start)
        start -= step
        data = _read(file, start, step) + data
    found = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(lines):
        found = data.rfind(b"\n", 0, found)
        if found < 0:
            return start
    return start + found + 1


def _read(file: Path, start: int, count: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(start)
        return stream.read(count)
