"""Who is given quota: rounds in which the first of every ClusterQueue of one tree compete.

In each round the head of every queue is judged; then the heads are served in order, each against what those before it have
taken. Classical order: who borrows least far up goes first, then priority, age, name. Fair order: at every cohort, from
below, the child with the smaller share after admission wins, those who do not borrow before those who do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from kube import Key
from queue_manager.domain.admitting.topology_gate import TopologyGate
from queue_manager.domain.admitting.victims import VictimSearch
from queue_manager.domain.cohorts.candidates import Candidate
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import Node
from queue_manager.domain.cohorts.flavor_choice import Mode, Oracle, Prospect, Supplier, Verdict, choose
from queue_manager.domain.cohorts.queue_line import Order, QueueLine
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, FlavorResource, Quotas
from queue_manager.domain.workloads.work_parts import shortened, slack
from queue_manager.domain.workloads.workload import Workload


class Entry(NamedTuple):
    """The head of a queue in a round, and the quota that would do for it."""

    workload: Workload
    queue: ClusterQueue
    node: Node
    line: QueueLine
    verdict: Verdict
    usage: Quotas
    victims: tuple[Candidate, ...] = ()
    """Who has to go before it can have the quota."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What is granted is taken from the trees of ``books`` at once."""

    books: CohortBooks
    gate: TopologyGate
    fair: bool
    resting: dict[str, None]
    """The queues whose head, or whose victims, were busy."""
    idle: AbstractSet[Key] = frozenset()
    """Those of whom nothing is to be decided for a while, though no decision is on its way: they stop nobody."""
    _passed: dict[Key, QueueLine] = field(default_factory=dict)

    def run(self, names: Sequence[str], busy: AbstractSet[Key]) -> Iterator[Entry]:
        """Everyone of the queues ``names``, all of one tree, who is given quota, in the order of admission.

        A queue whose head is ``busy`` rests: a decision about it is on its way.
        """
        while True:
            entries = [entry for name in names if (entry := self._nominate(name, busy))]
            if not entries:
                return
            for entry in self._ordered(entries):
                settled = self._settle(entry, busy)
                if settled is not None:
                    yield settled

    def _settle(self, entry: Entry, busy: AbstractSet[Key]) -> Entry | None:
        """The entry with quota taken for it, if there still is any after those who were before it."""
        if not self._fits(entry):
            found = (
                self._search(entry.workload, entry.queue, entry.node, entry.verdict, busy).find()
                if entry.victims
                else []
            )
            if not found:
                return None
            entry = entry._replace(victims=tuple(found))
        else:
            entry = entry._replace(victims=()) if entry.victims else entry
        without = {victim.workload.key for victim in entry.victims}
        self.gate.keep(entry.workload.key, entry.verdict.podsets(entry.workload.shape), entry.verdict.flavors, without)
        entry.node.move(entry.usage, 1)
        entry.line.drop(entry.workload.key)
        return entry

    def _fits(self, entry: Entry) -> bool:
        if not all(entry.node.available(place) >= amount for place, amount in entry.usage.items()):
            return False
        return self.gate.fits(entry.verdict.podsets(entry.workload.shape), entry.verdict.flavors)

    def _search(
        self, head: Workload, queue: ClusterQueue, node: Node, verdict: Verdict, busy: AbstractSet[Key]
    ) -> VictimSearch:
        def roomy(without: AbstractSet[Key]) -> bool:
            return self.gate.fits(verdict.podsets(head.shape), verdict.flavors, without)

        return VictimSearch(self.books, head, queue, node, verdict.usage(head.shape), self.fair, busy, roomy)

    def _nominate(self, name: str, busy: AbstractSet[Key]) -> Entry | None:
        """The first of the queue for whom there is quota; who is before it is marked as failed."""
        books = self.books
        line, queue, node = books.lines[name], books.queues[name], books.tree.queues[name]
        while (head := line.head()) is not None:
            if head.key in self.idle:
                self._pass_over(head, line)
                continue
            if head.key in busy:
                self.resting[name] = None
                return None
            found, verdict = self._judge(head, queue, node, line, busy)
            if found is not None:
                return found
            if name in self.resting:
                return None
            line.fail(head.shape, verdict)
        return None

    def _pass_over(self, head: Workload, line: QueueLine) -> None:
        self._passed[head.key] = line
        line.drop(head.key)

    def put_back(self) -> None:
        """Those who were passed over have their old places again."""
        for key, line in self._passed.items():
            line.put(self.books.workloads[key])
            self.resting[line.name] = None
        self._passed.clear()

    def _judge(
        self, head: Workload, queue: ClusterQueue, node: Node, line: QueueLine, busy: AbstractSet[Key]
    ) -> tuple[Entry | None, Verdict]:
        """How the head can have quota: whole, or as much of it as there is; and the verdict on the whole."""
        plan = self.books.plans.of(head.shape, queue, self.books.flavors)
        quick = plan.verdict(node) if plan is not None else None
        if plan is not None and quick is not None:
            return Entry(head, queue, node, line, quick, plan.usage), quick
        oracle = self._oracle(head, queue, node, busy)
        supplier = Supplier(queue, node, self.books.flavors, self.fair, oracle, self.gate.obstacle)

        def entry(counts: Sequence[int]) -> tuple[Entry | None, Verdict]:
            verdict = choose(head.shape, supplier, counts)
            usage = verdict.usage(head.shape)
            if verdict.mode is Mode.FIT:
                return Entry(head, queue, node, line, verdict, usage), verdict
            if verdict.mode < Mode.PREEMPT:
                return None, verdict
            search = self._search(head, queue, node, verdict, busy)
            victims = search.find()
            if search.skipped and not victims:
                self.resting[queue.name] = None
            made = Entry(head, queue, node, line, verdict, usage, tuple(victims)) if victims else None
            return made, verdict

        found, verdict = entry(())
        if found is None and slack(head.shape.sets) and queue.name not in self.resting:
            found = _largest(lambda left_out: entry(shortened(head.shape.sets, left_out))[0], slack(head.shape.sets))
        return found, verdict

    def _oracle(self, head: Workload, queue: ClusterQueue, node: Node, busy: AbstractSet[Key]) -> Oracle:
        """Where flavors are to be compared, who would have to go is looked up; else it matters only in the end."""

        def ask(place: FlavorResource, amount: int) -> Prospect:
            victims = VictimSearch(
                self.books, head, queue, node, {place: amount}, self.fair, busy, lambda without: True
            ).find()
            for victim in victims:
                victim.remove()
            height = node.borrow_height(place, amount)
            for victim in reversed(victims):
                victim.put_back()
            if not victims:
                return Prospect(Mode.NO_CANDIDATES, height)
            own = any(victim.top is None for victim in victims)
            return Prospect(Mode.PREEMPT if own else Mode.RECLAIM, height)

        several = any(len(group.flavors) > 1 for group in queue.quota.groups)
        return ask if several else lambda place, amount: None

    def _ordered(self, entries: list[Entry]) -> Iterable[Entry]:
        if not self.fair:
            return sorted(entries, key=lambda entry: (entry.verdict.height, entry.workload.order))
        return self._tournaments(entries)

    def _tournaments(self, entries: list[Entry]) -> Iterator[Entry]:
        left = {id(entry): entry for entry in entries}
        while left:
            winner = _winner(list(left.values()))
            del left[id(winner)]
            yield winner


