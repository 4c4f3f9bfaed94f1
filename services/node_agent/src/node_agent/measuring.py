"""What pods and the node use: CPU time between two looks, memory at the second."""

import os
from collections.abc import Iterable
from pathlib import Path

from node_agent.pod_worker import PodWorker
from node_agent.ports import UsageSample
from node_agent.runtime.cgroups import Cgroups
from node_agent.runtime.processes import CLOCK_TICK_NS, all_processes

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NODE = ""


class UsageMeter:
    """Remembers the last look at each pod."""

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups
        self._seen: dict[str, tuple[int, int]] = {}

    def measure(self, workers: Iterable[PodWorker], now: int) -> tuple[UsageSample, ...]:
        """A sample of the node and of each pod that runs; a pod's first look gives its average since it was taken up."""
        running = [worker for worker in workers if worker.record.alive]
        used = {_NODE: _node_use(), **self._pods_use(running)}
        accepted = {worker.uid: worker.record.accepted_at for worker in running}
        samples = [self._sample(uid, now, accepted.get(uid), *used[uid]) for uid in used]
        self._seen = {uid: (now, used[uid][0]) for uid in used}
        return tuple(sample for sample in samples if sample is not None)

    def _sample(
        self, uid: str, now: int, accepted_at: int | None, cpu_ns: int, memory_bytes: int
    ) -> UsageSample | None:
        since, before = self._seen.get(uid, (accepted_at, 0))
        if since is None or now <= since:
            return None
        return UsageSample(uid, now, max(0, cpu_ns - before) // ((now - since) * 1000), memory_bytes)

    def _pods_use(self, workers: list[PodWorker]) -> dict[str, tuple[int, int]]:
        used: dict[str, tuple[int, int]] = {}
        for worker in workers:
            found = self._cgroups.consumption(worker.uid)
            if found is not None:
                used[worker.uid] = (found.cpu_ns, found.memory_bytes)
        rest = [worker for worker in workers if worker.uid not in used]
        return used | (_by_process(rest) if rest else {})


def _by_process(workers: list[PodWorker]) -> dict[str, tuple[int, int]]:
    """Use by adding up the processes of the pods' sessions: what ended between two looks is missed."""
    owner = {
        state.process.pid: worker.uid
        for worker in workers
        for state in worker.record.containers.values()
        if state.process is not None
    }
    used = {worker.uid: (0, 0) for worker in workers}
    for found in all_processes():
        uid = owner.get(found.session)
        if uid is not None:
            cpu, memory = used[uid]
            used[uid] = (cpu + found.cpu_ticks * CLOCK_TICK_NS, memory + found.memory_pages * _PAGE_BYTES)
    return used


def _node_use() -> tuple[int, int]:
    """CPU time since boot (all but idle and waiting for disks) and memory that is in use and cannot be taken back."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    return (user + nice + system + irq + softirq) * CLOCK_TICK_NS, total - available
