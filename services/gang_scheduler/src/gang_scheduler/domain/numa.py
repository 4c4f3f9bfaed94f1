"""The NUMA nodes and CPUs of a node, and which CPUs a pod that gets some of its own is given.

The plain rule: whole free cores, the lowest numbers first; only what is left over of the request comes from cores of
which a part is taken already, again the lowest first.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gang_scheduler.domain.allotments import parse_cpus
from gang_scheduler.domain.device_needs import NumaPolicy, numa_policy
from kube import Manifest
from resources import QuantityError, parse_quantity

POLICY_LABEL = "node.koordinator.sh/numa-topology-policy"
CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
UNKNOWN_MEMORY = 1 << 53
"""Stands for the memory of a NUMA node that nobody tells: it keeps nothing out."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One NUMA node: its number, CPUs and bytes of memory."""

    number: int
    cpus: Sequence[int]
    memory: int


@dataclass(frozen=True, slots=True)
class NumaLayout:
    """``named`` is whether the node names its NUMA nodes; else there is one that stands for all of it."""

    cells: tuple[Cell, ...]
    named: bool = False
    policy: NumaPolicy = NumaPolicy.NONE
    core_of: Mapping[int, int] = field(default_factory=dict)
    """The core of each CPU; one that is left out is a core of its own."""

    @property
    def strict(self) -> bool:
        """Whether the node keeps all pods within its NUMA nodes."""
        return self.named and self.policy >= NumaPolicy.RESTRICTED

    def core(self, cpu: int) -> int:
        """A number that the threads of one core share."""
        return self.core_of.get(cpu, -1 - cpu)


def layout_of(inventory: Manifest, policy_name: str, cpu_milli: int, topology: str = "") -> NumaLayout:
    """The layout by a node's ``inventory`` or the CPU ``topology`` that Koordinator's agent reports.

    ``cpu_milli`` is what a node has that tells neither.
    """
    policy = numa_policy(policy_name)
    reported = _reported(topology)
    core_of = {cpu: core for cpu, (core, _) in reported.items()}
    cells = _inventoried(inventory)
    named = bool(cells)
    if not cells and reported:
        members: dict[int, list[int]] = {}
        for cpu, (_, node) in sorted(reported.items()):
            members.setdefault(node, []).append(cpu)
        cells = tuple(Cell(node, tuple(cpus), UNKNOWN_MEMORY) for node, cpus in sorted(members.items()))
        named = True
    return NumaLayout(cells or (Cell(0, range(cpu_milli // 1000), UNKNOWN_MEMORY),), named, policy, core_of)


def choose_cpus(free: Sequence[int], count: int, layout: NumaLayout, taken: Collection[int]) -> tuple[int, ...]:
    """``count`` of the ``free`` CPUs, ascending; there are as many. ``taken`` are those that belong to other pods."""
    cores: dict[int, list[int]] = {}
    for cpu in sorted(free):
        cores.setdefault(layout.core(cpu), []).append(cpu)
    broken = {layout.core(cpu) for cpu in taken}
    chosen: list[int] = []
    for core, cpus in cores.items():
        if core not in broken and len(chosen) + len(cpus) <= count:
            chosen += cpus
    rest = [cpu for core, cpus in cores.items() if core in broken for cpu in cpus]
    rest += [cpu for core, cpus in cores.items() if core not in broken for cpu in cpus if cpu not in set(chosen)]
    return tuple(sorted(chosen + rest[: count - len(chosen)]))


def _inventoried(inventory: Manifest) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for position, one in enumerate(inventory.get("numa") or ()):
        try:
            memory = parse_quantity(one.get("memory") or 0) or UNKNOWN_MEMORY
            cells.append(Cell(int(one.get("index", position)), parse_cpus(str(one.get("cpus") or "")), memory))
        except (AttributeError, TypeError, ValueError, QuantityError):
            return ()
    return tuple(cells)


def _reported(topology: str) -> dict[int, tuple[int, int]]:
    """Core and NUMA node of each CPU."""
    try:
        detail: Any = json.loads(topology or "{}").get("detail") or ()
        return {int(one["id"]): (int(one.get("core", one["id"])), int(one.get("node", 0))) for one in detail}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
