"""ClusterQueues and cohorts: quota first. Decides which workloads are given quota, and tells the others why they wait."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb
from queue_manager.domain.admitting.alike_grants import AlikeGrants
from queue_manager.domain.admitting.cohort_report import CohortReport
from queue_manager.domain.admitting.contest import Contest, Entry
from queue_manager.domain.admitting.departure import SHRUNK, Departure
from queue_manager.domain.admitting.elastic_jobs import ElasticJobs
from queue_manager.domain.admitting.growth import Growth
from queue_manager.domain.admitting.supervision import Supervision
from queue_manager.domain.admitting.topology_gate import TopologyGate
from queue_manager.domain.admitting.workload_decisions import (
    admitted,
    group_grown,
    held_back,
    reserved,
)
from queue_manager.domain.admitting.workload_report import WorkloadReport
from queue_manager.domain.admitting.workload_sources import WorkloadSources
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.cohorts.cohort_tree import touched_trees
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict, WaitReason
from queue_manager.domain.cohorts.queue_line import QueueLine
from queue_manager.domain.cohorts.quota_holding import Promise
from queue_manager.domain.members.demand import Demand
from queue_manager.domain.members.members import COHORTS, LOCAL_QUEUE, group_named_by
from queue_manager.domain.quotas.cluster_queue import (
    CHECK,
    CLUSTER_QUEUE,
    COHORT,
    FLAVOR,
    LOCAL_QUEUE_KIND,
    TOPOLOGY,
    WORK_PRIORITY,
)
from queue_manager.domain.quotas.grant import read_admission
from queue_manager.domain.quotas.kueue_policy import EVICTION, KueuePolicy
from queue_manager.domain.shares.share_rules import OPEN_ENTRY, placement_entry
from queue_manager.domain.workloads.account import Accounts
from queue_manager.domain.workloads.workload import Workload

OBJECTS = (CLUSTER_QUEUE, COHORT, LOCAL_QUEUE_KIND, FLAVOR, TOPOLOGY, WORK_PRIORITY, CHECK)


class Cohorts:
    """The part of queue_manager that keeps quota of flavors. ``fair`` turns fair sharing on."""

    def __init__(self, demand: Demand, fair: bool, policy: KueuePolicy | None = None) -> None:
        self.books = CohortBooks()
        self.policy = policy or KueuePolicy()
        self.report = CohortReport(self.books, fair, self.policy)
        self.sources = WorkloadSources(self.books, demand, Accounts(self.policy.timestamp == EVICTION))
        self.gate = TopologyGate(self.books, self.sources.templates)
        self.sources.podsets = self.gate.podsets
        self.shown = WorkloadReport(self.books, self.sources)
        self.books.use = self.report.use.share if self.policy.half_life_ms else None
        self.entries: dict[str, Manifest] = {}
        """What gang_scheduler hears of the ClusterQueues: that they are there. Their quota is kept here."""
        self.deciding: dict[str, Key] = {}
        """Own decisions without an outcome yet, by id. Nothing is on its way about others of whom nothing is to be decided."""
        self._idle: AbstractSet[Key] = frozenset()
        self._fair = fair
        self._growth = Growth(self.books, demand)
        self._elastic = ElasticJobs(self.books, self.sources)
        self._supervision = Supervision(self.books, demand, self.sources, self.policy)
        self._news = False
        self._grants = AlikeGrants(self.books, self.sources)
        self._resting: dict[str, None] = {}
        self._rested = False
        """Whether a decision came to its outcome, so that the queues that rest may look again."""

    def begin(self, now: int) -> None:
        """It is ``now``: those who stayed away until now come back."""
        self.books.now = max(self.books.now, now)
        self._supervision.begin(now)

    @property
    def due(self) -> int | None:
        """When somebody has to be looked at though nothing changes."""
        return self._supervision.due

    def fold_object(self, event: Event) -> None:
        """Take in a change of a ClusterQueue, Cohort, LocalQueue, ResourceFlavor, AdmissionCheck, priority or Namespace."""
        self.books.fold_object(event)
        if event.key.kind in (CLUSTER_QUEUE, LOCAL_QUEUE_KIND, COHORT):
            self.report.read(event)

    def fold_other(self, event: Event) -> None:
        """Take in a change of an object that may be a job."""
        self.sources.fold_other(event)

    def fold_pods(self, run: Sequence[Event]) -> None:
        """Take in a change of pods that are alike."""
        self.gate.fold_pods(run)
        if any(pod is not None and self._matters(pod) for pod in (run[0].new, run[0].old)):
            for event in run:
                self.sources.fold_pod(event)

    def _matters(self, pod: Object) -> bool:
        """Whether a pod is in a LocalQueue itself, or its group may be and it counts when its pods are ready."""
        return LOCAL_QUEUE in pod.labels or (self.policy.ready_ms > 0 and bool(group_named_by(pod)))

    def fold_group(self, event: Event) -> None:
        """Take in a change of a pod group."""
        self.sources.fold_group(event)

    def demand_changed(self, tallies: Iterable[Key]) -> None:
        """Pods of these groups came, went or were bound."""
        self.sources.renew(tallies)

    def assume(self, decision: Decision) -> None:
        """Count quota as given until the outcome comes."""
        for mutation in decision.mutations:
            if mutation.verb is Verb.PATCH and mutation.key == decision.subject:
                annotations = ((mutation.patch or {}).get("metadata") or {}).get("annotations") or {}
                admission = read_admission({name: text for name, text in annotations.items() if text})
                if admission is not None:
                    self.books.assume(decision.subject, admission)

    def settle(self, outcome: Outcome) -> None:
        """Look again at the workload that the outcome is about, and at those who were passed over because of it."""
        books, key = self.books, outcome.subject
        self.deciding.pop(outcome.decision_id, None)
        books.settle(key)
        self._rested = True
        if key in books.stray:
            books.untold[key] = None
        self._supervision.look(key)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """Who is given quota, who is told why not, and whose quota is taken back."""
        books = self.books
        self.begin(now)
        self._idle = self._without_decision(in_flight)
        for name in self._resting if self._rested else ():
            books.touch(name, freed=False)
        self._rested = False
        for key in self.sources.changed:
            self._growth.look(key)
            self._elastic.look(key)
        if books.renewed:
            books.renew()
            self._grants.forget()
            entries = {f"{COHORTS}/{name}": OPEN_ENTRY | placement_entry(queue) for name, queue in books.queues.items()}
            self._news = self._news or entries != self.entries
            self.entries = entries
            self._supervision.look_at_all()
            self.gate.flavors_changed()
        books.look_at_reclaimers()
        self.gate.renew()
        for key in self.gate.shrunk(self.sources.changed, self.sources.items):
            self._supervision.send_away(key, SHRUNK)
        self._supervision.renew(now)
        decisions = [
            self._admit(books.workloads[key], books.promises[key].queue, books.promises[key].verdict, now)
            for key in books.fulfilled(in_flight)
        ]
        decisions += self._contests(now, in_flight | {decision.subject for decision in decisions})
        decisions += self._stray_words(now, in_flight | {decision.subject for decision in decisions})
        return [*decisions, *self._supervision.decide(now, in_flight | {decision.subject for decision in decisions})]

    def _without_decision(self, in_flight: AbstractSet[Key]) -> AbstractSet[Key]:
        """Those who are left alone for a while, as they were set aside or refused over and over."""
        if not in_flight:
            return frozenset()
        own = set(self.deciding.values())
        return frozenset(key for key in in_flight if key not in own)

    def _contests(self, now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        """The rounds in every tree in which something may have become possible, and what is said there."""
        books = self.books
        contest = Contest(books, self.gate, self._fair, self._resting, self._idle)
        dirty, books.dirty = books.dirty, {}
        for names, freed in touched_trees(books.tree, dirty):
            for name in names:
                self._resting.pop(name, None)
                if freed:
                    books.lines[name].look_again()
            made = list(self._contest(contest, names, now, busy))
            contest.put_back()
            yield from made
            yield from self._words(names, now, busy)
            told = busy | {decision.subject for decision in made} if self._growth.waiting else busy
            yield from self._elastic.decide(set(names), busy)
            yield from (group_grown(workload, more) for workload, more in self._growth.decide(set(names), told))

    def _contest(self, contest: Contest, names: list[str], now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        if self._supervision.blocks:
            return
        for entry in contest.run(names, busy):
            if entry.victims:
                yield from self._promise(entry, now)
                continue
            yield self._admit(entry.workload, entry.queue.name, entry.verdict, now)
            if self.policy.block:
                self._supervision.renew(now)
                return

    def take_news(self) -> bool:
        """Whether ``entries`` changed since this was asked last."""
        news, self._news = self._news, False
        return news

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        books = self.books
        wrong = [f"{key} holds quota and is gone" for key in books.held if key not in books.workloads]
        if books.renewed:
            return wrong
        for name, node in books.tree.queues.items():
            used = {place: amount for place, amount in node.usage.items() if amount}
            expected = books.expected(name)
            if used != expected:
                wrong.append(f"ClusterQueue {name} is charged {used}, its workloads hold {expected}")
        return wrong

    def _promise(self, entry: Entry, now: int) -> Iterator[Decision]:
        """Others have to go for it: their quota is kept for it until they are gone."""
        workload, name = entry.workload, entry.queue.name
        victims = {victim.workload.key: victim for victim in entry.victims}
        self.books.promise(workload.key, Promise(name, entry.usage, entry.verdict, dict.fromkeys(victims)))
        for key, victim in victims.items():
            owner = self.books.held[key].cluster_queue
            message = (
                f"{workload.key.name} of ClusterQueue {name} takes back what {key.name} uses of ClusterQueue {owner}"
            )
            self._supervision.send_away(key, Departure(victim.reason, message))
        text = f"waits for {', '.join(sorted(key.name for key in victims)[:3])} to give {len(victims)} shares of quota back"
        return held_back(workload, Verdict(Mode.PREEMPT, reason=WaitReason.VICTIMS, message=text), now)

    def _admit(self, workload: Workload, queue: str, verdict: Verdict, now: int) -> Decision:
        """Give it its quota; it may start at once unless admission checks have to agree first."""
        admission, patch, message = self._grants.of(workload, queue, verdict, now)
        self.gate.keep(workload.key, verdict.podsets(workload.shape), verdict.flavors)
        self.books.grant(workload.key, admission)
        checks = self.books.queues[queue].checks_of(flavor for flavor, _ in admission.usage)
        if checks:
            return reserved(workload, admission, checks, now)
        return admitted(workload, patch, message, now)

    def _words(self, names: Iterable[str], now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        """Tell those who wait in these queues why they do."""
        for name in names:
            line = self.books.lines[name]
            blocker = line.blocker()
            behind = _behind(blocker, line) if blocker is not None else self._supervision.blocks
            for shape in list(line.ranks):
                verdict = line.ranks[shape].verdict or behind
                if verdict is None:
                    continue
                for workload in line.to_tell(shape, verdict, now, busy):
                    yield from held_back(workload, verdict, now)

    def _stray_words(self, now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        books = self.books
        for key in [key for key in books.untold if key not in busy]:
            del books.untold[key]
            if key in books.stray:
                yield from held_back(books.workloads[key], books.stray[key], now)


def _behind(head: Workload, line: QueueLine) -> Verdict:
    message = f"ClusterQueue {line.name} is strict and {head.key.name} is before it"
    found = line.ranks[head.shape].verdict
    if found is not None and found.reason in (WaitReason.TOO_LARGE, WaitReason.NO_FLAVOR):
        message += f", which can never have quota as it is: {found.message}; take it out, let it ask for less, or raise the quota"
    return Verdict(Mode.NO_FIT, reason=WaitReason.BEHIND_HEAD, message=message)
