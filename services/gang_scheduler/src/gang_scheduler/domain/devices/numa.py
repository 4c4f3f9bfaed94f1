"""The NUMA nodes and CPUs of a node, as decisions need them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gang_scheduler.domain.devices.cpu_binding import BindPolicy
from gang_scheduler.domain.devices.device_needs import NumaPolicy

UNKNOWN_MEMORY = 1 << 53
"""Stands for the memory of a NUMA node that nobody tells: it keeps nothing out."""

WHOLE_CPU = 1000


class Allocation(StrEnum):
    """Which NUMA node comes first: the fullest, the emptiest, or, where one is not enough, the same part of each."""

    MOST = "MostAllocated"
    LEAST = "LeastAllocated"
    EVENLY = "DistributeEvenly"


@dataclass(frozen=True, slots=True)
class Cell:
    """One NUMA node: its number, the CPUs that pods may have, bytes of memory, and the processor that it is part of."""

    number: int
    cpus: Sequence[int]
    memory: int
    socket: int = -1


@dataclass(frozen=True, slots=True)
class NumaLayout:
    """``named`` is whether the node names its NUMA nodes; else there is one that stands for all of it."""

    cells: tuple[Cell, ...]
    named: bool = False
    policy: NumaPolicy = NumaPolicy.NONE
    core_of: Mapping[int, int] = field(default_factory=dict)
    """The core of each CPU; one that is left out is a core of its own."""

    binding: BindPolicy | None = None
    """What the node demands of all that is pinned there."""

    allocation: Allocation = Allocation.MOST
    cpu_milli: int = WHOLE_CPU
    """How much of the node's amount of cpu one CPU stands for: more than 1000 on a node that was amplified."""

    spoiled: frozenset[int] = frozenset()
    """The cores of which some threads are not for pods."""

    threads: int = 1
    """How many CPUs a core has."""

    @property
    def strict(self) -> bool:
        """Whether the node keeps all pods within its NUMA nodes."""
        return self.named and self.policy >= NumaPolicy.RESTRICTED

    def core(self, cpu: int) -> int:
        """A number that the threads of one core share."""
        return self.core_of.get(cpu, -1 - cpu)
