"""Measuring the pods that this agent runs."""

import os
from collections.abc import Iterable

from node_agent.domain.usage import (
    NODE,
    Consumption,
    Look,
    UsageSample,
    look,
    of_container,
    samples,
    with_only_containers,
)
from node_agent.pod_worker import PodWorker
from node_agent.runtime.cgroups import Cgroups
from node_agent.runtime.machine_use import machine_use
from node_agent.runtime.processes import CLOCK_TICK_NS, all_processes

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class UsageMeter:
    """Remembers the last look at each pod."""

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups
        self._before: Look | None = None

    def measure(self, workers: Iterable[PodWorker], now: int) -> tuple[UsageSample, ...]:
        """A sample of the node and of each pod that runs; a pod's first look gives its average since it was taken up."""
        running = [worker for worker in workers if worker.record.alive]
        used = {NODE: machine_use(), **self._pods_use(running)}
        found = samples(self._before, now, used, {worker.uid: worker.record.accepted_at for worker in running})
        self._before = look(now, used)
        names = {worker.uid: list(worker.record.containers) for worker in running}
        return with_only_containers(found, {uid: own[0] for uid, own in names.items() if len(own) == 1})

    def _pods_use(self, workers: list[PodWorker]) -> dict[str, Consumption]:
        used: dict[str, Consumption] = {}
        for worker in workers:
            found = self._cgroups.consumption(worker.preparation.group)
            if found is not None:
                used[worker.uid] = found
            if len(worker.record.containers) > 1:
                used |= self._containers_use(worker)
        rest = [worker for worker in workers if worker.uid not in used]
        return used | (_by_process(rest) if rest else {})

    def _containers_use(self, worker: PodWorker) -> dict[str, Consumption]:
        """Of containers that share a pod, where control groups tell them apart."""
        read = {name: self._cgroups.consumption(worker.preparation.group_of(name)) for name in worker.record.containers}
        return {of_container(worker.uid, name): one for name, one in read.items() if one is not None}


def _by_process(workers: list[PodWorker]) -> dict[str, Consumption]:
    """Use by adding up the processes of the pods' sessions: what ended between two looks is missed."""
    owner = {
        state.process.pid: worker.uid
        for worker in workers
        for state in worker.record.containers.values()
        if state.process is not None
    }
    used = {worker.uid: Consumption(0, 0) for worker in workers}
    for found in all_processes():
        uid = owner.get(found.session)
        if uid is not None:
            so_far = used[uid]
            used[uid] = Consumption(
                so_far.cpu_ns + found.cpu_ticks * CLOCK_TICK_NS, so_far.memory_bytes + found.memory_pages * _PAGE_BYTES
            )
    return used
