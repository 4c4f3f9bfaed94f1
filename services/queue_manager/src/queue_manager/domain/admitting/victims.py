"""Whose quota is taken back for a workload that finds none: Kueue's search, with and without fair sharing.

Those who leave for somebody else already count as gone. Candidates are removed on trial until the workload fits, then put
back from the last to the first wherever it still fits without them: so nobody goes in vain and none too many. The tree is
left as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.candidates import Candidate, below, child_of, left_over, over_below
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import Node
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Quotas
from queue_manager.domain.workloads.workload import Workload

IN_QUEUE, RECLAIM, FAIR = "InClusterQueue", "InCohortReclamation", "InCohortFairSharing"
RECLAIM_BORROWING = "InCohortReclaimWhileBorrowing"


@dataclass(slots=True)
class VictimSearch:
    """The search for one workload in ``queue`` that asks for ``usage``; ``busy`` cannot be chosen just now."""

    books: CohortBooks
    workload: Workload
    queue: ClusterQueue
    node: Node
    usage: Quotas
    fair: bool
    busy: AbstractSet[Key]
    roomy: Callable[[AbstractSet[Key]], bool]
    """Whether the workload finds a place in its topology when these workloads are gone."""
    skipped: bool = False
    """Whether somebody was passed over because of a decision on its way."""
    _short: list[tuple[str, str]] = field(default_factory=list)
    """Of what there is too little."""

    def find(self) -> list[Candidate]:
        """The victims; empty where nobody may be evicted, all together would leave too little, or nobody else has to go."""
        if self._in_vain():
            return []
        gone = self._gone()
        for node, usage in gone:
            node.move(usage, -1)
        self._short = [place for place, amount in self.usage.items() if amount > self.node.available(place)]
        if not self._short and not self.roomy(self.books.leaving.keys()):
            self._short = list(self.usage)
        found = self._search() if self._short else []
        for node, usage in reversed(gone):
            node.move(usage, 1)
        return found

    def _gone(self) -> list[tuple[Node, Quotas]]:
        """What those who are leaving give back in this tree, by ClusterQueue."""
        nodes, root = self.books.tree.queues, self.node.root
        departing = {name: holding.usage for name, holding in self.books.departing.items() if holding.keys}
        return [(nodes[name], usage) for name, usage in departing.items() if name in nodes and nodes[name].root is root]

    def _in_vain(self) -> bool:
        """Whether it can be told without looking at others: it may not borrow for what it has no quota of its own left.

        Then only those of its own queue might go, and there is none of lower priority. Nobody who is leaving is of its queue.
        """
        departing = self.books.departing.get(self.queue.name)
        if not self._only_own() or (departing is not None and departing.keys):
            return False
        self._short = list(self.usage)
        return not any(self._may_reclaim_at(place) for place in self._short) and not any(True for _ in self._own())

    def _only_own(self) -> bool:
        """Whether others have to go only as far as that brings the queue up to its own quota."""
        flat = self.node.parent is None or self.node.parent.parent is None
        return flat and not self.fair and self.queue.borrow_policy == "Never"

    def _may_reclaim_at(self, place: tuple[str, str]) -> bool:
        return self.node.usage.get(place, 0) < self.queue.quota.nominal.get(place, 0)

    def _search(self) -> list[Candidate]:
        reclaims = not self._only_own() or all(self._may_reclaim_at(place) for place in self._short)
        own, others = list(self._own()), list(self._others()) if reclaims else []
        candidates = sorted(own + others, key=lambda one: one.workload.order[2:])
        candidates.sort(key=_age, reverse=True)
        candidates.sort(key=lambda one: one.order)
        if not candidates:
            return []
        if self.fair:
            return self._fairly(candidates)
        for borrowing in self._attempts(others):
            victims = self._enough(candidates, borrowing)
            if victims:
                return victims
        return []

    def _attempts(self, others: list[Candidate]) -> tuple[bool, ...]:
        """Whether the workload may borrow once the victims are gone, in the order in which that is tried."""
        forbidden = self.queue.borrow_policy == "Never"
        nominal = self.queue.quota.nominal
        under = all(self.node.usage.get(place, 0) < nominal.get(place, 0) for place in self._short)
        if not others or (forbidden and not under):
            return (True,)
        if forbidden and not any(one.advantage for one in others):
            return False, True
        return True, False

    def _enough(self, candidates: list[Candidate], borrowing: bool) -> list[Candidate]:
        chosen: list[Candidate] = []
        # What is free grows by no more than what was given back: it need not be looked at before that is enough.
        missing = {place: self.usage[place] - self.node.available(place) for place in self._short}
        for candidate in candidates:
            if not self._may_go(candidate, borrowing):
                continue
            candidate.remove()
            chosen.append(candidate)
            for place in missing:
                missing[place] -= candidate.usage.get(place, 0)
            if max(missing.values()) <= 0 and self._fits(borrowing, chosen):
                break
        else:
            self._restore(chosen)
            return []
        return self._spare(chosen, lambda rest: self._fits(borrowing, rest))

    def _spare(self, chosen: list[Candidate], fits: Callable[[Sequence[Candidate]], bool]) -> list[Candidate]:
        """Put back who proves needless, the last first; those who go anyway stay chosen."""
        for candidate in chosen[-2::-1]:
            if candidate.leaving:
                continue
            candidate.put_back()
            rest = [one for one in chosen if one is not candidate]
            if fits(rest):
                chosen.remove(candidate)
            else:
                candidate.remove()
        self._restore(chosen)
        return chosen

    def _restore(self, chosen: list[Candidate]) -> None:
        for candidate in reversed(chosen):
            candidate.put_back()

    def _fits(self, borrowing: bool, gone: Sequence[Candidate]) -> bool:
        node = self.node
        for place, amount in self.usage.items():
            if amount > node.available(place) or (not borrowing and node.borrows(place, amount)):
                return False
        return self._has_place(gone)

    def _has_place(self, gone: Sequence[Candidate]) -> bool:
        return not self.workload.shape.podsets or self.roomy({*self.books.leaving, *(one.workload.key for one in gone)})

    def _may_go(self, candidate: Candidate, borrowing: bool) -> bool:
        """Whether it uses more than its side of the tree has, by now, unless it is of the same queue."""
        if candidate.top is None or candidate.leaving:
            return True
        if borrowing and not candidate.advantage and candidate.reason != RECLAIM_BORROWING:
            return False
        return all(self._is_over(node) for node in below(candidate.node, candidate.top))

    def _is_over(self, node: Node) -> bool:
        return any(node.borrows(place) for place in self._short)

    # --- who may have to go -------------------------------------------------------------------------------------

    def _own(self) -> Iterator[Candidate]:
        policy, priority = self.queue.within_queue, self.workload.shape.priority
        for workload, usage in self._users(self.queue.name):
            other = workload.shape.priority
            newer = other == priority and workload.order > self.workload.order
            lower = other < priority or (policy == "LowerOrNewerEqualPriority" and newer)
            if workload.revoked or (policy != "Never" and lower):
                yield Candidate(workload, self.node, usage, IN_QUEUE, leaving=workload.revoked)

    def _others(self) -> Iterator[Candidate]:
        """From the nearest cohort outwards, whoever uses more than its side has; with the preemptor's right to it."""
        policy = self.queue.reclaim
        if policy == "Never":
            return
        left, within = left_over(self.node, {place: self.usage[place] for place in self._short})
        before = self.node
        held = self.books.held
        revoking = {held[key].cluster_queue for key in self.books.revoked if key in held}
        for top in list(self.node.path())[1:]:
            for node, over in self._nodes_below(top, before, revoking):
                for workload, usage in self._users(node.name):
                    lower = workload.shape.priority < self.workload.shape.priority
                    if not (workload.revoked or policy == "Any" or (policy == "LowerPriority" and lower)):
                        continue
                    if workload.revoked or over:
                        reason = RECLAIM if within or not self._may_borrow(workload) else RECLAIM_BORROWING
                        yield Candidate(workload, node, usage, reason, top, within, workload.revoked)
            left, fits = left_over(top, left)
            within = within or fits
            before = top

    def _nodes_below(self, top: Node, without: Node, revoking: AbstractSet[str]) -> Iterator[tuple[Node, bool]]:
        """The ClusterQueues below ``top`` that use more than their side has (True), and those in which somebody goes anyway."""
        found = dict.fromkeys(over_below(top, without, self._short), True)
        for name in sorted(revoking):
            node = self.books.tree.queues.get(name)
            path = list(node.path()) if node is not None else []
            if node is not None and node not in found and top in path and without not in path:
                found[node] = False
        yield from found.items()

    def _users(self, name: str) -> Iterator[tuple[Workload, Quotas]]:
        """Who holds quota of what is short, and is not being decided about."""
        books = self.books
        for key in books.holdings[name].keys if name in books.holdings else ():
            if key in books.leaving:
                continue
            usage = books.held[key].usage
            if not any(usage.get(place) for place in self._short):
                continue
            if key in books.assumed or key in self.busy:
                self.skipped = True
                continue
            yield books.workloads[key], usage

    def _may_borrow(self, candidate: Workload) -> bool:
        """Whether the preemptor may itself borrow what it takes from the candidate."""
        if self.queue.borrow_policy == "Never":
            return False
        limit = self.workload.shape.priority
        if self.queue.borrow_threshold is not None and self.queue.borrow_threshold < limit:
            limit = self.queue.borrow_threshold + 1
        return candidate.shape.priority < limit

    # --- fair sharing -------------------------------------------------------------------------------------------

    def _fairly(self, candidates: list[Candidate]) -> list[Candidate]:
        """From the queue with the largest share, as long as that does not leave it with less than the preemptor has.

        First those whose queue still has at least the preemptor's share afterwards; then, if that is not enough, those
        whose queue has more than that now. A preemptor that stays within its own quota need not compare.
        """
        self.node.move(self.usage, 1)
        chosen: list[Candidate] = []
        within = not any(self.node.borrows(place) for place in self.usage)
        left = list(candidates)
        fits = self._take_fairly(left, chosen, lambda mine, before, after: within or mine <= after)
        fits = fits or self._take_fairly(left, chosen, lambda mine, before, after: mine < before)
        self.node.move(self.usage, -1)
        if not fits:
            self._restore(chosen)
            return []
        return self._spare(chosen, lambda rest: self._fits(True, rest))

    def _take_fairly(
        self, left: list[Candidate], chosen: list[Candidate], agrees: Callable[[int, int, int], bool]
    ) -> bool:
        passed: list[Candidate] = []
        while left:
            candidate = max(left, key=self._fair_order)
            left.remove(candidate)
            if candidate.top is not None and not self._agrees(candidate, agrees):
                passed.append(candidate)
                continue
            candidate.remove()
            chosen.append(candidate)
            # The preemptor's own usage is on the books already.
            if all(self.node.available(place) >= 0 for place in self.usage) and self._has_place(chosen):
                return True
        left.extend(passed)
        return False

    def _agrees(self, candidate: Candidate, agrees: Callable[[int, int, int], bool]) -> bool:
        assert candidate.top is not None
        if candidate.leaving:
            return True
        if not self._may_go(candidate, borrowing=False):
            return False
        mine, theirs = child_of(candidate.top, self.node), child_of(candidate.top, candidate.node)
        before, own = theirs.share(), mine.share()
        candidate.remove()
        after = theirs.share()
        candidate.put_back()
        return agrees(own, before, after)

    def _fair_order(self, candidate: Candidate) -> tuple[bool, int, int, tuple[str, str]]:
        top = candidate.top
        share = child_of(top, candidate.node).share() if top is not None else self.node.share()
        return candidate.leaving, share, -candidate.workload.shape.priority, _age(candidate)


def _age(candidate: Candidate) -> tuple[str, str]:
    """Who was given its quota last goes first, then the youngest; of those of one age the first by name, as Kueue has it."""
    workload = candidate.workload
    return workload.since or workload.order[1], workload.order[1]
