"""Reading the CPUs and NUMA nodes of a node from those who describe them.

There are four, the first that says anything counts: the node's own inventory; the annotation in which Koordinator's agent
lists every CPU; Volcano's Numatopology; the zones of a NodeResourceTopology, which tell amounts only. CPUs that the
kubelet or the system keep, or that kubelet gave to pods on its own, are nobody's to give.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gang_scheduler.domain.devices.cpu_binding import node_binding
from gang_scheduler.domain.devices.device_needs import NumaPolicy, numa_policy
from gang_scheduler.domain.devices.numa import UNKNOWN_MEMORY, WHOLE_CPU, Allocation, Cell, NumaLayout
from kube import Manifest
from kube.cpu_lists import parse_cpus
from kube.json_text import read_json
from resources import QuantityError, parse_amounts, parse_quantity


class Processor(NamedTuple):
    """One CPU: the core, NUMA node and socket that it is part of."""

    core: int
    cell: int
    socket: int


@dataclass(frozen=True, slots=True)
class CpuWords:
    """What labels, annotations and describing objects say of a node's CPUs, as text. Two equal ones mean the same."""

    policy: str = ""
    """Label ``numa-topology-policy``, else the kubelet's."""

    topology: str = ""
    """JSON: every CPU with its core, socket and NUMA node."""

    zones: str = ""
    """JSON: NUMA nodes with amounts."""

    binding: str = ""
    allocation: str = ""
    reserved: tuple[str, ...] = ()
    """CPUs that are not for pods, as lists."""

    amplification: str = ""


NO_WORDS = CpuWords()


def layout_of(inventory: Manifest, words: CpuWords, cpu_milli: int) -> NumaLayout:
    """The layout of a node; ``cpu_milli`` is what it has in all, where nobody lists its CPUs."""
    milli = amplification(words.amplification)
    reported = _reported(words.topology)
    core_of = {cpu: one.core for cpu, one in reported.items()}
    cells = _inventoried(inventory) or _of_processors(reported, _zones(words.zones)) or _of_zones(_zones(words.zones))
    named = bool(cells)
    taken = {cpu for text in words.reserved for cpu in _tolerant_cpus(text)}
    cells = cells or (Cell(0, range(cpu_milli // milli), UNKNOWN_MEMORY),)
    if taken:
        cells = tuple(replace(cell, cpus=tuple(cpu for cpu in cell.cpus if cpu not in taken)) for cell in cells)
    allocation = Allocation(words.allocation) if words.allocation in set(Allocation) else Allocation.MOST
    policy = numa_policy(words.policy) if named else NumaPolicy.NONE
    sizes: dict[int, int] = {}
    for core in core_of.values():
        sizes[core] = sizes.get(core, 0) + 1
    threads = max(sizes.values(), default=1)
    spoiled = frozenset(core_of.get(cpu, -1 - cpu) for cpu in taken)
    return NumaLayout(cells, named, policy, core_of, node_binding(words.binding), allocation, milli, spoiled, threads)


def amplification(text: str) -> int:
    """How much of a node's amount of cpu one CPU stands for, in milli-cores: ``{"cpu": 1.5}`` → 1500."""
    try:
        ratio = read_json(text or "{}").get("cpu", 1)
        return max(WHOLE_CPU, round(float(ratio) * WHOLE_CPU))
    except (ValueError, TypeError, AttributeError, OverflowError):
        return WHOLE_CPU


def _inventoried(inventory: Manifest) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for position, one in enumerate(inventory.get("numa") or ()):
        try:
            memory = parse_quantity(one.get("memory") or 0) or UNKNOWN_MEMORY
            socket = int(one.get("socket", -1))
            cells.append(Cell(int(one.get("index", position)), parse_cpus(str(one.get("cpus") or "")), memory, socket))
        except (AttributeError, TypeError, ValueError, QuantityError):
            return ()
    return tuple(cells)


def _reported(topology: str) -> dict[int, Processor]:
    try:
        detail: Any = read_json(topology or "{}").get("detail") or ()
        return {
            int(one["id"]): Processor(
                int(one.get("core", one["id"])), int(one.get("node", 0)), int(one.get("socket", -1))
            )
            for one in detail
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _of_processors(reported: Mapping[int, Processor], zones: Mapping[int, tuple[int, int]]) -> tuple[Cell, ...]:
    members: dict[int, list[int]] = {}
    for cpu, one in sorted(reported.items()):
        members.setdefault(one.cell, []).append(cpu)
    return tuple(
        Cell(number, tuple(cpus), zones.get(number, (0, 0))[1] or UNKNOWN_MEMORY, reported[cpus[0]].socket)
        for number, cpus in sorted(members.items())
    )


def _of_zones(zones: Mapping[int, tuple[int, int]]) -> tuple[Cell, ...]:
    """NUMA nodes of which only amounts are known have the CPUs in the order of their numbers."""
    cells, first = [], 0
    for number, (cpu, memory) in sorted(zones.items()):
        cells.append(Cell(number, range(first, first + cpu // WHOLE_CPU), memory or UNKNOWN_MEMORY))
        first += cpu // WHOLE_CPU
    return tuple(cells) if first else ()


def _zones(text: str) -> dict[int, tuple[int, int]]:
    """Allocatable cpu (milli) and memory (bytes) by the number of the NUMA node."""
    found: dict[int, tuple[int, int]] = {}
    try:
        for zone in read_json(text or "[]"):
            number = int(str(zone.get("name", "")).rpartition("-")[2])
            listed = {
                one["name"]: one.get("allocatable", one.get("capacity", 0)) for one in zone.get("resources") or ()
            }
            amounts = parse_amounts({name: listed[name] for name in ("cpu", "memory") if name in listed})
            found[number] = amounts.get("cpu", 0), amounts.get("memory", 0)
    except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
        return {}
    return found


def _tolerant_cpus(text: str) -> tuple[int, ...]:
    try:
        return parse_cpus(text)
    except ValueError:
        return ()
