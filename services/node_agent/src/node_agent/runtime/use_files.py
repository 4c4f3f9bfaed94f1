"""What control groups used, read once a second: files stay open, since opening them costs most of a look."""

import os
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class UsePaths:
    """Where the use of groups is told, by version: the roots of the hierarchies, which are one in version 2."""

    version: int
    cpu_time: Path
    cpu: Path
    memory: Path
    perf: Path | None = None
    """Where cycles are counted by group; None where that is nowhere."""


class UseFiles:
    """Open files by path. One that cannot be opened, or read any more, tells nothing."""

    def __init__(self, paths: UsePaths) -> None:
        self._version = paths.version
        self._cpu_time, self._cpu, self._memory = str(paths.cpu_time), str(paths.cpu), str(paths.memory)
        self.perf = paths.perf
        self._open: dict[str, int] = {}
        self._touched: set[str] = set()

    def cpu_ns(self, folder: str) -> int | None:
        """CPU time that the group used since it was made."""
        if self._version == 1:
            return _number(self._read(f"{self._cpu_time}/{folder}/cpuacct.usage"))
        text = self._read(f"{self._cpu}/{folder}/cpu.stat")
        used = _number(text.split(b"\n", 1)[0].removeprefix(b"usage_usec ")) if text else None
        return None if used is None else used * 1000

    def memory_bytes(self, folder: str) -> int | None:
        """Memory in use, without pages of files that were not used lately."""
        current, inactive = (
            ("memory.current", b"\ninactive_file ")
            if self._version == 2
            else ("memory.usage_in_bytes", b"\ntotal_inactive_file ")
        )
        used = _number(self._read(f"{self._memory}/{folder}/{current}"))
        text = self._read(f"{self._memory}/{folder}/memory.stat")
        if used is None or text is None:
            return None
        _, _, rest = (b"\n" + text).partition(inactive)
        return max(0, used - (_number(rest.split(b"\n", 1)[0]) or 0))

    def throttled(self, folder: str) -> tuple[int, int]:
        """In how many periods the group met its quota, and how many there were."""
        text = b"\n" + (self._read(f"{self._cpu}/{folder}/cpu.stat") or b"")
        return _after(text, b"\nnr_throttled "), _after(text, b"\nnr_periods ")

    def processes(self, folder: str) -> list[int]:
        """The processes of the group."""
        return [int(line) for line in (self._read(f"{self._cpu}/{folder}/cgroup.procs") or b"").split()]

    @property
    def counts_stalls(self) -> bool:
        """Whether the kernel tells by group what tasks waited for."""
        return self._version == 2

    def stall_us(self, folder: str, kind: str) -> int:
        """For how long some task of the group waited for ``kind``; 0 where nobody counts."""
        text = self._read(f"{self._cpu}/{folder}/{kind}.pressure") if self._version == 2 else None
        _, _, rest = (text or b"").split(b"\n", 1)[0].partition(b"total=")
        return _number(rest) or 0

    def forget_others(self) -> None:
        """Close the files that nobody asked for since the last call: their groups are gone."""
        for path in self._open.keys() - self._touched:
            os.close(self._open.pop(path))
        self._touched = set()

    def close(self) -> None:
        """Close all files."""
        for fd in self._open.values():
            os.close(fd)
        self._open = {}

    def _read(self, path: str) -> bytes | None:
        self._touched.add(path)
        try:
            fd = self._open.get(path)
            if fd is None:
                fd = self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(fd, _MOST_BYTES, 0)
        except OSError:
            if path in self._open:
                os.close(self._open.pop(path))
            return None


def _after(text: bytes, name: bytes) -> int:
    return _number(text.partition(name)[2].split(b"\n", 1)[0]) or 0


def _number(text: bytes | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
