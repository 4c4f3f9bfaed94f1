"""The books of the ClusterQueues: the objects as they are, who waits where, and what quota is held by whom.

A change of a queue, cohort or flavor makes the trees anew from the sums of what is held; a change of a workload moves that
workload only.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kube import Key
from queue_manager.domain.cohorts.cohort_tree import grow, touched_trees
from queue_manager.domain.cohorts.fit_plan import FitPlans
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict
from queue_manager.domain.cohorts.queue_line import QueueLine
from queue_manager.domain.cohorts.quota_holding import Holding
from queue_manager.domain.cohorts.quota_promises import QuotaPromises
from queue_manager.domain.cohorts.shared_line import SharedLine
from queue_manager.domain.quotas.cluster_queue import ClusterQueue
from queue_manager.domain.quotas.grant import Admission
from queue_manager.domain.workloads.workload import Workload


@dataclass(slots=True)
class CohortBooks(QuotaPromises):
    """``stray`` wait outside of any line."""

    lines: dict[str, QueueLine] = field(default_factory=dict)
    workloads: dict[Key, Workload] = field(default_factory=dict)
    assumed: dict[Key, Admission] = field(default_factory=dict)
    local_holdings: dict[tuple[str, str], Holding] = field(default_factory=dict)
    local_waiting: dict[tuple[str, str], int] = field(default_factory=dict)
    stray: dict[Key, Verdict] = field(default_factory=dict)
    stray_in: dict[str, int] = field(default_factory=dict)
    """How many of the stray wait for each ClusterQueue."""
    shown: dict[str, None] = field(default_factory=dict)
    """ClusterQueues of which something that users see has changed."""
    untold: dict[Key, None] = field(default_factory=dict)
    """Stray workloads that may not have been told why they wait."""
    revoked: dict[Key, None] = field(default_factory=dict)
    """Those who were told to go."""
    plans: FitPlans = field(default_factory=FitPlans)
    use: Callable[[tuple[str, str]], int] | None = None
    """How much a LocalQueue has used lately; None where that does not matter."""
    _places: dict[Key, tuple[str, tuple[str, str]]] = field(default_factory=dict)

    def put(self, workload: Workload) -> None:
        """Take in a workload as the facts show it."""
        before = self.workloads.get(workload.key)
        if before == workload or (before is not None and self._keeps_place(before, workload)):
            return
        self.forget(workload.key)
        self.workloads[workload.key] = workload
        if workload.revoked:
            self.revoked[workload.key] = None
        self._place(workload)

    def _keeps_place(self, before: Workload, after: Workload) -> bool:
        """Take in a change that is not about quota: it holds what it held, or waits where it waited."""
        key = after.key
        if after.over or before.uid != after.uid:
            return False
        if key in self.held:
            kept = (self.assumed.get(key) or after.admission) == self.held[key]
        else:
            kept = before._replace(told=after.told) == after
            line = self.lines.get(self.queue_of(after))
            if kept and line is not None and key in line.members:
                line.members[key] = after
        if kept:
            self.workloads[key] = after
            if after.let_in != before.let_in:
                self.shown[self.queue_of(after)] = None
            if after.revoked:
                self.revoked[key] = None
            elif before.revoked:
                del self.revoked[key]
        return kept

    def forget(self, key: Key) -> None:
        """The workload is no more, or is put anew."""
        workload = self.workloads.pop(key, None)
        if workload is None:
            return
        if key in self.promises:
            self._break_promise(key)
            self._uncount(workload)
        self._leave(workload)
        self.release(key)
        self.revoked.pop(key, None)

    def charge(self, key: Key, admission: Admission) -> None:
        """The workload holds quota now; the tree has it charged already where a contest took it."""
        workload = self.workloads[key]
        name, place = admission.cluster_queue, (key.namespace, workload.local_queue)
        self.held[key] = admission
        self.holdings.setdefault(name, Holding()).add(key, admission.usage, 1)
        self.local_holdings.setdefault(place, Holding()).add(key, admission.usage, 1)
        self._places[key] = (name, place)
        self.shown[name] = self.taken[name] = None

    def grant(self, key: Key, admission: Admission) -> None:
        """A contest, which took the quota from the tree, gave it to a workload that waited."""
        self._uncount(self.workloads[key])
        promise = self.promises.pop(key, None)
        for victim in promise.victims if promise is not None else ():
            self._stays(victim, self.held[victim])
        self.ready.pop(key, None)
        self.assumed[key] = admission
        self.charge(key, admission)

    def grow(self, key: Key, admission: Admission) -> None:
        """The workload holds more than before; the tree has it charged already."""
        name, place = self._places[key]
        for holding in (self.holdings[name], self.local_holdings[place]):
            holding.add(key, self.held[key].usage, -1)
            holding.add(key, admission.usage, 1)
        self.held[key] = self.assumed[key] = admission
        self.shown[name] = self.taken[name] = None

    def assume(self, key: Key, admission: Admission) -> None:
        """A decision on its way gives quota to the workload."""
        workload = self.workloads.get(key)
        if workload is None or key in self.held:
            return
        self.assumed[key] = admission
        self._leave(workload)
        self._place(workload)

    def settle(self, key: Key) -> None:
        """The decision about the workload came to its outcome: the facts tell what it holds."""
        workload = self.workloads.get(key)
        if self.assumed.pop(key, None) is not None and workload and workload.admission != self.held.get(key):
            self.release(key)
            self._place(workload)

    def release(self, key: Key) -> None:
        """The workload holds nothing any more; those who wait in its tree may look again."""
        admission = self.held.pop(key, None)
        if admission is None:
            return
        name, place = self._places.pop(key)
        self.holdings[name].add(key, admission.usage, -1)
        self.local_holdings[place].add(key, admission.usage, -1)
        self.shown[name] = None
        if key in self.leaving:
            self._gone(self._stays(key, admission), key)
        elif name in self.tree.queues:
            self._hasten(self.tree.queues[name].root)
        self._move(name, admission.usage, -1)
        self.touch(name)

    def look_at_reclaimers(self) -> None:
        """Where more is borrowed than before, those who found nobody to send away look again."""
        taken, self.taken = self.taken, {}
        borrowers = (name for name in taken if name in self.tree.queues and self.tree.queues[name].any_borrows)
        for names, _ in touched_trees(self.tree, dict.fromkeys(borrowers, False)):
            for name in names:
                if self.queues[name].reclaim != "Never" and self.lines[name].look_again(Mode.NO_CANDIDATES):
                    self.touch(name, freed=False)

    def renew(self) -> None:
        """Make the trees and lines anew after objects changed."""
        if not self.renewed:
            return
        self.renewed = False
        self.plans = FitPlans()
        self.resolve()
        self.tree = grow(self.queues, self.cohorts)
        self.promises, self.leaving, self.departing, self.ready = {}, {}, {}, {}
        for name, holding in self.holdings.items():
            self._move(name, holding.usage, 1)
        self.lines = {name: self._line(queue) for name, queue in self.queues.items()}
        self.stray, self.local_waiting, self.stray_in = {}, {}, {}
        self.dirty = dict.fromkeys(self.queues, True)
        self.shown.update(dict.fromkeys(self.queues))
        for key, workload in self.workloads.items():
            if key not in self.held:
                self._line_up(workload)

    def _line(self, queue: ClusterQueue) -> QueueLine:
        if not (queue.by_use and self.use is not None):
            return QueueLine(queue.name, queue.strict)
        return SharedLine(queue.name, queue.strict, use=self.use)

    def _place(self, workload: Workload) -> None:
        key = workload.key
        admission = self.assumed.get(key) or workload.admission
        if workload.over:
            return
        if admission is not None:
            self.charge(key, admission)
            self._move(admission.cluster_queue, admission.usage, 1)
        elif not self.renewed:
            self._line_up(workload)

    def _line_up(self, workload: Workload) -> None:
        if workload.over or workload.deleting:
            return
        place = (workload.key.namespace, workload.local_queue)
        local = self.local.get(place)
        name = local.cluster_queue if local is not None else ""
        self.local_waiting[place] = self.local_waiting.get(place, 0) + 1
        verdict = self.outside(workload, local)
        self.shown[name] = None
        if verdict is None:
            self.lines[name].put(workload)
            self.touch(name, freed=False)
            return
        self.stray[workload.key] = verdict
        self.untold[workload.key] = None
        self.stray_in[name] = self.stray_in.get(name, 0) + 1

    def _leave(self, workload: Workload) -> None:
        """Out of the line, or from among the stray."""
        key = workload.key
        if self.renewed:
            self.untold.pop(key, None)
            return
        name = self.queue_of(workload)
        line = self.lines.get(name)
        if line is not None and key in line.members:
            line.drop(key)
            if line.strict:
                self.touch(name)
        elif self.stray.pop(key, None) is not None:
            self.stray_in[name] = self.stray_in.get(name, 1) - 1
        else:
            return
        self._uncount(workload)

    def _uncount(self, workload: Workload) -> None:
        """It does not wait any more."""
        place = (workload.key.namespace, workload.local_queue)
        self.untold.pop(workload.key, None)
        self.local_waiting[place] = self.local_waiting.get(place, 1) - 1
        self.shown[self.queue_of(workload)] = None
