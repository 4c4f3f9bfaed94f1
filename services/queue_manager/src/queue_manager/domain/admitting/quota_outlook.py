"""When a workload that waits in a ClusterQueue gets its turn: whose end it waits for, and when that is expected.

Those who hold what it asks for are taken away in the order in which they should end, on a copy of the tree of quotas, until
there is enough for it. Only the first of a queue can be told a time: the others wait for those before them, too. It is left
out where more than ``MOST_HOLDERS`` hold such quota.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kube import Key, Manifest, Object
from kube.running_estimates import turn_after
from kube.words import NAMED, counted, some, verb
from queue_manager.domain.admitting.topology_gate import TopologyGate
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import Node, copy_tree
from queue_manager.domain.cohorts.flavor_choice import Mode, Prospect, Supplier, Verdict, WaitReason, choose
from queue_manager.domain.cohorts.queue_line import QueueLine
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, FlavorResource, Quotas
from queue_manager.domain.workloads.run_end import expected_end
from queue_manager.domain.workloads.work_parts import shortened, slack
from queue_manager.domain.workloads.workload import Shape, Workload

MOST_HOLDERS = 1_000
_NEVER = (WaitReason.TOO_LARGE, WaitReason.NO_FLAVOR)
"""Why somebody keeps nobody waiting who may pass it: it finds no quota whoever ends."""


class Holder(NamedTuple):
    """One who holds quota, in the copy of the tree. ``end`` is in milliseconds since the epoch; None when nobody knows."""

    key: Key
    node: Node
    usage: Quotas
    end: int | None

    @property
    def order(self) -> tuple[bool, int, str, str]:
        """The first to end first, and last of all those of whom it is not known."""
        return self.end is None, self.end or 0, self.key.namespace, self.key.name


@dataclass(frozen=True, slots=True)
class QuotaOutlook:
    """``items`` are the objects behind the workloads; ``now`` is in milliseconds since the epoch."""

    books: CohortBooks
    gate: TopologyGate
    items: Mapping[Key, Object]
    now: int

    def manifest(self, workload: Workload) -> Manifest:
        """``after``: who has to end first; ``behind``: who is before it; ``estimate``: when it starts. Empty outside of a line."""
        books, name = self.books, self.books.queue_of(workload)
        promise = books.promises.get(workload.key)
        if promise is not None:
            victims = sorted(promise.victims)
            return {"after": _names(victims), "estimate": f"once {_some(victims)} gave {_their(victims)} quota back"}
        line, queue = books.lines.get(name), books.queues.get(name)
        if books.renewed or line is None or queue is None or workload.key not in line.members:
            return {}
        before = _before(workload, line, queue)
        return self._behind(before, queue) if before else self._after(workload, queue)

    def _behind(self, before: Sequence[Workload], queue: ClusterQueue) -> Manifest:
        """It comes after others, of whom the first can be told a time."""
        keys = [one.key for one in before]
        first = self._after(before[0], queue)
        words = f"once {_some(keys)}, before it in ClusterQueue {queue.name}, had {_their(keys)} turn"
        words += "" if queue.strict else ", or earlier with quota that is too little for those"
        told = first.get("estimate") or first.get("outlook")
        return {
            "behind": _names(keys[:NAMED]),
            "behindCount": len(keys),
            "estimate": f"{words}; {keys[0].name}: {told}",
        }

    def _after(self, workload: Workload, queue: ClusterQueue) -> Manifest:
        """It is next in its queue: whose end it waits for."""
        nodes = copy_tree(self.books.tree.queues[queue.name].root)
        holders = self._holders(nodes, _places(workload.shape, queue))
        if len(holders) > MOST_HOLDERS:
            many = f"more than {counted(MOST_HOLDERS, 'workload')}"
            return {
                "outlook": f"not looked into here, as {many} {verb(MOST_HOLDERS, 'holds', 'hold')} what it asks for"
            }
        trial = Trial(workload, Supplier(queue, nodes[queue.name], self.books.flavors, oracle=_nobody), self.gate)
        awaited = trial.fewest(sorted(holders, key=lambda holder: holder.order))
        if awaited is None:
            return {
                "after": [],
                "estimate": "never as things are: not even if all who hold such quota now gave it back",
            }
        if not awaited:
            return {"after": [], "estimate": "there is quota for it already: as soon as those before it had their turn"}
        ends = [(holder.key.name, holder.end) for holder in awaited]
        return {"after": _names([holder.key for holder in awaited])} | turn_after(ends, awaited[-1].end)

    def _holders(self, nodes: Mapping[str, Node], places: frozenset[FlavorResource]) -> list[Holder]:
        """Who holds any of ``places`` in this tree, or is going to as others leave for it; no more than are looked at and one."""
        books, found = self.books, list[Holder]()
        held = (
            (key, name, books.held[key].usage)
            for name in nodes
            for key in (books.holdings[name].keys if name in books.holdings else ())
        )
        promised = ((key, promise.queue, promise.usage) for key, promise in books.promises.items())
        for key, name, usage in (*held, *promised):
            if name in nodes and any(usage.get(place) for place in places):
                found.append(Holder(key, nodes[name], usage, self._end(key)))
                if len(found) > MOST_HOLDERS:
                    break
        return found

    def _end(self, key: Key) -> int | None:
        """When the workload gives its quota back; who has to go does so now."""
        workload, item = self.books.workloads[key], self.items.get(key)
        if workload.revoked or workload.deleting or key in self.books.leaving:
            return self.now
        return expected_end(workload, item, self.now) if item is not None else None


@dataclass(slots=True)
class Trial:
    """A workload, and the copy of a tree from which those who hold quota are taken away."""

    workload: Workload
    supplier: Supplier
    gate: TopologyGate
    gone: int = 0

    def fewest(self, holders: Sequence[Holder]) -> list[Holder] | None:
        """Who has to be gone, where they go in their order; None where it does not fit when all are.

        How many go is found by halves, as what fits also fits with more of them gone; then those are left out who need not go.
        """
        low, high = 0, len(holders)
        if self._with(holders, high) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            if self._with(holders, middle) is None:
                low = middle + 1
            else:
                high = middle
        found = self._with(holders, high)
        assert found is not None
        return self._needed(holders[:high], found)

    def _with(self, holders: Sequence[Holder], count: int) -> Verdict | None:
        """The flavors that fit when the first ``count`` are gone; None where none do."""
        for holder in holders[self.gone : count]:
            holder.node.move(holder.usage, -1)
        for holder in holders[count : self.gone]:
            holder.node.move(holder.usage, 1)
        self.gone = count
        without = {holder.key for holder in holders[:count]}
        shape, supplier = self.workload.shape, self.supplier
        sizes = [(), shortened(shape.sets, slack(shape.sets))] if slack(shape.sets) else [()]
        for counts in sizes:
            verdict = choose(shape, supplier, counts)
            if verdict.mode is Mode.FIT and self.gate.fits(verdict.podsets(shape), verdict.flavors, without):
                return verdict
        return None

    def _needed(self, gone: Sequence[Holder], verdict: Verdict) -> list[Holder]:
        """Without those, the last to end first, for whom there is room beside a workload that has these flavors."""
        shape, node = self.workload.shape, self.supplier.node
        usage, podsets = verdict.usage(shape), verdict.podsets(shape)
        needed = list(gone)
        for holder in reversed(gone):
            holder.node.move(holder.usage, 1)
            rest = [other for other in needed if other is not holder]
            fits = all(node.available(place) >= amount for place, amount in usage.items())
            if fits and self.gate.fits(podsets, verdict.flavors, {other.key for other in rest}):
                needed = rest
            else:
                holder.node.move(holder.usage, -1)
        return needed


def _before(workload: Workload, line: QueueLine, queue: ClusterQueue) -> list[Workload]:
    """Who has its turn before the workload: all before it in a strict queue, else those who may take the same quota.

    LocalQueues that are served by what they used are looked at one by one.
    """
    place, order = (workload.key.namespace, workload.local_queue), workload.order
    places = _places(workload.shape, queue)
    rivals = {
        shape
        for shape, ranks in line.ranks.items()
        if queue.strict or not (_is_never(ranks.verdict) or places.isdisjoint(_places(shape, queue)))
    }
    before = [one for one in line.members.values() if one.shape in rivals and one.order < order]
    if queue.by_use:
        before = [one for one in before if (one.key.namespace, one.local_queue) == place]
    return sorted(before, key=lambda one: one.order)


def _is_never(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.mode is Mode.NO_FIT and verdict.reason in _NEVER


def _places(shape: Shape, queue: ClusterQueue) -> frozenset[FlavorResource]:
    """The quota that workloads of the shape may ask for, by flavor and resource."""
    asked = {resource for resource, _ in shape.requests}
    return frozenset(
        (flavor, resource)
        for group in queue.quota.groups
        for flavor in group.flavors
        for resource in group.resources
        if resource in asked
    )


def _nobody(place: FlavorResource, amount: int) -> Prospect:
    """Nobody is sent away in an outlook: one flavor that fits is better than all that do not."""
    return Prospect(Mode.NO_CANDIDATES, 0)


def _names(keys: Sequence[Key]) -> list[str]:
    return [f"{key.namespace}/{key.name}" for key in keys]


def _some(keys: Sequence[Key]) -> str:
    return some([key.name for key in keys])


def _their(keys: Sequence[Key]) -> str:
    return "its" if len(keys) == 1 else "their"
