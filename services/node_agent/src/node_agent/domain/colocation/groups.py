"""The control groups of a node, by what they are of, and the files that are set in them.

Files have the names of cgroup version 2. A tier is what a kubelet calls a QoS class: it stands between the node and the pods,
but for pods of the class Guaranteed, which are directly below the node.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

CPU_SHARES = "cpu.shares"
"""Version 1's own word for the weight: it has more steps, and the one of version 2 cannot be turned back into it."""
CPU_MAX, CPU_WEIGHT, CPU_BURST, CPU_IDLE, CPU_SET = "cpu.max", "cpu.weight", "cpu.max.burst", "cpu.idle", "cpuset.cpus"
MEMORY_MAX, MEMORY_MIN, MEMORY_LOW, MEMORY_HIGH = "memory.max", "memory.min", "memory.low", "memory.high"
MEMORY_CURRENT, MEMORY_RECLAIM = "memory.current", "memory.reclaim"
IO_MAX, IO_WEIGHT = "io.max", "io.weight"

NET_CLASS = "net_cls.classid"
"""Version 1's own: what class of traffic the packets of a group are in. Version 2 knows groups by their paths."""

UNLIMITED = "max"


class Tier(StrEnum):
    """Where a kubelet puts a pod, by what its containers ask for."""

    GUARANTEED = ""
    BURSTABLE = "burstable"
    BEST_EFFORT = "besteffort"


class Group(NamedTuple):
    """A tier, a pod of it, or a container of that; all pods together are the tier of Guaranteed ones."""

    tier: Tier
    pod: str = ""
    container: str = ""

    def of(self, container: str) -> "Group":
        """The group of a container of this pod."""
        return Group(self.tier, self.pod, container)


Knobs = Mapping[Group, Mapping[str, str]]
"""What is to stand in which file of which group."""


class TwoOwners(ValueError):
    """Two places want to decide about one file."""


def joined(parts: Iterable[Knobs]) -> dict[Group, Mapping[str, str]]:
    """What all ``parts`` decide, each file by one of them. Raises TwoOwners."""
    whole: dict[Group, Mapping[str, str]] = {}
    for part in parts:
        for group, files in part.items():
            there = whole.get(group)
            if there is None:
                whole[group] = files
            elif twice := there.keys() & files.keys():
                raise TwoOwners(f"{group}: {', '.join(sorted(twice))}")
            else:
                whole[group] = {**there, **files}
    return whole
