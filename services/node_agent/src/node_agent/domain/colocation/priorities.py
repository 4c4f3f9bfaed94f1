"""Who runs first where the kernel has to choose: classes that run only where nobody else wants to, and disks."""

from collections.abc import Iterable, Mapping

from node_agent.domain.colocation.groups import CPU_IDLE, IO_MAX, IO_WEIGHT, UNLIMITED, Group, Tier
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.node_slo import Disk, NodeSlo, Qos, disks_of
from node_agent.domain.colocation.pods import BLKIO_QOS, NodePod

DEFAULT_WEIGHT = 100


def idle_groups(slo: NodeSlo, pods: Iterable[NodePod]) -> dict[Group, dict[str, str]]:
    """``cpu.idle``: of best effort's whole tier, since the kernel compares the tiers first; of other classes pod by pod.

    A group that is idle has no weight: the kernel refuses to set one.
    """
    found: dict[Group, dict[str, str]] = {}
    if slo.of(Qos.BE).idle:
        found[Group(Tier.BEST_EFFORT)] = {CPU_IDLE: "1"}
    for pod in pods:
        if pod.online and slo.of(pod.qos).idle and pod.qos is not Qos.LSE:
            found[pod.group] = {CPU_IDLE: "1"}
    return found


def disk_limits(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> dict[Group, dict[str, str]]:
    """``io.max`` and ``io.weight`` of best effort's tier, and of pods that say so themselves."""
    asked: list[tuple[Group, tuple[Disk, ...]]] = [(Group(Tier.BEST_EFFORT), slo.of(Qos.BE).disks)]
    asked += [(pod.group, disks_of(pod.word(BLKIO_QOS))) for pod in pods if pod.word(BLKIO_QOS)]
    return {group: files for group, disks in asked if (files := _files(disks, machine.disks))}


def _files(disks: tuple[Disk, ...], numbers: Mapping[str, str]) -> dict[str, str]:
    known = [(numbers[name], disk) for disk in disks if (name := disk.name.removeprefix("/dev/")) in numbers]
    limits = [f"{number} {_limits(disk)}" for number, disk in known]
    weights = [f"{number} {disk.weight_percent}" for number, disk in known if disk.weight_percent != DEFAULT_WEIGHT]
    files = {IO_MAX: "\n".join(limits)} if limits else {}
    return files | ({IO_WEIGHT: "\n".join([f"default {DEFAULT_WEIGHT}", *weights])} if weights else {})


def _limits(disk: Disk) -> str:
    amounts = {"rbps": disk.read_bps, "wbps": disk.write_bps, "riops": disk.read_iops, "wiops": disk.write_iops}
    return " ".join(f"{name}={amount or UNLIMITED}" for name, amount in amounts.items())
