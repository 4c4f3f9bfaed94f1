"""Quota that is held, and quota that is promised to who waits for others to give it back.

A promise is charged to the trees like what is held, beside what its victims hold until they are gone.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.cohort_tree import CohortTree, Node
from queue_manager.domain.cohorts.queue_objects import QueueObjects
from queue_manager.domain.cohorts.quota_holding import Holding, Promise
from queue_manager.domain.quotas.cluster_queue import Quotas
from queue_manager.domain.quotas.grant import Admission


@dataclass(slots=True)
class QuotaPromises(QueueObjects):
    """``held`` is what workloads were given, by facts or by decisions on their way."""

    tree: CohortTree = field(default_factory=CohortTree)
    held: dict[Key, Admission] = field(default_factory=dict)
    holdings: dict[str, Holding] = field(default_factory=dict)
    dirty: dict[str, bool] = field(default_factory=dict)
    """ClusterQueues to look at; True: quota came free, so that those who failed may look again, in all of the tree."""
    taken: dict[str, None] = field(default_factory=dict)
    """ClusterQueues that use more than before, so that somebody may be entitled to what they borrow."""
    promises: dict[Key, Promise] = field(default_factory=dict)
    leaving: dict[Key, Key] = field(default_factory=dict)
    """By each victim who has to go, the workload that gets its quota."""
    departing: dict[str, Holding] = field(default_factory=dict)
    """What those victims hold, by ClusterQueue."""
    ready: dict[Key, None] = field(default_factory=dict)
    """Those for whom the last victim is gone."""

    def promise(self, key: Key, promise: Promise) -> None:
        """A contest took quota for a workload that waits until others are gone, whose quota counts until then."""
        self.promises[key] = promise
        self.taken[promise.queue] = None
        for victim in promise.victims:
            self.leaving[victim] = key
            held = self.held[victim]
            self.departing.setdefault(held.cluster_queue, Holding()).add(victim, held.usage, 1)

    def fulfilled(self, busy: AbstractSet[Key]) -> list[Key]:
        """The promises that can be kept now: the victims are gone, and so is who else leaves the room that was counted on."""
        ready = [key for key in self.ready if key not in busy]
        if not ready:
            return []
        for promise in self.promises.values():
            self._move(promise.queue, promise.usage, -1)
        found = {key: None for key in ready if self._take(self.promises[key])}
        for key, promise in self.promises.items():
            if key not in found:
                self._move(promise.queue, promise.usage, 1)
        return list(found)

    def expected(self, name: str) -> Quotas:
        """What the ClusterQueue should be charged: what is held and what is promised."""
        total = dict(self.holdings[name].usage) if name in self.holdings else {}
        for usage in [promise.usage for promise in self.promises.values() if promise.queue == name]:
            for place, amount in usage.items():
                total[place] = total.get(place, 0) + amount
        return {place: amount for place, amount in total.items() if amount}

    def touch(self, name: str, freed: bool = True) -> None:
        """There may be quota for those who wait in the ClusterQueue; where it was ``freed``, for all of its tree."""
        self.dirty[name] = freed or self.dirty.get(name, False)

    def _take(self, promise: Promise) -> bool:
        node = self.tree.queues[promise.queue]
        fits = all(node.available(place) >= amount for place, amount in promise.usage.items())
        if fits:
            node.move(promise.usage, 1)
        return fits

    def _stays(self, victim: Key, admission: Admission) -> Key:
        """The victim does not leave any more, or is gone; returns for whom it should have left."""
        self.departing[admission.cluster_queue].add(victim, admission.usage, -1)
        return self.leaving.pop(victim)

    def _gone(self, key: Key, victim: Key) -> None:
        """A victim is gone: when it was the last one, the workload that waits for it can be given its quota."""
        promise = self.promises[key]
        del promise.victims[victim]
        if not promise.victims:
            self.ready[key] = None

    def _hasten(self, root: Node) -> None:
        """Quota came free besides that of the victims: it may be enough for those who wait for them."""
        nodes = self.tree.queues
        self.ready |= {
            key: None
            for key, promise in self.promises.items()
            if promise.queue in nodes and nodes[promise.queue].root is root
        }

    def _break_promise(self, key: Key) -> None:
        """The workload for which others go is no more."""
        promise = self.promises.pop(key)
        self.ready.pop(key, None)
        self._move(promise.queue, promise.usage, -1)
        for victim in promise.victims:
            self._stays(victim, self.held[victim])
        self.touch(promise.queue)

    def _move(self, name: str, usage: Quotas, sign: int) -> None:
        node = self.tree.queues.get(name)
        if node is not None:
            node.move(usage, sign)
