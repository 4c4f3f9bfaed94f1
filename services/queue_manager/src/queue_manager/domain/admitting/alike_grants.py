"""What workloads are given: worked out once for all of a queue that are alike, as most of them are."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kube import Manifest
from kube.words import counted
from queue_manager.domain.admitting.workload_decisions import grant_patch
from queue_manager.domain.admitting.workload_sources import WorkloadSources
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.flavor_choice import Verdict, admission_of
from queue_manager.domain.quotas.grant import Admission, SetGrant
from queue_manager.domain.workloads.job_workload import JOB
from queue_manager.domain.workloads.workload import Shape, Workload

Chosen = tuple[dict[str, str], tuple[SetGrant, ...], int]
"""Flavors, parts, and the second since the epoch in which they are given: it is written down with them."""

_KEPT = 4096
"""So many grants are remembered."""


class Grant(NamedTuple):
    """What is given, the change of annotations that says so, and the sentence."""

    admission: Admission
    patch: Manifest
    message: str


@dataclass(slots=True)
class AlikeGrants:
    """Remembers what the last workload of each shape was given in each queue, by which choice of flavors."""

    books: CohortBooks
    sources: WorkloadSources
    _known: dict[tuple[str, Shape], tuple[Chosen, Grant]] = field(default_factory=dict)

    def forget(self) -> None:
        """Queues or flavors are others now."""
        self._known.clear()

    def of(self, workload: Workload, queue: str, verdict: Verdict, now: int) -> Grant:
        """What a workload is given in ``queue`` by ``verdict``."""
        alike = workload.key.kind != JOB and workload.let_in
        chosen, place = (verdict.flavors, verdict.sets, now // 1000), (queue, workload.shape)
        known = self._known.get(place) if alike else None
        if known is not None and known[0] == chosen:
            return known[1]
        found = self._made(workload, queue, verdict, now)
        if alike:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[place] = (chosen, found)
        return found

    def _made(self, workload: Workload, queue: str, verdict: Verdict, now: int) -> Grant:
        shape, item = workload.shape, self.sources.items.get(workload.key)
        admission = admission_of(verdict, shape, self.books.queues[queue], self.books.flavors)
        chosen = ", ".join(f"{name} of flavor {flavor}" for name, flavor in sorted(admission.flavors.items()))
        message = f"ClusterQueue {queue} gives {chosen or 'leave'}"
        count = sum(part.size for part in admission.sets)
        if shape.sets and count < workload.size:
            message += f", for {count} of {counted(workload.size, 'pod')}"
        return Grant(admission, grant_patch(workload, item, admission, now), message)
