"""The CPU quota, weight and memory limit of pods where a kubelet does not set them, or sets what does not fit.

A kubelet knows nothing of lent resources, nor of cores that do more than those that limits count; it holds pinned pods to a quota
that would only throttle them on CPUs of their own; and best effort that is held back as a whole by a quota needs none of each pod
beside it.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from kube.normalization import PLAIN_MILLI
from node_agent.domain.colocation.groups import (
    CPU_MAX,
    CPU_SHARES,
    CPU_WEIGHT,
    MEMORY_MAX,
    UNLIMITED,
    Group,
)
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.node_slo import BY_QUOTA, NodeSlo, Qos
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.limits import PERIOD_US, Limits


def cpu_max(quota_us: int | None) -> str:
    """The text of ``cpu.max``; None is without a limit."""
    return f"{UNLIMITED if quota_us is None else quota_us} {PERIOD_US}"


def memory_max(limit_bytes: int | None) -> str:
    """The text of ``memory.max``; None is without a limit."""
    return UNLIMITED if limit_bytes is None else str(limit_bytes)


@lru_cache(4096)
def as_asked(limits: Limits) -> Mapping[str, str]:
    """What a pod's or container's own limits say, as whoever starts it sets them."""
    return {
        CPU_WEIGHT: str(limits.weight),
        CPU_SHARES: str(limits.shares),
        CPU_MAX: cpu_max(limits.quota_us),
        MEMORY_MAX: memory_max(limits.memory_bytes),
    }


def limits_of(
    slo: NodeSlo, machine: Machine, pods: Iterable[NodePod], scaled: Mapping[Group, int]
) -> dict[Group, dict[str, str]]:
    """What is decided about weights, quotas and memory limits. ``scaled`` are quotas (µs) that bursts have raised."""
    free = slo.thresholds.enabled and slo.thresholds.policy in BY_QUOTA
    found: dict[Group, dict[str, str]] = {}
    bursting = {group.pod for group in scaled}
    for pod in pods:
        free_of_quota = pod.pinned or (free and not pod.online)
        is_slowed = pod.limits.core_milli != PLAIN_MILLI
        if not (pod.lent or free_of_quota or pod.uid in bursting or pod.qos is Qos.SYSTEM or is_slowed):
            continue
        members = [
            (pod.group, pod.limits, pod.lent),
            *((pod.group.of(one.name), one.limits, one.lent) for one in pod.containers),
        ]
        for group, limits, lent in members:
            files = dict(as_asked(limits)) if lent else {}
            if group in scaled:
                files[CPU_MAX] = cpu_max(scaled[group])
            elif free_of_quota:
                files[CPU_MAX] = cpu_max(None)
            elif is_slowed and limits.quota_us is not None:
                files[CPU_MAX] = cpu_max(limits.quota_us)
            elif pod.qos is Qos.SYSTEM and not group.container:
                files |= _system_quota(pod.limits, machine)
            if files:
                found[group] = files
    return found


def _system_quota(limits: Limits, machine: Machine) -> dict[str, str]:
    """A pod of the system that names no limit leaves the node the CPU that it keeps for itself."""
    kept = machine.reserved.get("cpu", 0)
    if limits.quota_us is not None or not 0 < kept < machine.cpu_milli:
        return {}
    return {CPU_MAX: cpu_max((machine.cpu_milli - kept) * PERIOD_US // 1000)}
