"""More pods for batch Jobs that are elastic and ask for more than they run with: one after the other, as far as quota goes.

Source: Kueue's elastic jobs (annotation ``kueue.x-k8s.io/elastic-job``). A Job never runs with more pods than it has quota
for: what it asks for beyond is kept in an annotation until then.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from kube import Decision, Key
from queue_manager.domain.admitting.workload_decisions import job_grown
from queue_manager.domain.admitting.workload_sources import WorkloadSources
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.quotas.cluster_queue import Quotas
from queue_manager.domain.quotas.grant import Admission, SetGrant
from queue_manager.domain.workloads.job_workload import ELASTIC, JOB, wanted_parallelism


@dataclass(slots=True)
class ElasticJobs:
    """``waiting`` run with fewer pods than they ask for."""

    books: CohortBooks
    sources: WorkloadSources
    waiting: dict[Key, None] = field(default_factory=dict)

    def look(self, key: Key) -> None:
        """The Job, or what it was given, changed."""
        if key.kind != JOB:
            return
        self.waiting.pop(key, None)
        item, admission = self.sources.items.get(key), self.books.held.get(key)
        if item is None or admission is None or item.annotations.get(ELASTIC) != "true":
            return
        if _size(admission) < wanted_parallelism(item):
            self.waiting[key] = None
            self.books.touch(admission.cluster_queue, freed=False)

    def decide(self, names: AbstractSet[str], busy: AbstractSet[Key]) -> Iterator[Decision]:
        """Who of the ClusterQueues ``names`` runs with more pods now. The quota is taken from the tree at once."""
        books = self.books
        known = [books.workloads[key] for key in self.waiting if key in books.workloads]
        for workload in sorted(known, key=lambda one: one.order):
            key = workload.key
            admission, item = books.held.get(key), self.sources.items.get(key)
            if admission is None or item is None or admission.cluster_queue not in names or not workload.let_in:
                continue
            if key in busy or key in books.assumed or key in books.leaving or not admission.sets:
                continue
            more = self._grown(admission, wanted_parallelism(item))
            if more != admission:
                books.grow(key, more)
                yield job_grown(workload, item, more)

    def _grown(self, admission: Admission, wanted: int) -> Admission:
        node = self.books.tree.queues[admission.cluster_queue]
        part = admission.sets[0]
        flavors = dict(part.flavors)
        one: Quotas = {(flavors[name], name): amount // part.size for name, amount in part.amounts}
        size = part.size
        while size < wanted and all(amount <= node.available(place) for place, amount in one.items()):
            node.move(one, 1)
            size += 1
        amounts = tuple((name, amount // part.size * size) for name, amount in part.amounts)
        return replace(admission, sets=(SetGrant(part.name, size, part.flavors, amounts),), amounts=dict(amounts))


def _size(admission: Admission) -> int:
    return sum(item.size for item in admission.sets)
