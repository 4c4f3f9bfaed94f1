"""Those who hold quota, until they have given it back: who may start, who has to go, who stays away until when."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Decision, Key, Mutation
from kube.alarms import Alarms
from queue_manager.domain.admitting.departure import (
    Departure,
    time_left,
    unanswered,
    why_stopped,
    why_told,
    written_down,
)
from queue_manager.domain.admitting.workload_decisions import (
    REQUEUED_WORDS,
    admitted,
    grant_patch,
    held_back,
    requeued,
    revoked,
    waiting_for,
)
from queue_manager.domain.admitting.workload_sources import WorkloadSources
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict, WaitReason
from queue_manager.domain.members.demand import Demand
from queue_manager.domain.quotas.grant import Admission
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from queue_manager.domain.workloads.workload import Workload


@dataclass(slots=True)
class Supervision:
    """``blocks`` says why nobody is given quota at the moment: others that have it are not ready."""

    books: CohortBooks
    demand: Demand
    sources: WorkloadSources
    policy: KueuePolicy
    blocks: Verdict | None = None
    _leaving: dict[Key, Departure] = field(default_factory=dict)
    """Who has to go, and why."""
    _looks: dict[Key, None] = field(default_factory=dict)
    _checked: dict[Key, None] = field(default_factory=dict)
    """Who holds quota and waits for admission checks."""
    _unready: dict[Key, None] = field(default_factory=dict)
    _alarms: Alarms = field(default_factory=Alarms)

    @property
    def due(self) -> int | None:
        """When somebody has to be looked at though nothing changes."""
        return self._alarms.next

    def look(self, key: Key) -> None:
        """Something about the workload may be new."""
        self._looks[key] = None

    def look_at_all(self) -> None:
        """Queues changed: who was chosen to go but not told so yet may stay."""
        workloads = self.books.workloads
        self._leaving = {key: why for key, why in self._leaving.items() if key in workloads and workloads[key].revoked}
        self._looks.update(dict.fromkeys(self.books.held))

    def send_away(self, key: Key, why: Departure) -> None:
        """Somebody else is entitled to what the workload holds."""
        self._leaving.setdefault(key, why)

    def begin(self, now: int) -> None:
        """Those whose time has come are looked at; who stayed away until now comes back."""
        for key in self._alarms.take(now):
            self._looks[key] = None
            if key in self.books.stray:
                self.books.forget(key)
                self.sources.renew([key])

    def renew(self, now: int) -> None:
        """Look at everybody of whom something changed."""
        changed = {**self.sources.changed, **self.sources.readiness.changed}
        for key in changed:
            self.sources.show(key)
        looks, self._looks, self.sources.changed = {**changed, **self._looks}, {}, {}
        self.sources.readiness.changed.clear()
        for key in looks:
            self._renew(key, now)
        if self.policy.block:
            self._renew_block()

    def decide(self, now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        """Who may start now that all checks agree, and whose quota is taken back."""
        for key in [key for key in self._checked if key not in busy]:
            yield from self._start(key, now)
        for key in [key for key in {**self._leaving, **self.books.leaving} if key not in busy]:
            yield from self._take_back(key, now)

    def _renew(self, key: Key, now: int) -> None:
        books = self.books
        workload, admission = books.workloads.get(key), books.held.get(key)
        self._checked.pop(key, None)
        self._unready.pop(key, None)
        self._alarms.set(key, None)
        if workload is None or admission is None:
            # Who has given everything back may be given quota again before this is looked at as a whole.
            self._leaving.pop(key, None)
        if workload is None:
            return
        if admission is None:
            if key in books.stray and workload.account.resume_at > now:
                self._alarms.set(key, workload.account.resume_at)
            return
        if workload.revoked:
            self._leaving.setdefault(key, Departure(*REQUEUED_WORDS))
        checks = self._checks(admission)
        why = why_stopped(books, workload, admission.cluster_queue) or why_told(workload, checks)
        if why is None and workload.let_in and not workload.over:
            why = self._watch(workload, now)
        if why is not None and not workload.revoked:
            self._leaving[key] = why
        if not workload.let_in and key not in self._leaving:
            self._checked[key] = None

    def _watch(self, workload: Workload, now: int) -> Departure | None:
        """Why its time is over; else it is looked at again when it will be."""
        key = workload.key
        ready = self.sources.readiness.of(key)
        if ready < workload.expected:
            self._unready[key] = None
        left = time_left(workload, self.sources.accounts.objects.get(key), ready, self.policy)
        if left is None:
            return None
        if left[0] <= now:
            return left[1]
        self._alarms.set(key, left[0])
        return None

    def _renew_block(self) -> None:
        """With ``blockAdmission`` nobody is admitted while one that was is not ready."""
        books = self.books
        waiting = [key for key in {**self._unready, **books.assumed} if key in books.held]
        before = self.blocks is not None
        self.blocks = None
        if waiting:
            text = f"waits until all pods of {min(waiting).name} are ready"
            self.blocks = Verdict(Mode.NO_FIT, reason=WaitReason.PODS_NOT_READY, message=text)
        elif before:
            for name in books.queues:
                books.touch(name)

    def _start(self, key: Key, now: int) -> Iterator[Decision]:
        """Let it start, or tell it for which checks it waits."""
        workload, admission = self.books.workloads.get(key), self.books.held.get(key)
        if workload is None or admission is None or key in self.books.assumed:
            return
        missing = unanswered(workload, self._checks(admission))
        if missing:
            message = waiting_for(missing)
            yield from held_back(workload, Verdict(Mode.FIT, reason=WaitReason.CHECKS, message=message), now)
            return
        del self._checked[key]
        patch = grant_patch(workload, self.sources.items.get(key), admission, now)
        self.books.assumed[key] = admission
        message = f"ClusterQueue {admission.cluster_queue}: the admission checks agree"
        yield admitted(workload, patch, message, now)

    def _take_back(self, key: Key, now: int) -> Iterator[Decision]:
        """Ask for the eviction of one that has to go and runs; one that does not run waits for quota again."""
        books = self.books
        workload, admission = books.workloads.get(key), books.held.get(key)
        if workload is None or admission is None:
            self._leaving.pop(key, None)
            return
        tally = self.demand.tallies.get(key)
        runs = bool(tally and tally.bound) if workload.is_group else workload.running
        if workload.deleting or key in books.assumed or (runs and workload.revoked):
            return
        why = self._leaving.get(key) or Departure(*REQUEUED_WORDS)
        noted = [] if workload.revoked else self._noted(workload, why, now)
        if runs:
            yield revoked(workload, why.reason, why.message, noted)
            return
        words = REQUEUED_WORDS if workload.revoked else (why.reason, why.message)
        yield requeued(workload, self.sources.items.get(key), now, words, noted)

    def _checks(self, admission: Admission) -> list[str]:
        """The admission checks that have to agree before work with this quota may start."""
        queue = self.books.queues.get(admission.cluster_queue)
        return queue.checks_of(flavor for flavor, _ in admission.usage) if queue is not None else []

    def _noted(self, workload: Workload, why: Departure, now: int) -> list[Mutation]:
        item = self.sources.accounts.objects.get(workload.key)
        return written_down(workload, item, why, self.policy, now)
