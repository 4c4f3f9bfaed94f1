"""cgroup version 1: a hierarchy per controller, the same path in each of them.

Only cpu and memory have groups for containers; what the others hold or count is the pod's, so that a start makes eight
groups and not twelve.
"""

import errno
import os
from pathlib import Path

from node_agent.domain.limits import PERIOD_US, Limits
from node_agent.domain.local_groups import BEST_EFFORT, is_container, pod_of
from node_agent.runtime.group_use import is_idle, v1_cpu_ns, v1_memory_bytes
from node_agent.runtime.knob_files import KnobFiles, KnobFilesV1
from node_agent.runtime.use_files import UsePaths

WANTED = ("cpu", "cpuacct", "memory", "cpuset", "pids", "freezer", "blkio")
PER_CONTAINER = ("cpu", "memory")
PER_TIER = ("blkio",)
"""Controllers that hold best effort as a whole, and nobody else."""


class CgroupV1:
    """The groups below ``parent`` in the hierarchies of ``roots`` (controller → mount point)."""

    version = 1

    def __init__(self, roots: dict[str, Path], parent: str) -> None:
        self.controllers = tuple(sorted(roots))
        self._parents = {controller: root / parent for controller, root in roots.items()}
        for controller, folder in self._parents.items():
            folder.mkdir(exist_ok=True)
            if controller == "cpuset":
                _inherit_cpu_set(folder)
        self._make_tier()

    def make(self, group: str, limits: Limits) -> list[str]:
        """See ``cgroups.Hierarchy``."""
        refused: list[str] = []
        for controller, parent in self._parents.items():
            if not self._has(controller, group):
                continue
            folder = parent / group
            if group.startswith(BEST_EFFORT) and not folder.parent.is_dir():
                self._make_tier()  # another agent of this machine has ended, and taken it along
            folder.mkdir(exist_ok=True)
            if controller == "cpuset":
                _inherit_cpu_set(folder)
            for name, value in _files(controller, limits):
                try:
                    (folder / name).write_text(value)
                except OSError as error:
                    refused.append(f"{name}={value}: {error.strerror}")
        return refused

    def _make_tier(self) -> None:
        """The group that holds best effort, with the least weight."""
        for controller, parent in self._parents.items():
            folder = parent / BEST_EFFORT
            folder.mkdir(exist_ok=True)
            if controller == "cpuset":
                _inherit_cpu_set(folder)
            elif controller == "cpu" and not is_idle(folder):
                (folder / "cpu.shares").write_text(str(Limits().shares))

    def folders(self, group: str) -> list[Path]:
        """See ``cgroups.Hierarchy``."""
        return [parent / group for controller, parent in self._parents.items() if self._has(controller, group)]

    def entries(self, group: str) -> list[Path]:
        """See ``cgroups.Hierarchy``."""
        pod, tier = pod_of(group), BEST_EFFORT if group.startswith(f"{BEST_EFFORT}/") else ""
        # The kernel moves a thread that moves itself by ``tasks`` without stopping every fork of the machine, which it
        # does for ``cgroup.procs``: a tenth of a millisecond per controller instead of several.
        return [
            parent / (group if self._has(controller, group) else tier if controller in PER_TIER else pod) / "tasks"
            for controller, parent in self._parents.items()
        ]

    def oom_file(self, group: str) -> Path | None:
        """See ``cgroups.Hierarchy``."""
        parent = self._parents.get("memory")
        return parent / group / "memory.oom_control" if parent else None

    def cpu_ns(self, group: str) -> int | None:
        """See ``cgroups.Hierarchy``."""
        parent = self._parents.get("cpuacct")
        return v1_cpu_ns(parent / group) if parent else None

    def memory_bytes(self, group: str) -> int | None:
        """See ``cgroups.Hierarchy``."""
        parent = self._parents.get("memory")
        return v1_memory_bytes(parent / group) if parent else None

    def _has(self, controller: str, group: str) -> bool:
        if controller in PER_TIER:
            return group in ("", BEST_EFFORT)
        return not is_container(group) or controller in PER_CONTAINER

    def knobs(self) -> KnobFiles:
        """See ``cgroups.Hierarchy``."""
        return KnobFilesV1(self._parents)

    def use_paths(self) -> UsePaths | None:
        """See ``cgroups.Hierarchy``."""
        found = [self._parents.get(name) for name in ("cpuacct", "cpu", "memory")]
        cpu_time, cpu, memory = found
        return UsePaths(1, cpu_time, cpu, memory) if cpu_time and cpu and memory else None


def find(parent: str, mounts: Path) -> CgroupV1 | None:
    """The machine's version 1 hierarchies, as far as a group may be made in them; None when none is mounted.

    Raises OSError with the first refusal when no group for cpu or memory may be made.
    """
    roots: dict[str, Path] = {}
    refusal: OSError | None = None
    for line in mounts.read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind != "cgroup":
            continue
        for controller in set(options.split(",")) & set(WANTED):
            try:
                _claim(Path(folder) / parent)
                roots.setdefault(controller, Path(folder))
            except OSError as error:
                refusal = refusal or error
    if not roots.keys() & {"cpu", "memory"}:
        if refusal is not None:
            raise refusal
        return None
    return CgroupV1(roots, parent)


def _claim(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    if not os.access(folder, os.W_OK):  # left there by an agent of another user
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _files(controller: str, limits: Limits) -> list[tuple[str, str]]:
    if controller == "cpu":
        quota = -1 if limits.quota_us is None else limits.quota_us
        period = [("cpu.cfs_period_us", str(PERIOD_US))]
        return [("cpu.shares", str(limits.shares)), *period, ("cpu.cfs_quota_us", str(quota))]
    if controller == "memory" and limits.memory_bytes is not None:
        return [("memory.limit_in_bytes", str(limits.memory_bytes))]
    if controller == "pids" and limits.pids is not None:
        return [("pids.max", str(limits.pids))]
    if controller == "cpuset" and limits.cpu_set:
        return [("cpuset.cpus", limits.cpu_set)]
    return []


def _inherit_cpu_set(folder: Path) -> None:
    """A new group of this controller has no CPU and no memory node, and nothing can run in it, until it is given some."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not _read(folder / name):
            (folder / name).write_text(_read(folder.parent / name))


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
