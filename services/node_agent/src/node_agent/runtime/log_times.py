"""When what is in a log was written: a shim notes it beside the log, so that the log stays as its container writes it.

Beside ``main.log`` is ``main.log.times``: pairs of 64-bit integers, a time in milliseconds since the epoch and how many bytes
the log had by then. It is renamed with its log. Standard library only, as shims are.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from node_agent.runtime import syscalls

_PAIR_BYTES = 16
_READ_BYTES = 4096


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
    def read(cls, log: Path) -> "LogTimes":
        """The times of an existing log. What nobody noted was written when the file was changed last."""
        pairs = array("q")
        with suppress(FileNotFoundError):
            data = times_of(log).read_bytes()
            pairs.frombytes(data[: len(data) // _PAIR_BYTES * _PAIR_BYTES])
        return cls(pairs[::2], pairs[1::2], log.stat().st_mtime_ns // 1_000_000)

    def at(self, position: int) -> int:
        """When the byte at ``position`` was there, in milliseconds since the epoch."""
        index = bisect_right(self.sizes, position)
        return self.moments[index] if index < len(self.moments) else self.last_ms

    def since(self, since_ms: int, size: int) -> int:
        """How many of the log's ``size`` bytes were there before ``since_ms``."""
        index = bisect_left(self.moments, since_ms)
        noted = self.sizes[index - 1] if index else 0
        return size if index == len(self.moments) and self.last_ms < since_ms else min(noted, size)
