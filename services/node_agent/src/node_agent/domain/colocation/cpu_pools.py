"""Which CPUs are whose: those of pinned pods, those that online pods share, those that best effort may have.

Pods of the class SYSTEM run on the CPUs of the system where it has some; a pod with NUMA nodes on the shared CPUs of these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube.cpu_lists import format_cpus
from node_agent.domain.colocation.groups import CPU_SET, Group
from node_agent.domain.colocation.machine import Machine
from node_agent.domain.colocation.node_slo import Qos
from node_agent.domain.colocation.pods import NodePod


@dataclass(frozen=True, slots=True)
class CpuPools:
    """``shared`` by online pods without CPUs of their own, ``lent``: pinned, but best effort may run there too."""

    shared: frozenset[int]
    lent: frozenset[int]

    @property
    def best_effort(self) -> frozenset[int]:
        """All that best effort may ever have."""
        return self.shared | self.lent


def cpu_pools(machine: Machine, pods: Iterable[NodePod]) -> CpuPools:
    """The pools as the pinned pods leave them. A CPU that two pods were given is an exclusive one if one of them says so."""
    pinned = [pod for pod in pods if pod.pinned]
    exclusive = frozenset(cpu for pod in pinned if pod.qos is Qos.LSE for cpu in pod.cpus)
    lent = frozenset(cpu for pod in pinned if pod.qos is not Qos.LSE for cpu in pod.cpus) - exclusive
    free = machine.cpus - machine.closed_cpus
    return CpuPools(free - lent - exclusive, free & lent)


def pinnings(machine: Machine, pods: Iterable[NodePod], pools: CpuPools) -> Mapping[Group, Mapping[str, str]]:
    """The CPU sets of online pods and of their containers, as far as they are not all; best effort has that of its tier."""
    found: dict[Group, dict[str, str]] = {}
    for pod in pods:
        cpus = _cpus_of(pod, machine, pools)
        if not cpus or cpus == machine.cpus:
            continue
        files = {CPU_SET: format_cpus(cpus)}
        found[pod.group] = files
        found |= {pod.group.of(one.name): files for one in pod.containers}
    return found


def _cpus_of(pod: NodePod, machine: Machine, pools: CpuPools) -> frozenset[int]:
    if not pod.online:
        return frozenset()
    if pod.pinned:
        return frozenset(pod.cpus) & machine.cpus
    if pod.qos is Qos.SYSTEM and machine.system_cpus:
        return machine.system_cpus & machine.cpus
    if pod.numa_nodes:
        near = frozenset(one.cpu for one in machine.processors if one.numa in pod.numa_nodes)
        return (pools.shared & near) or pools.shared
    return pools.shared
