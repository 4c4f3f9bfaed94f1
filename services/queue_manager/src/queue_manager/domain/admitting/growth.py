"""More quota for groups that have members beyond what they were given quota for: one member after the other, as far as it goes."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from kube import Key
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.members.demand import Demand, Tally
from queue_manager.domain.members.members import GROUP, Place
from queue_manager.domain.quotas.cluster_queue import Quotas
from queue_manager.domain.quotas.grant import Admission
from queue_manager.domain.workloads.workload import Workload
from resources import Amounts, add


@dataclass(slots=True)
class Growth:
    """``waiting`` have members for whom there was no quota."""

    books: CohortBooks
    demand: Demand
    waiting: dict[Key, None] = field(default_factory=dict)

    def look(self, key: Key) -> None:
        """The members of a group, or what it was given, changed."""
        if key.kind != GROUP:
            return
        self.waiting.pop(key, None)
        workload, admission = self.books.workloads.get(key), self.books.held.get(key)
        if workload is None or admission is None or workload.revoked or workload.deleting:
            return
        if any(admission.amounts.get(name, amount) < amount for name, amount in workload.shape.requests):
            self.waiting[key] = None
            self.books.touch(admission.cluster_queue, freed=False)

    def decide(self, names: AbstractSet[str], busy: AbstractSet[Key]) -> Iterator[tuple[Workload, Admission]]:
        """Who of the ClusterQueues ``names`` is given how much in all. It is taken from the tree at once."""
        books = self.books
        known = [books.workloads[key] for key in self.waiting if key in books.workloads]
        for workload in sorted(known, key=lambda one: one.order):
            key = workload.key
            admission, tally = books.held.get(key), self.demand.tallies.get(key)
            if admission is None or tally is None or admission.cluster_queue not in names:
                continue
            if key in busy or key in books.assumed or key in books.leaving:
                continue
            grown = self._grown(admission, tally)
            if grown.amounts != admission.amounts:
                books.grow(key, grown)
                yield workload, grown

    def _grown(self, admission: Admission, tally: Tally) -> Admission:
        node = self.books.tree.queues[admission.cluster_queue]
        amounts, need = dict(admission.amounts), dict(tally.bound)
        for key in sorted(tally.members):
            member = tally.members[key]
            if member.place is not Place.PENDING:
                continue
            need = add(need, member.request)
            extra = _beyond(need, amounts, admission)
            if any(amount > node.available(place) for place, amount in extra.items()):
                break
            node.move(extra, 1)
            for (_, name), amount in extra.items():
                amounts[name] += amount
        return replace(admission, amounts=amounts)


def _beyond(need: Amounts, amounts: Amounts, admission: Admission) -> Quotas:
    """What of ``need`` is more than ``amounts``, by flavor and resource."""
    over = {name: need.get(name, 0) - amount for name, amount in amounts.items()}
    return {(admission.flavors[name], name): amount for name, amount in over.items() if amount > 0}