def _largest(attempt: Callable[[int], Entry | None], most: int) -> Entry | None:
    """The result for the fewest pods left out, searched by halves: if it fits, it fits with more left out, too."""
    low, high, found = 1, most, attempt(most)
    while found is not None and low < high:
        middle = (low + high) // 2
        made = attempt(middle)
        if made is None:
            low = middle + 1
        else:
            found, high = made, middle
    return found


def _winner(entries: Sequence[Entry]) -> Entry:
    """The winner at the root: level by level the best of each child, by the child's share after admission."""
    standing: dict[Node, tuple[Entry, Quotas]] = {entry.node: (entry, entry.usage) for entry in entries}
    while len(standing) > 1 or next(iter(standing)).parent is not None:
        lowest = min(_depth_key(node) for node in standing)
        above: dict[Node, list[tuple[tuple[bool, int, Order], Entry, Quotas]]] = {}
        rest: dict[Node, tuple[Entry, Quotas]] = {}
        for node, (entry, extra) in standing.items():
            if _depth_key(node) != lowest or node.parent is None:
                rest[node] = (entry, extra)
                continue
            key = (entry.verdict.height > 0, node.share(extra), entry.workload.order)
            above.setdefault(node.parent, []).append((key, entry, node.beyond(extra)))
        for parent, rivals in above.items():
            best = min(rivals, key=lambda rival: rival[0])
            rest[parent] = (best[1], best[2])
        standing = rest
    return next(iter(standing.values()))[0]


def _depth_key(node: Node) -> int:
    """Smaller for nodes further from the root."""
    return -sum(1 for _ in node.path())
