"""The control groups that a kubelet made for its pods: found, and read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from node_agent.domain.colocation.network_rules import Sorting
from node_agent.domain.pod_cgroups import Driver, class_folders, container_of, pod_of
from node_agent.domain.usage import Consumption
from node_agent.runtime.group_use import v1_cpu_ns, v1_memory_bytes, v2_cpu_ns, v2_memory_bytes
from node_agent.runtime.knob_files import KnobFiles, KnobFilesV1, KnobFilesV2
from node_agent.runtime.use_files import UsePaths

CONTROLLERS = {"cpu", "memory"}


class NoGroups(Exception):
    """There are no control groups that could be read; the text says where they were looked for."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The control group of one pod: its path in every hierarchy, and the folders of its containers by id, its sandbox's too."""

    path: Path
    containers: Mapping[str, str]
    driver: Driver = Driver.CGROUPFS


@dataclass(frozen=True, slots=True)
class PodGroups:
    """What is below the kubelet's ``root`` (its ``--cgroup-root``). With version 2 both hierarchies are the same one."""

    version: int
    cpu: Path
    memory: Path
    root: str = "/"

    @property
    def mount(self) -> Path:
        """Where the hierarchies are mounted."""
        return self.cpu if self.version == 2 else self.cpu.parent

    def knobs(self) -> KnobFiles:
        """The files by which rules are put in force."""
        if self.version == 2:
            return KnobFilesV2(self.mount)
        controllers = ("cpu", "cpuset", "memory", "blkio", "net_cls")
        return KnobFilesV1({name: self.mount / name for name in controllers if (self.mount / name).is_dir()})

    def use_paths(self) -> UsePaths:
        """Where the use of groups is told."""
        if self.version == 2:
            return UsePaths(2, self.mount, self.mount, self.mount, self.mount)
        perf = self.mount / "perf_event"
        return UsePaths(1, self.cpu, self.mount / "cpu", self.memory, perf if perf.is_dir() else None)

    @property
    def sorting(self) -> Sorting:
        """By what the kernel knows the group that a packet comes from."""
        if self.version == 2:
            return Sorting.PATH
        return Sorting.CLASS_ID if (self.mount / "net_cls").is_dir() else Sorting.ADDRESS

    def find(self) -> dict[str, PodGroup]:
        """The pods that have a control group, by uid."""
        return {uid: PodGroup(path, _containers(self.cpu / path), driver) for uid, path, driver in self._pods()}

    def consumption(self, group: PodGroup) -> Consumption | None:
        """What a pod used since it began, its containers that have ended included; None when it is gone."""
        cpu_folder, memory_folder = self.cpu / group.path, self.memory / group.path
        read_cpu, read_memory = (v2_cpu_ns, v2_memory_bytes) if self.version == 2 else (v1_cpu_ns, v1_memory_bytes)
        cpu, memory = read_cpu(cpu_folder), read_memory(memory_folder)
        return None if cpu is None or memory is None else Consumption(cpu, memory)

    def whole(self) -> Consumption | None:
        """What all pods together used since their kubelet began."""
        for driver in Driver:
            folder = class_folders(driver, self.root)[0]
            if (self.cpu / folder).is_dir():
                return self.consumption(PodGroup(Path(folder), {}))
        return None

    def _pods(self) -> Iterator[tuple[str, Path, Driver]]:
        for driver in Driver:
            for folder in class_folders(driver, self.root):
                for name in _folders(self.cpu / folder):
                    if uid := pod_of(driver, name):
                        yield uid, Path(folder, name), driver


def find_groups(mount: Path, root: str = "/") -> PodGroups:
    """The control groups of the machine, which are mounted at ``mount`` here. Raises NoGroups.

    What is mounted is looked at, not this process's own mounts: in a container these show its own group alone.
    """
    try:
        controllers = set((mount / "cgroup.controllers").read_text().split())
    except OSError:
        controllers = set()
    if controllers >= CONTROLLERS:
        return PodGroups(2, mount, mount, root)
    cpu, memory = mount / "cpuacct", mount / "memory"
    if cpu.is_dir() and memory.is_dir():
        return PodGroups(1, cpu, memory, root)
    raise NoGroups(
        f"{mount}: neither a cgroup v2 with the controllers cpu and memory nor the v1 hierarchies cpuacct and memory; "
        "mount /sys/fs/cgroup of the machine there"
    )


def _containers(folder: Path) -> dict[str, str]:
    return {container: name for name in _folders(folder) if (container := container_of(name))}


def _folders(folder: Path) -> list[str]:
    """The names of the folders in ``folder``, sorted; none where it is not there (any more)."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []


def consumptions(groups: PodGroups, found: Mapping[str, PodGroup]) -> dict[str, Consumption]:
    """What each pod of ``found`` used, as far as it is still there."""
    read = {uid: groups.consumption(group) for uid, group in found.items()}
    return {uid: one for uid, one in read.items() if one is not None}
