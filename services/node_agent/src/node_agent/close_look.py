"""The looks at a node by which its rules are kept: every second, and at once when online pods begin to use more."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kube import Manifest
from node_agent.domain.colocation.bursts import any_raised
from node_agent.domain.colocation.disturbances import LEAST_USE
from node_agent.domain.colocation.groups import Group, Tier
from node_agent.domain.colocation.node_slo import NodeSlo
from node_agent.domain.colocation.pods import NodePod
from node_agent.domain.colocation.samples import Sample, Stall, Use
from node_agent.domain.usage import Consumption
from node_agent.inventory.processors import online_cpus
from node_agent.layouts import Layout
from node_agent.runtime.cycle_counters import CycleCounters
from node_agent.runtime.machine_use import machine_use
from node_agent.runtime.task_stretches import TaskStretches
from node_agent.runtime.task_waits import TaskWaits
from node_agent.runtime.use_files import UseFiles
from resources import format_amounts

MEMORY_EVERY = 5
"""In looks: memory of pods changes slowly, and costs more to read than all else."""
LEAST_INSTRUCTIONS = 10_000_000
"""Of a pod between two looks: what does less is awake for moments, and spends most of them on filling its caches."""
LEAST_WAITS = 50
"""The same where no cycles are counted: what waits less often says little of how long it computes at a time."""
SHORTEST_MS, LONGEST_MS = 50, 10_000
"""Two looks that are closer say nothing of what was used between them; two that are farther apart nothing of now."""


@dataclass(slots=True)
class _Before:
    """What the last look saw, by folder."""

    at: int = 0
    node_ns: int = 0
    cpu_ns: dict[str, int] = field(default_factory=dict)
    throttled: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    stalls: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    cycles: dict[str, tuple[int, int]] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)


class CloseLook:
    """Looks at the groups of ``layout``, of which ``files`` tell."""

    def __init__(self, layout: Layout, files: UseFiles) -> None:
        self._layout, self._files, self._waits = layout, files, TaskWaits()
        self._counters, self._stretches = CycleCounters(files.perf, online_cpus()), TaskStretches()
        self._before = _Before()
        self._memory: dict[str, int] = {}
        self._looks = 0
        self.sample: Sample | None = None
        """The newest one."""

    def look(self, pods: Mapping[str, NodePod], slo: NodeSlo, now: int) -> Sample | None:
        """What was used since the look before; None at the first one, and when they are too close."""
        before, seen = self._before, machine_use()
        passed = now - before.at
        if before.at and 0 <= passed < SHORTEST_MS:
            return None
        after, memory = self._see(pods, slo, now, seen.cpu_ns)
        self._before, self._looks = after, self._looks + 1
        if self._looks % MEMORY_EVERY == 0:  # all that is read was read since
            self._files.forget_others()
        if not before.at or not 0 < passed <= LONGEST_MS:  # the first look, or the clock has jumped
            return None
        self.sample = _sample(before, after, seen, memory, set(pods))
        return self.sample

    def begin(self, pods: Mapping[str, NodePod], slo: NodeSlo, now: int) -> None:
        """Let the next look tell of what is used from now on."""
        self._before, _ = self._see(pods, slo, now, machine_use().cpu_ns)

    def _see(self, pods: Mapping[str, NodePod], slo: NodeSlo, now: int, node_ns: int) -> tuple[_Before, dict[str, int]]:
        before, after = self._before, _Before(now, node_ns)
        folders = {uid: folder for uid, pod in pods.items() if (folder := self._layout.folder(pod.group)) is not None}
        folders |= {one.name: self._layout.program(one.group) for one in slo.host_applications}
        after.cpu_ns = {key: used for key, path in folders.items() if (used := self._files.cpu_ns(path)) is not None}
        memory = self._read_memory({key: path for key, path in folders.items() if key in after.cpu_ns})
        after.throttled = self._throttled(pods, slo)
        after.stalls = self._stalls(pods, folders)
        watched = _watched(pods, slo, folders)
        counted = self._counters.counted([folders[uid] for uid in watched])
        after.cycles = {uid: counted[folders[uid]] for uid in watched if folders[uid] in counted}
        if self._counters.missing:
            after.waits = self._own_waits(pods, [uid for uid in watched if _works(uid, before, after)])
        return after, memory

    def online_ns(self) -> int | None:
        """CPU time of all pods but best effort's; None where it cannot be read as one."""
        whole, best_effort = (self._layout.folder(Group(tier)) for tier in (Tier.GUARANTEED, Tier.BEST_EFFORT))
        if whole is None or best_effort is None:
            return None
        used, lent = self._files.cpu_ns(whole), self._files.cpu_ns(best_effort)
        return None if used is None or lent is None else used - lent

    def _read_memory(self, folders: Mapping[str, str]) -> dict[str, int]:
        if self._looks % MEMORY_EVERY == 0 or folders.keys() - self._memory.keys():
            self._memory = {key: self._files.memory_bytes(path) or 0 for key, path in folders.items()}
        return {key: amount for key, amount in self._memory.items() if key in folders}

    def _throttled(self, pods: Mapping[str, NodePod], slo: NodeSlo) -> dict[tuple[str, str], tuple[int, int]]:
        """By container; read only where something follows from it."""
        if not (slo.thresholds.enabled or any_raised(pods.values(), slo.burst)):
            return {}
        return {
            (pod.uid, one.name): self._files.throttled(folder)
            for pod in pods.values()
            if pod.online
            for one in pod.containers
            if one.limits.quota_us is not None and (folder := self._layout.folder(pod.group.of(one.name))) is not None
        }

    def _stalls(self, pods: Mapping[str, NodePod], folders: Mapping[str, str]) -> dict[str, tuple[int, int, int]]:
        """For how long pods waited for CPU, memory and disks since they were seen first; without PSI by group for CPU alone."""
        if self._files.counts_stalls:
            kinds = ("cpu", "memory", "io")
            cpu, memory, io = (
                {uid: self._files.stall_us(folders[uid], kind) for uid in pods if uid in folders} for kind in kinds
            )
            return {uid: (cpu[uid], memory[uid], io[uid]) for uid in cpu}
        self._waits.begin()
        return {
            uid: (self._waits.waited_us(uid, self._processes(pod)), 0, 0)
            for uid, pod in pods.items()
            if pod.online and uid in folders
        }

    def _own_waits(self, pods: Mapping[str, NodePod], watched: list[str]) -> dict[str, int]:
        self._stretches.begin()
        found = {uid: self._stretches.waits(uid, self._processes(pods[uid])) for uid in watched}
        return {uid: count for uid, count in found.items() if count is not None}

    def _processes(self, pod: NodePod) -> Iterator[int]:
        for one in pod.containers:
            folder = self._layout.folder(pod.group.of(one.name))
            if folder is not None:
                yield from self._files.processes(folder)


