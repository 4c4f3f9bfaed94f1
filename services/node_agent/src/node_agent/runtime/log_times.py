"""When what is in a log was written: a shim notes it beside the log, so that the log stays as its container writes it.

Beside ``main.log`` is ``main.log.times``: pairs of 64-bit integers, a time in milliseconds since the epoch and how many bytes
the log had by then. It is renamed with its log. Standard library only, as shims are.
"""

import os
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from node_agent.runtime import syscalls

_PAIR_BYTES = 16
_READ_BYTES = 4096
_CUT_AWAY = (sys.maxsize, sys.maxsize)
"""Stands for a pair that went while the file was looked at: it is behind whatever is looked for."""


def times_of(log: Path) -> Path:
    """Where the times of a log are."""
    return log.with_name(f"{log.name}.times")


class TimeKeeper:
    """Notes how a log grows. Another process may cut the log to nothing after it renamed the times."""

    def __init__(self, log: Path) -> None:
        self._log, self._times, self._size = os.open(log, os.O_RDONLY | os.O_CLOEXEC), times_of(log), 0
        self.changes = -1
        """A descriptor that can be read once the log is written to; -1 where the system has none left."""
        with suppress(OSError):
            self.changes = syscalls.watch_writes(os.fspath(log))

    def note(self, now_ms: int) -> bool:
        """Note what the log has now; whether it was something new."""
        if self.changes >= 0:
            with suppress(BlockingIOError):
                os.read(self.changes, _READ_BYTES)
        size = os.fstat(self._log).st_size
        if size == self._size:
            return False
        # What was noted of more than there is came after the times were renamed and before the log was cut.
        anew = os.O_TRUNC if size < self._size else 0
        with suppress(OSError):  # no room: the next one says it, too
            file = os.open(self._times, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | anew, 0o640)
            try:
                missing = _PAIR_BYTES - os.write(file, array("q", (now_ms, size)).tobytes())
                if missing:
                    os.ftruncate(file, os.fstat(file).st_size - _PAIR_BYTES + missing)
            finally:
                os.close(file)
            self._size = size
        return True


@dataclass(frozen=True, slots=True)
class LogTimes:
    """By when which bytes of a log were written: ``sizes[i]`` of them at ``moments[i]``, and all of them at ``last_ms``."""

    moments: "array[int]"
    sizes: "array[int]"
    last_ms: int

    @classmethod
    def read(cls, log: Path, start: int, end: int) -> "LogTimes":
        """The times of the bytes from ``start`` to ``end`` of an existing log, and not many more.

        What nobody noted was written when the file was changed last.
        """
        with _noted(log) as noted:
            indices = range(noted.length)
            first = bisect_right(indices, start, key=noted.size)
            last = bisect_left(indices, end, lo=first, key=noted.size)
            pairs = noted.between(first, last + 1)
        return cls(pairs[::2], pairs[1::2], _changed_ms(log))

    def at(self, position: int) -> int:
        """When the byte at ``position`` was there, in milliseconds since the epoch."""
        index = bisect_right(self.sizes, position)
        return self.moments[index] if index < len(self.moments) else self.last_ms


def bytes_before(log: Path, since_ms: int, size: int) -> int:
    """How many of the first ``size`` bytes of an existing log were there before ``since_ms``."""
    with _noted(log) as noted:
        index = bisect_left(range(noted.length), since_ms, key=noted.moment)
        if index == noted.length and _changed_ms(log) < since_ms:
            return size
        return min(noted.size(index - 1), size) if index else 0


class _Noted(NamedTuple):
    """The pairs in an open file of times, looked up where they stand: there may be as many as the log has bytes."""

    file: int
    length: int

    def moment(self, index: int) -> int:
        return self._pair(index)[0]

    def size(self, index: int) -> int:
        return self._pair(index)[1]

    def between(self, first: int, end: int) -> "array[int]":
        pairs = array("q")
        if first < self.length:
            data = os.pread(self.file, (end - first) * _PAIR_BYTES, first * _PAIR_BYTES)
            pairs.frombytes(data[: len(data) // _PAIR_BYTES * _PAIR_BYTES])
        return pairs

    def _pair(self, index: int) -> "Sequence[int]":
        return self.between(index, index + 1) or _CUT_AWAY


@contextmanager
def _noted(log: Path) -> Iterator[_Noted]:
    """What was noted of a log: nothing where there is no file of times."""
    try:
        file = os.open(times_of(log), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield _Noted(-1, 0)
        return
    try:
        yield _Noted(file, os.fstat(file).st_size // _PAIR_BYTES)
    finally:
        os.close(file)


def _changed_ms(log: Path) -> int:
    return log.stat().st_mtime_ns // 1_000_000
