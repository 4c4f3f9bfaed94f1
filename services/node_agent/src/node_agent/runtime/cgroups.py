"""Control groups: limits that the kernel holds a pod to, and what it used.

One group for the node (``AgentSettings.cgroup_parent``), in it one for each pod, best effort's in one of their own, and in a
pod's one for each container. Which version the machine has, and what of it may be used, is found out by trying.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from node_agent.domain.limits import Limits
from node_agent.domain.local_groups import BEST_EFFORT
from node_agent.domain.usage import Consumption
from node_agent.runtime import cgroup_v1, cgroup_v2
from node_agent.runtime.knob_files import KnobFiles
from node_agent.runtime.use_files import UsePaths


class Hierarchy(Protocol):
    """One version's layout of files. ``group`` is a path below the node's group, as in ``domain.local_groups``."""

    version: int
    controllers: tuple[str, ...]

    def make(self, group: str, limits: Limits) -> list[str]:
        """Make ``group`` and put ``limits`` in force; returns what the kernel refused, in words."""

    def folders(self, group: str) -> list[Path]:
        """The folders that make up ``group``."""

    def entries(self, group: str) -> list[Path]:
        """The files that a process of one thread writes ``0`` to in order to join ``group``."""

    def oom_file(self, group: str) -> Path | None:
        """The file that counts the processes killed for want of memory."""

    def cpu_ns(self, group: str) -> int | None:
        """CPU time that ``group`` used; None when it is not measured."""

    def memory_bytes(self, group: str) -> int | None:
        """Memory that ``group`` has in use; None when it is not measured."""

    def knobs(self) -> KnobFiles:
        """The files by which rules are put in force, below the node's group."""

    def use_paths(self) -> UsePaths | None:
        """Where the use of groups is told; None when some of it is not."""


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The node's control groups; without a ``hierarchy`` every method does nothing, and ``why`` says why."""

    hierarchy: Hierarchy | None
    why: str = ""

    @property
    def version(self) -> int:
        """1 or 2; 0 when nothing is enforced."""
        return self.hierarchy.version if self.hierarchy else 0

    @property
    def controllers(self) -> tuple[str, ...]:
        return self.hierarchy.controllers if self.hierarchy else ()

    def make(self, group: str, limits: Limits) -> list[str]:
        """Make ``group`` with ``limits``; returns what could not be put in force."""
        return self.hierarchy.make(group, limits) if self.hierarchy else []

    def process_files(self, group: str) -> list[str]:
        """The files that a process writes ``0`` to in order to join ``group``."""
        return [str(file) for file in self.hierarchy.entries(group)] if self.hierarchy else []

    def oom_file(self, group: str) -> str | None:
        """The file that counts the processes of ``group`` killed for want of memory."""
        file = self.hierarchy.oom_file(group) if self.hierarchy else None
        return str(file) if file else None

    def consumption(self, group: str) -> Consumption | None:
        """What ``group`` used; None when it is not measured or gone."""
        if self.hierarchy is None:
            return None
        cpu, memory = self.hierarchy.cpu_ns(group), self.hierarchy.memory_bytes(group)
        return None if cpu is None or memory is None else Consumption(cpu, memory)

    def kill(self, group: str) -> int:
        """SIGKILL every process of ``group`` and below; returns how many there were."""
        killed: set[int] = set()
        for folder in self._folders(group):
            for procs in [*folder.glob("*/cgroup.procs"), folder / "cgroup.procs"]:
                for pid in _pids(procs) - killed:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                    killed.add(pid)
        return len(killed)

    def remove(self, group: str) -> bool:
        """Remove ``group`` and what is below; False when something of it is still busy."""
        done = True
        for folder in self._folders(group):
            for inner in [*folder.glob("*/"), folder]:
                try:
                    inner.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    done = False
        return done

    def exists(self, group: str) -> bool:
        """Whether there is such a group."""
        return any(folder.is_dir() for folder in self._folders(group))

    def release(self) -> None:
        """Remove the node's own group, if no pod's group is in it."""
        for folder in [*self._folders(BEST_EFFORT), *self._folders("")]:
            try:
                folder.rmdir()
            except OSError:  # another agent of this machine uses it too
                continue

    def _folders(self, group: str) -> list[Path]:
        return self.hierarchy.folders(group) if self.hierarchy else []


def find_cgroups(parent: str, mounts: Path = Path("/proc/self/mounts")) -> Cgroups:
    """The machine's control groups below ``parent``, as far as they may be used: version 2 if it has controllers."""
    reasons: list[str] = []
    for find in (cgroup_v2.find, cgroup_v1.find):
        try:
            hierarchy: Hierarchy | None = find(parent, mounts)
        except OSError as error:
            reasons.append(str(error))
            continue
        if hierarchy is not None:
            return Cgroups(hierarchy)
    return Cgroups(None, "; ".join(reasons) or "no cgroup hierarchy with a controller for cpu or memory is mounted")


def _pids(file: Path) -> set[int]:
    try:
        return {int(line) for line in file.read_text().split()}
    except OSError:
        return set()
