"""What the node has, as it is reported: amounts, NUMA nodes, GPUs, and what is in force on it."""

import json
import os
import platform
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kube import Manifest
from kube.devices import MIG_RESOURCE
from node_agent.inventory import declared, nvml
from node_agent.inventory.parts import Gpu, NumaNode
from node_agent.inventory.processors import find_cpus, find_memory_bytes, find_numa, online_cpus
from resources import Amounts, format_amounts

GPU_RESOURCE = "nvidia.com/gpu"
USAGE_THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
"""Koordinator's annotation: up to which use, in percent, a node takes more pods; 0 is no limit."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The NUMA nodes and GPUs of one node."""

    numa: tuple[NumaNode, ...] = ()
    gpus: tuple[Gpu, ...] = ()

    def topology(self) -> Manifest:
        """NUMA nodes, GPUs and their NVLink connections, in the form of a declared inventory."""
        return {
            "numa": [{"cpus": one.cpus, "memory": str(one.memory_bytes), "gpus": list(one.gpus)} for one in self.numa],
            "gpus": [
                {"index": one.index, "uuid": one.uuid, "model": one.model, "memory": str(one.memory_bytes), "numa": one.numa}
                | ({} if one.mig is None else {"mig": [asdict(instance) for instance in one.mig]})
                for one in self.gpus
            ],
            "nvlink": [list(pair) for pair in links(self.gpus)],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inventory:
    """One node. Amounts as in ``resources``: cpu in milli-cores, all else in whole units."""

    capacity: Amounts
    allocatable: Amounts
    devices: Devices = Devices()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def node_status(self) -> Manifest:
        """The part of a Node's status that its agent decides about."""
        return {
            "capacity": format_amounts(self.capacity),
            "allocatable": format_amounts(self.allocatable),
            "nodeInfo": {
                "architecture": _architecture(),
                "operatingSystem": "linux",
                "kernelVersion": platform.release(),
                "containerRuntimeVersion": "process://1",
            },
        }


@dataclass(frozen=True, slots=True)
class Reserve:
    """What is kept from the pods, and how many of them there may be."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    pods: int = 110


def find_inventory(reserve: Reserve, storage: Path, file: Path | None, sys_root: Path = Path("/")) -> Inventory:
    """The inventory of this machine; what ``file`` declares stands in for what the machine shows.

    Raises declared.InventoryError when the file cannot be read or is wrong.
    """
    given = declared.read(file) if file else declared.Declared()
    devices = _devices(given, find_cpus(sys_root), sys_root)
    gpus = devices.gpus
    disk = os.statvfs(storage)
    real: Amounts = {"cpu": len(find_cpus(sys_root)) * 1000, "memory": find_memory_bytes(sys_root)}
    capacity: Amounts = {
        "cpu": given.cpu_milli or real["cpu"],
        "memory": given.memory_bytes or real["memory"],
        "ephemeral-storage": disk.f_blocks * disk.f_frsize,
        "pods": given.pods or reserve.pods,
        **given.resources,
    }
    labels = {"kubernetes.io/arch": _architecture(), "kubernetes.io/os": "linux"}
    if gpus:
        capacity |= _gpu_amounts(gpus)
        labels["nvidia.com/gpu.product"] = gpus[0].model.replace(" ", "-")
        labels["nvidia.com/gpu.count"] = str(len(gpus))
        labels["nvidia.com/gpu.memory"] = str(gpus[0].memory_bytes >> 20)
    allocatable = dict(capacity)
    allocatable["cpu"] = max(0, capacity["cpu"] - reserve.cpu_milli)
    allocatable["memory"] = max(0, capacity["memory"] - reserve.memory_bytes)
    return Inventory(capacity, allocatable, devices, labels, _unlimited(capacity, real))


def find_devices(file: Path | None, sys_root: Path = Path("/")) -> Devices:
    """The devices of this machine, with all CPUs that are online, or those that ``file`` declares.

    Raises declared.InventoryError when the file cannot be read or is wrong.
    """
    return _devices(declared.read(file) if file else declared.Declared(), online_cpus(sys_root), sys_root)


def _devices(given: declared.Declared, cpus: Collection[int], sys_root: Path) -> Devices:
    gpus = given.gpus if given.gpus is not None else nvml.find_gpus(sys_root)
    numa = given.numa or find_numa(cpus, sys_root)
    return Devices(
        tuple(replace(one, gpus=tuple(gpu.index for gpu in gpus if gpu.numa == one.index)) for one in numa), gpus
    )


def _unlimited(capacity: Amounts, real: Amounts) -> dict[str, str]:
    """No limit of use for what a file says that there is more of than there is: of that, use tells nothing."""
    unmeasured = {name: 0 for name in sorted(real) if capacity[name] > real[name]}
    return {USAGE_THRESHOLDS: json.dumps({"usageThresholds": unmeasured})} if unmeasured else {}


def _gpu_amounts(gpus: tuple[Gpu, ...]) -> Amounts:
    """Whole GPUs, and the instances of those that are split."""
    whole = sum(one.mig is None for one in gpus)
    instances = Counter(instance.profile for one in gpus for instance in one.mig or ())
    amounts: Amounts = {GPU_RESOURCE: whole} if whole else {}
    return amounts | {f"{MIG_RESOURCE}{profile}": count for profile, count in sorted(instances.items())}


def links(gpus: tuple[Gpu, ...]) -> list[tuple[int, int]]:
    """The pairs of GPUs that NVLink connects, each once, ascending."""
    return sorted({(min(gpu.index, peer), max(gpu.index, peer)) for gpu in gpus for peer in gpu.nvlink})


def _architecture() -> str:
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
