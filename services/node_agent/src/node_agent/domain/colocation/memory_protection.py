"""How memory is kept for those who asked for it: ``memory.min``, ``memory.low`` and ``memory.high`` (cgroup version 2).

min  = request × minLimitPercent
low  = max(request × lowLimitPercent, min)
high = request + (limit, or what the node can give, - request) × throttlingPercent, in whole pages

and from ``limit × wmarkRatio`` on it is taken back in the background, ``limit × wmarkScalePermill`` below that; the limit is the
lower of the container's own and ``high``.
"""

from collections.abc import Iterable
from typing import NamedTuple

from node_agent.domain.colocation.groups import MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN, UNLIMITED, Group, Tier
from node_agent.domain.colocation.machine import PAGE_BYTES, Machine
from node_agent.domain.colocation.node_slo import MemoryQos, NodeSlo, Qos, memory_of
from node_agent.domain.colocation.pods import MEMORY_QOS, ContainerNeed, NodePod


class Watermark(NamedTuple):
    """From how much memory on a group has to give some back, and by how much below that."""

    at_bytes: int
    down_by_bytes: int


Amount = tuple[int, int, int | None]
"""min, low, and high, which is None without a limit."""


def protections(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> dict[Group, dict[str, str]]:
    """The files of containers, their sums for pods, and the sums of these for tiers: the kernel shares out top down."""
    found: dict[Group, dict[str, str]] = {}
    sums: dict[Tier, tuple[int, int]] = {}
    for pod in pods:
        rules = _rules(slo, pod)
        if not rules.enabled:
            found |= _system_limit(pod, machine)
            continue
        amounts = [_amount(one, rules, machine) for one in pod.containers]
        found |= {pod.group.of(one.name): _files(*amount) for one, amount in zip(pod.containers, amounts, strict=True)}
        least, low = sum(one[0] for one in amounts), sum(one[1] for one in amounts)
        highs = [one[2] for one in amounts]
        high = None if None in highs or not highs else sum(one or 0 for one in highs)
        found[pod.group] = _files(least, low, high)
        for tier in {pod.tier, Tier.GUARANTEED}:  # all pods are below the one that Guaranteed pods are directly in
            before = sums.get(tier, (0, 0))
            sums[tier] = (before[0] + least, before[1] + low)
    found |= {Group(tier): {MEMORY_MIN: str(least), MEMORY_LOW: str(low)} for tier, (least, low) in sums.items()}
    return found


def watermarks(slo: NodeSlo, machine: Machine, pods: Iterable[NodePod]) -> dict[Group, Watermark]:
    """Of containers that have a limit, where their rules say so."""
    found: dict[Group, Watermark] = {}
    for pod in pods:
        rules = _rules(slo, pod)
        if not rules.enabled or not 0 < rules.reclaim_percent < 100:
            continue
        for one in pod.containers:
            _, _, high = _amount(one, rules, machine)
            limits = [amount for amount in (one.limits.memory_bytes, high) if amount]
            if limits:
                part = min(limits) * max(0, rules.reclaim_permill) // 1000
                found[pod.group.of(one.name)] = Watermark(min(limits) * rules.reclaim_percent // 100, part)
    return found


def _rules(slo: NodeSlo, pod: NodePod) -> MemoryQos:
    """The rules of the pod's class, or its own: policy ``none`` is none, ``auto`` protects all that it asks for."""
    rules, word = slo.of(pod.qos).memory, pod.word(MEMORY_QOS)
    if not word:
        return rules
    policy = word.get("policy", "default")
    if policy == "none":
        return MemoryQos()
    if policy == "auto" and not rules.enabled:
        rules = MemoryQos(True, low_percent=100, throttling_percent=80, reclaim_percent=95, reclaim_permill=20)
    return memory_of(word, rules)


def _amount(container: ContainerNeed, rules: MemoryQos, machine: Machine) -> Amount:
    request = container.memory_request_bytes
    least = request * rules.min_percent // 100
    low = max(request * rules.low_percent // 100, least) if rules.low_percent > 0 else 0
    limit = container.limits.memory_bytes
    room = (limit if limit is not None else machine.allocatable.get("memory", 0)) - request
    high = (request + room * rules.throttling_percent // 100) // PAGE_BYTES * PAGE_BYTES
    return least, low, high if rules.throttling_percent > 0 and high > 0 else None


def _files(least: int, low: int, high: int | None) -> dict[str, str]:
    return {MEMORY_MIN: str(least), MEMORY_LOW: str(low), MEMORY_HIGH: UNLIMITED if high is None else str(high)}


def _system_limit(pod: NodePod, machine: Machine) -> dict[Group, dict[str, str]]:
    """A pod of the system that names no limit leaves the node the memory that it keeps for itself."""
    kept = machine.reserved.get("memory", 0)
    if pod.qos is not Qos.SYSTEM or pod.limits.memory_bytes is not None or not 0 < kept < machine.memory_bytes:
        return {}
    return {pod.group: {MEMORY_HIGH: str((machine.memory_bytes - kept) // PAGE_BYTES * PAGE_BYTES)}}
