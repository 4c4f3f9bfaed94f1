"""Parts of the last-level cache and of the memory bandwidth, for hardware that shares them out (resctrl).

Three groups: LSR for pods with CPUs of their own, LS, and BE. A part of the cache is a run of ways: percents become bits,
from the lowest on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from node_agent.domain.colocation.machine import CacheHardware, Machine
from node_agent.domain.colocation.node_slo import NodeSlo, Qos, Resctrl
from node_agent.domain.colocation.pods import NodePod

GROUPS = {Qos.LSE: "LSR", Qos.LSR: "LSR", Qos.LS: "LS", Qos.BE: "BE"}
AMD_UNLIMITED, AMD_SCALE = 2048, 160


@dataclass(frozen=True, slots=True)
class Schemata:
    """The lines of ``schemata`` by group, and the pods (uids) whose tasks belong to each."""

    lines: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]


NOTHING = Schemata({}, {})


def cache_groups(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> Schemata:
    """The groups that the rules ask for; nothing where the hardware shares nothing out, or no class has rules."""
    hardware = machine.cache
    rules = {name: slo.of(qos).resctrl for qos, name in GROUPS.items()}
    if hardware is None or not any(rules.values()):
        return NOTHING
    members: dict[str, list[str]] = {name: [] for name in rules}
    for pod in pods:
        if pod.qos in GROUPS:
            members[GROUPS[pod.qos]].append(pod.uid)
    return Schemata(
        {name: _lines(rule or Resctrl(), hardware) for name, rule in rules.items()},
        {name: tuple(sorted(uids)) for name, uids in members.items()},
    )


def cache_mask(ways_mask: int, start_percent: int, end_percent: int) -> int:
    """The ways from ``start_percent`` to ``end_percent``, one at least: the kernel refuses an empty mask."""
    ways = ways_mask.bit_length()
    first, last = -(-ways * start_percent // 100), -(-ways * end_percent // 100)
    first = min(first, ways - 1)
    last = max(last, first + 1)
    return (1 << last) - (1 << first)


def _lines(rule: Resctrl, hardware: CacheHardware) -> tuple[str, ...]:
    mask = cache_mask(hardware.ways_mask, rule.cache_start_percent, rule.cache_end_percent)
    lines = ["L3:" + ";".join(f"{cache}={mask:x}" for cache in hardware.caches)]
    if hardware.bandwidth:
        amount = _bandwidth(rule.bandwidth_percent, hardware.amd)
        lines.append("MB:" + ";".join(f"{cache}={amount}" for cache in hardware.caches))
    return tuple(lines)


def _bandwidth(percent: int, amd: bool) -> int:
    """AMD counts eighths of GB/s and has a number for no limit; Intel counts percents in tens."""
    percent = max(1, min(100, percent))
    if amd:
        return AMD_UNLIMITED if percent == 100 else AMD_SCALE * percent // 100
    return -(-percent // 10) * 10
