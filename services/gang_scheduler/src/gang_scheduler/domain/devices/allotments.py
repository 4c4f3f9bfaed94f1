"""What one pod has of its node besides plain amounts: cards, CPUs of its own, parts of NUMA nodes."""

from typing import NamedTuple

from gang_scheduler.domain.devices.mig_room import Slice
from kube import Manifest
from kube.cpu_lists import format_cpus, parse_cpus
from kube.devices import CPU_SET, MIG_SLICES, NUMA_NODES, RDMA
from resources import QuantityError, format_amounts, parse_amounts


class CellShare(NamedTuple):
    """A part of one NUMA node: cpu in milli-cores, memory in bytes."""

    cell: int
    cpu: int
    memory: int


class Allotment(NamedTuple):
    """``cards`` are indexes, of which ``resource`` is the request that they answer; ``cpus`` are the pod's alone."""

    resource: str = ""
    cards: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    shares: tuple[CellShare, ...] = ()
    nics: tuple[int, ...] = ()
    """RDMA devices."""

    slices: tuple[Slice, ...] = ()
    """Instances on cards that are in MIG mode."""

    def manifest(self) -> Manifest | None:
        """The allotment as a binding carries it; None when there is nothing to tell."""
        told: Manifest = {}
        if self.cards:
            told[self.resource] = list(self.cards)
        if self.nics:
            told[RDMA] = list(self.nics)
        if self.cpus:
            told[CPU_SET] = format_cpus(self.cpus)
        if self.shares:
            told[NUMA_NODES] = [
                {"node": share.cell, "resources": format_amounts({"cpu": share.cpu, "memory": share.memory})}
                for share in self.shares
            ]
        if self.slices:
            told[MIG_SLICES] = [_told(one) for one in self.slices]
        return told or None


NOTHING = Allotment()


def allotment_of(devices: Manifest | None) -> Allotment:
    """The allotment that a binding carries; what cannot be read is left out."""
    if not devices:
        return NOTHING
    cards: dict[str, list[int]] = {}
    for name in sorted(devices.keys() - {CPU_SET, NUMA_NODES, MIG_SLICES}):
        try:
            cards[name] = [int(index) for index in devices[name]]
        except (TypeError, ValueError):
            continue
    nics = tuple(sorted(cards.pop(RDMA, ())))
    indexes = sorted({index for part in cards.values() for index in part})
    cpus, shares = _cpus(devices.get(CPU_SET)), _shares(devices.get(NUMA_NODES))
    return Allotment(next(iter(cards), ""), tuple(indexes), cpus, shares, nics, _slices(devices.get(MIG_SLICES)))


def _told(one: Slice) -> Manifest:
    told: Manifest = {"card": one.card, "start": one.start, "profile": one.profile}
    return {**told, "name": one.name} if one.name else told


def _slices(listed: object) -> tuple[Slice, ...]:
    found: list[Slice] = []
    for one in listed if isinstance(listed, list) else ():
        try:
            found.append(Slice(int(one["card"]), int(one["start"]), str(one["profile"]), str(one.get("name") or "")))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return tuple(sorted(found))


def _cpus(text: object) -> tuple[int, ...]:
    try:
        return parse_cpus(text) if isinstance(text, str) else ()
    except ValueError:
        return ()


def _shares(listed: object) -> tuple[CellShare, ...]:
    found: list[CellShare] = []
    for one in listed if isinstance(listed, list) else ():
        try:
            amounts = parse_amounts(one.get("resources"))
            found.append(CellShare(int(one["node"]), amounts.get("cpu", 0), amounts.get("memory", 0)))
        except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
            continue
    return tuple(sorted(found))
