"""cgroup version 2: one hierarchy, whose controllers are handed down level by level."""

from pathlib import Path

from node_agent.domain.limits import PERIOD_US, Limits
from node_agent.domain.local_groups import BEST_EFFORT, is_container
from node_agent.runtime.group_use import is_idle, v2_cpu_ns, v2_memory_bytes
from node_agent.runtime.knob_files import KnobFiles, KnobFilesV2
from node_agent.runtime.use_files import UsePaths

WANTED = ("cpu", "memory", "cpuset", "pids", "io")


class CgroupV2:
    """The groups below ``root / parent``."""

    version = 2

    def __init__(self, root: Path, parent: str) -> None:
        self._parent = root / parent
        self._parent.mkdir(exist_ok=True)
        available = (root / "cgroup.controllers").read_text().split()
        self.controllers = tuple(sorted(set(available) & set(WANTED)))
        self._hand_down(root)
        self._hand_down(self._parent)
        self._make_tier()

    def make(self, group: str, limits: Limits) -> list[str]:
        """See ``cgroups.Hierarchy``."""
        folder = self._parent / group
        if group.startswith(BEST_EFFORT) and not folder.parent.is_dir():
            self._make_tier()  # another agent of this machine has ended, and taken it along
        folder.mkdir(exist_ok=True)
        refused: list[str] = []
        if not is_container(group):  # a pod's group holds no processes itself, only those of its containers
            self._hand_down(folder)
        for controller, name, value in _files(limits, leaf=is_container(group)):
            if controller in self.controllers:
                try:
                    (folder / name).write_text(value)
                except OSError as error:
                    refused.append(f"{name}={value}: {error.strerror}")
        return refused

    def _make_tier(self) -> None:
        """The group that holds best effort, with the least weight."""
        tier = self._parent / BEST_EFFORT
        tier.mkdir(exist_ok=True)
        self._hand_down(tier)
        if "cpu" in self.controllers and not is_idle(tier):
            (tier / "cpu.weight").write_text(str(Limits().weight))

    def folders(self, group: str) -> list[Path]:
        """See ``cgroups.Hierarchy``."""
        return [self._parent / group]

    def entries(self, group: str) -> list[Path]:
        """See ``cgroups.Hierarchy``."""
        return [self._parent / group / "cgroup.procs"]

    def oom_file(self, group: str) -> Path | None:
        """See ``cgroups.Hierarchy``."""
        return self._parent / group / "memory.events" if "memory" in self.controllers else None

    def cpu_ns(self, group: str) -> int | None:
        """See ``cgroups.Hierarchy``."""
        return v2_cpu_ns(self._parent / group)

    def memory_bytes(self, group: str) -> int | None:
        """See ``cgroups.Hierarchy``."""
        return v2_memory_bytes(self._parent / group)

    def knobs(self) -> KnobFiles:
        """See ``cgroups.Hierarchy``."""
        return KnobFilesV2(self._parent)

    def use_paths(self) -> UsePaths | None:
        """See ``cgroups.Hierarchy``."""
        return UsePaths(2, self._parent, self._parent, self._parent, self._parent)

    def _hand_down(self, folder: Path) -> None:
        if self.controllers:
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in self.controllers))


def find(parent: str, mounts: Path) -> CgroupV2 | None:
    """The machine's version 2 hierarchy; None when there is none or it has no controller for cpu or memory.

    Raises OSError when it may not be used: without root, or where the agent's own group may not hand down controllers.
    """
    for line in mounts.read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2":
            root = Path(folder)
            available = set((root / "cgroup.controllers").read_text().split())
            return CgroupV2(root, parent) if available & {"cpu", "memory"} else None
    return None


def _files(limits: Limits, leaf: bool) -> list[tuple[str, str, str]]:
    quota = "max" if limits.quota_us is None else str(limits.quota_us)
    memory = "max" if limits.memory_bytes is None else str(limits.memory_bytes)
    files = [
        ("cpu", "cpu.weight", str(limits.weight)),
        ("cpu", "cpu.max", f"{quota} {PERIOD_US}"),
        ("memory", "memory.max", memory),
    ]
    if leaf:  # a container whose memory is used up ends whole, not by one of its processes
        files.append(("memory", "memory.oom.group", "1"))
    if limits.pids is not None:
        files.append(("pids", "pids.max", str(limits.pids)))
    if limits.cpu_set:
        files.append(("cpuset", "cpuset.cpus", limits.cpu_set))
    return files
