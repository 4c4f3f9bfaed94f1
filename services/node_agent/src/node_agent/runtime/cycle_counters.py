"""Cycles and instructions of control groups, where the processor counts them for us (perf_event_open(2)).

A counter of a group counts on one CPU: a group needs a pair for each. Both of a pair count during the same times, so that their
ratio needs no scaling where there are more counters than the processor has. In the groups below it counts, too.
"""

import logging
import os
import resource
import struct
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from node_agent.runtime.syscalls import PERF_CYCLES, PERF_HARDWARE, PERF_INSTRUCTIONS, perf_event_open

_log = logging.getLogger(__name__)

MOST_DESCRIPTORS = 2048
"""Two for each CPU of each group; of a node with more, the groups that come first have them. Reading all takes 1 to 3 ms."""
_READ = struct.Struct("=5Q")
"""How many values, time enabled, time running, cycles, instructions."""


class Counter(Protocol):
    """What a group needed on one CPU since it was opened."""

    def read(self) -> tuple[int, int]:
        """Cycles and instructions. Raises OSError."""

    def close(self) -> None:
        """Let it go."""


class PerfPair:
    """The kernel's. Raises OSError where it has none."""

    def __init__(self, group: int, cpu: int, kind: int = PERF_HARDWARE) -> None:
        """``group`` is an open folder of the hierarchy that has the controller perf_event."""
        self._cycles = perf_event_open(kind, PERF_CYCLES, group, cpu)
        try:
            self._instructions = perf_event_open(kind, PERF_INSTRUCTIONS, group, cpu, self._cycles)
        except OSError:
            os.close(self._cycles)
            raise

    def read(self) -> tuple[int, int]:
        """See ``Counter``."""
        _, _, _, cycles, instructions = _READ.unpack(os.read(self._cycles, _READ.size))
        return cycles, instructions

    def close(self) -> None:
        """See ``Counter``."""
        for descriptor in (self._instructions, self._cycles):
            with suppress(OSError):
                os.close(descriptor)


class CycleCounters:
    """Counters of groups, opened when they are first asked for. Where there are none this is said once, and costs nothing."""

    def __init__(
        self,
        root: Path | None,
        cpus: Collection[int],
        make: Callable[[int, int], Counter] = PerfPair,
        descriptors: int = 0,
    ) -> None:
        """``root`` is that of the hierarchy, None where none is mounted; half of the process's ``descriptors`` may be counters."""
        half = (descriptors or resource.getrlimit(resource.RLIMIT_NOFILE)[0]) // 2
        self._most = min(half, MOST_DESCRIPTORS) // (2 * max(1, len(cpus)))
        self._root, self._cpus, self._make = root, sorted(cpus), make
        self._open: dict[str, list[Counter]] = {}
        self._known = root is not None and bool(self._cpus)
        """Whether there may be counters."""

    @property
    def missing(self) -> bool:
        """Whether nothing can be counted here."""
        return not self._known

    def counted(self, folders: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Cycles and instructions by folder since the folder was first among ``folders``; the counters of others are closed."""
        if not self._known:
            return {}
        for folder in self._open.keys() - set(folders):
            self._close(folder)
        for folder in folders:
            if self._known and folder not in self._open and len(self._open) < self._most:
                self._try(folder)
        return {folder: found for folder in list(self._open) if (found := self._read(folder)) is not None}

    def _try(self, folder: str) -> None:
        try:
            group = os.open(f"{self._root}/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:  # it is gone
            return
        opened: list[Counter] = []
        try:
            for cpu in self._cpus:
                opened.append(self._make(group, cpu))
        except OSError as error:
            for one in opened:
                one.close()
            if not self._open:
                self._known = False
                _log.debug("cycles_not_counted", extra={"error": str(error)})
        else:
            self._open[folder] = opened
        finally:
            os.close(group)

    def _read(self, folder: str) -> tuple[int, int] | None:
        try:
            found = [one.read() for one in self._open[folder]]
        except (OSError, struct.error):
            self._close(folder)
            return None
        return sum(cycles for cycles, _ in found), sum(instructions for _, instructions in found)

    def _close(self, folder: str) -> None:
        for one in self._open.pop(folder):
            one.close()
