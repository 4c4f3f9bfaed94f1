"""What a node has, and what of it is kept from pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kube import Manifest
from kube.cpu_lists import parse_cpus
from kube.json_text import read_json
from kube.lent_resources import current
from kube.normalization import PLAIN_MILLI, core_milli
from node_agent.domain.colocation.network_rules import Uplink
from resources import Amounts, QuantityError, parse_amounts

INVENTORY = "tidegate.dev/inventory"
RESERVATION = "node.koordinator.sh/reservation"
SYSTEM_CPUS = "node.koordinator.sh/system-qos-resource"
CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CacheHardware:
    """What resctrl shares out: the mask of all ways, the numbers of the caches, and whether bandwidth is shared too."""

    ways_mask: int
    caches: tuple[int, ...]
    bandwidth: bool
    amd: bool = False


class Processor(NamedTuple):
    """One CPU, with the core and the NUMA node that it is part of."""

    cpu: int
    core: int
    numa: int


@dataclass(frozen=True, slots=True)
class Machine:
    """A node. ``reserved`` is what pods are kept from, ``system_cpus`` is where those of the class SYSTEM run."""

    capacity: Amounts
    allocatable: Amounts
    processors: tuple[Processor, ...]
    reserved: Amounts = field(default_factory=dict)
    reserved_cpus: frozenset[int] = frozenset()
    system_cpus: frozenset[int] = frozenset()
    system_exclusive: bool = False
    disks: Mapping[str, str] = field(default_factory=dict)
    """Numbers of disks (``8:0``) by name."""
    cache: CacheHardware | None = None
    core_milli: int = PLAIN_MILLI
    """How much a core does, in thousandths of the one that all are measured by."""
    uplink: Uplink | None = None

    @property
    def cpu_milli(self) -> int:
        return self.capacity.get("cpu", 0)

    @property
    def memory_bytes(self) -> int:
        return self.capacity.get("memory", 0)

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(one.cpu for one in self.processors)

    @property
    def closed_cpus(self) -> frozenset[int]:
        """The CPUs that no pod shares: reserved ones, and those of the system alone."""
        return self.reserved_cpus | (self.system_cpus if self.system_exclusive else frozenset())


def machine_of(
    node: Manifest,
    processors: tuple[Processor, ...] = (),
    disks: Mapping[str, str] | None = None,
    cache: CacheHardware | None = None,
    uplink: Uplink | None = None,
) -> Machine:
    """The machine that a Node manifest describes; the rest where it was found on the machine itself."""
    status, metadata = node.get("status") or {}, node.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    allocatable = current(_amounts(status.get("allocatable")))
    capacity = {**allocatable, **current(_amounts(status.get("capacity")))}
    reservation, system = _object(annotations, RESERVATION), _object(annotations, SYSTEM_CPUS)
    reserved_cpus = _cpu_set(reservation.get("reservedCPUs"))
    asked = _amounts(reservation.get("resources"))
    if reserved_cpus:
        asked["cpu"] = len(reserved_cpus) * 1000
    held = {
        name: max(capacity.get(name, 0) - allocatable.get(name, 0), asked.get(name, 0)) for name in ("cpu", "memory")
    }
    return Machine(
        capacity,
        allocatable,
        processors or _described(annotations) or _counted(capacity.get("cpu", 0)),
        held,
        reserved_cpus,
        _cpu_set(system.get("cpuset")),
        bool(system.get("cpusetExclusive", True)),
        disks or {},
        cache,
        core_milli({name: str(text) for name, text in annotations.items()}),
        uplink,
    )


def _described(annotations: Mapping[str, str]) -> tuple[Processor, ...]:
    """What the node's own inventory or Koordinator's agent says of its CPUs."""
    listed = _object(annotations, CPU_TOPOLOGY).get("detail")
    try:
        if isinstance(listed, list) and listed:
            found = (Processor(int(one["id"]), int(one["core"]), int(one.get("node", 0))) for one in listed)
            return tuple(sorted(found))
        cells = _object(annotations, INVENTORY).get("numa") or ()
        return tuple(
            Processor(cpu, cpu, int(cell.get("index", position)))
            for position, cell in enumerate(cells)
            for cpu in parse_cpus(str(cell.get("cpus") or ""))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def _counted(cpu_milli: int) -> tuple[Processor, ...]:
    return tuple(Processor(cpu, cpu, 0) for cpu in range(cpu_milli // 1000))


def _object(annotations: Mapping[str, str], name: str) -> Manifest:
    try:
        found = read_json(annotations.get(name) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _cpu_set(text: object) -> frozenset[int]:
    try:
        return frozenset(parse_cpus(str(text or "")))
    except ValueError:
        return frozenset()


def _amounts(listed: object) -> Amounts:
    found: Amounts = {}
    for name, value in listed.items() if isinstance(listed, dict) else ():
        try:
            found |= parse_amounts({name: value})
        except QuantityError:
            continue
    return found