def _watched(pods: Mapping[str, NodePod], slo: NodeSlo, folders: Mapping[str, str]) -> list[str]:
    """The online pods, while there is best effort beside them; those with CPUs of their own first."""
    if not slo.thresholds.enabled or all(pod.online for pod in pods.values()):
        return []
    online = [uid for uid, pod in pods.items() if pod.online and uid in folders]
    return sorted(online, key=lambda uid: (not pods[uid].pinned, -pods[uid].priority, uid))


def _works(uid: str, before: _Before, after: _Before) -> bool:
    """Whether a pod has used enough since the look before to be worth another one at its tasks."""
    used_ns = after.cpu_ns.get(uid, 0) - before.cpu_ns.get(uid, 0)
    return used_ns >= LEAST_USE * 1000 * (after.at - before.at)


def programs_used(slo: NodeSlo, sample: Sample | None) -> list[Manifest]:
    """What programs of the node that are no pods used by ``sample``, as a NodeMetric tells it."""
    return [
        {
            "name": one.name,
            "qos": one.qos.value,
            "priority": one.priority,
            "usage": {"resources": format_amounts({"cpu": use.cpu_milli, "memory": use.memory_bytes})},
        }
        for one in slo.host_applications
        if sample is not None and (use := sample.host_applications.get(one.name)) is not None
    ]


def _sample(before: _Before, after: _Before, seen: Consumption, memory: Mapping[str, int], pods: set[str]) -> Sample:
    passed_ms = after.at - before.at
    node = Use(max(0, after.node_ns - before.node_ns) // (passed_ms * 1000), seen.memory_bytes)
    # A group that was not there before used all of its time since.
    used = {
        key: Use(max(0, spent - before.cpu_ns.get(key, 0)) // (passed_ms * 1000), memory.get(key, 0))
        for key, spent in after.cpu_ns.items()
    }
    met = {key: part for key in after.throttled if (part := _met(before.throttled.get(key), after.throttled[key]))}
    quota: dict[str, int] = {}
    for (uid, _), part in met.items():
        quota[uid] = max(part, quota.get(uid, 0))
    stalls = {
        uid: _stall(before.stalls[uid], now, passed_ms)._replace(
            quota=quota.get(uid, 0),
            cpi=_cpi(before.cycles.get(uid), after.cycles.get(uid)),
            stretch=_stretch(uid, before, after),
        )
        for uid, now in after.stalls.items()
        if uid in before.stalls
    }
    return Sample(
        after.at,
        node,
        {key: use for key, use in used.items() if key in pods},
        {key: use for key, use in used.items() if key not in pods},
        frozenset(met),
        stalls,
        passed_ms,
    )


def _stall(before: tuple[int, int, int], after: tuple[int, int, int], passed_ms: int) -> Stall:
    """From microseconds over some milliseconds: thousandths."""
    # A group that was made anew has begun to count anew.
    cpu, memory, io = (max(0, new - old) // passed_ms for new, old in zip(after, before, strict=True))
    return Stall(cpu, memory, io)


def _cpi(before: tuple[int, int] | None, after: tuple[int, int] | None) -> int:
    """Cycles for each thousand instructions since; 0 where too little was done to tell."""
    if before is None or after is None:
        return 0
    cycles, instructions = after[0] - before[0], after[1] - before[1]
    return 0 if cycles < 0 or instructions < LEAST_INSTRUCTIONS else cycles * 1000 // instructions


def _stretch(uid: str, before: _Before, after: _Before) -> int:
    """Microseconds of CPU for each wait since; 0 where there were too few to tell."""
    if uid not in before.waits or uid not in after.waits or uid not in before.cpu_ns or uid not in after.cpu_ns:
        return 0
    used, waits = after.cpu_ns[uid] - before.cpu_ns[uid], after.waits[uid] - before.waits[uid]
    return 0 if used < 0 or waits < LEAST_WAITS else used // waits // 1000


def _met(before: tuple[int, int] | None, after: tuple[int, int]) -> int:
    """The part of the periods since, in thousandths, in which a quota was met; 1 at least where it was met at all."""
    if before is None or after[0] <= before[0]:
        return 0
    return max(1, (after[0] - before[0]) * 1000 // max(1, after[1] - before[1]))
