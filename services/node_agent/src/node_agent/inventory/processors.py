"""CPUs, memory and NUMA nodes, as the kernel shows them and as far as this process may use them."""

import os
from collections.abc import Collection
from pathlib import Path

from kube.cpu_lists import format_cpus, parse_cpus
from node_agent.inventory.parts import NumaNode

# What cgroup v1 shows where there is no limit: the largest multiple of a page below 2^63.
_UNLIMITED = 1 << 62


def find_cpus(root: Path = Path("/")) -> list[int]:
    """The CPUs that are online, and that the agent's own affinity and CPU quota leave to it."""
    online = online_cpus(root)
    if root == Path("/"):
        allowed = os.sched_getaffinity(0)
        online = [cpu for cpu in online if cpu in allowed] or sorted(allowed)
    quota = _cpu_quota(root)
    return online[: max(1, quota)] if quota else online


def online_cpus(root: Path = Path("/")) -> list[int]:
    """All CPUs that are online, whoever may use them."""
    return list(parse_cpus(_read(root / "sys/devices/system/cpu/online") or "0"))


def find_memory_bytes(root: Path = Path("/")) -> int:
    """The memory of the machine, or the limit of the agent's own group if that is lower."""
    total = _meminfo(root / "proc/meminfo").get("MemTotal", 0)
    limits = [_number(root / f"sys/fs/cgroup/{file}") for file in ("memory.max", "memory/memory.limit_in_bytes")]
    return min([total, *(limit for limit in limits if 0 < limit < _UNLIMITED)])


def find_numa(usable: Collection[int], root: Path = Path("/")) -> tuple[NumaNode, ...]:
    """The NUMA nodes that have some of the CPUs ``usable``, by number."""
    found = []
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        cpus = [cpu for cpu in parse_cpus(_read(folder / "cpulist")) if cpu in usable]
        if cpus:
            memory = _meminfo(folder / "meminfo").get("MemTotal", 0)
            found.append(NumaNode(int(folder.name[4:]), format_cpus(cpus), memory))
    return tuple(sorted(found, key=lambda node: node.index))


def _cpu_quota(root: Path) -> int:
    """Whole CPUs that the agent's own group may use; 0 when it has no quota."""
    quota, _, period = _read(root / "sys/fs/cgroup/cpu.max").partition(" ")
    if not quota:
        folder = root / "sys/fs/cgroup/cpu"
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    return int(quota) // int(period) if quota.isdigit() and period.isdigit() and int(period) else 0


def _meminfo(file: Path) -> dict[str, int]:
    """Fields of a meminfo file in bytes, by name; lines of a NUMA node begin with its number."""
    fields: dict[str, int] = {}
    for line in _read(file).splitlines():
        words = line.split()
        if len(words) >= 3 and words[-1] == "kB":
            fields[words[-3].rstrip(":")] = int(words[-2]) << 10
    return fields


def _number(file: Path) -> int:
    text = _read(file)
    return int(text) if text.isdigit() else 0


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
