"""ClusterQueues and cohorts: quota first. Decides which workloads are given quota, and tells the others why they wait."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from kube import Decision, Event, Key, Manifest, Object, Outcome, Verb
from queue_manager.domain.cluster_queue import (
    CLUSTER_QUEUE,
    COHORT,
    DRAIN,
    FLAVOR,
    LOCAL_QUEUE_KIND,
    TOPOLOGY,
    WORK_PRIORITY,
)
from queue_manager.domain.cohort_books import CohortBooks
from queue_manager.domain.cohort_report import CohortReport
from queue_manager.domain.cohort_tree import touched_trees
from queue_manager.domain.contest import Contest, Entry
from queue_manager.domain.demand import Demand
from queue_manager.domain.flavor_choice import Mode, Verdict, WaitReason, admission_of
from queue_manager.domain.growth import Growth
from queue_manager.domain.job_templates import JobTemplates
from queue_manager.domain.members import COHORTS, GROUP, LOCAL_QUEUE, group_named_by
from queue_manager.domain.pod_requests import PodRequests
from queue_manager.domain.quota_holding import Promise
from queue_manager.domain.share_rules import OPEN_ENTRY
from queue_manager.domain.topology_gate import TopologyGate
from queue_manager.domain.workload import (
    ADMISSION,
    Admission,
    Shape,
    Workload,
    read_admission,
    read_pod,
    read_pod_group,
)
from queue_manager.domain.workload_decisions import REQUEUED_WORDS, admitted, grown, held_back, requeued, revoked

OBJECTS = (CLUSTER_QUEUE, COHORT, LOCAL_QUEUE_KIND, FLAVOR, TOPOLOGY, WORK_PRIORITY)


class Cohorts:
    """The part of queue_manager that keeps quota of flavors. ``fair`` turns fair sharing on."""

    def __init__(self, demand: Demand, fair: bool) -> None:
        self.books = CohortBooks()
        self.report = CohortReport(self.books, fair)
        self.entries: dict[str, Manifest] = {}
        """What gang_scheduler hears of the ClusterQueues: that they are there. Their quota is kept here."""
        self._demand = demand
        self._fair = fair
        self._requests = PodRequests()
        self._groups: dict[Key, Object] = {}
        self._samples: dict[Key, Manifest] = {}
        self._templates = JobTemplates()
        self.gate = TopologyGate(self.books, self._templates)
        self._growth = Growth(self.books, demand)
        self._drained: dict[Key, tuple[str, str]] = {}
        """Who has to go, with the reason and the sentence for people."""
        self._news = False
        self._grants: dict[tuple[Any, ...], tuple[Admission, Manifest, str]] = {}
        self._resting: dict[str, None] = {}

    def fold_object(self, event: Event) -> None:
        """Take in a change of a ClusterQueue, Cohort, LocalQueue, ResourceFlavor, WorkloadPriorityClass or Namespace."""
        self.books.fold_object(event)
        if event.key.kind in (CLUSTER_QUEUE, LOCAL_QUEUE_KIND, COHORT):
            self.report.read(event)

    def fold_other(self, event: Event) -> None:
        """Take in a change of an object that may be a job."""
        self._templates.fold(event)

    def fold_pod(self, event: Event) -> None:
        """Take in a change of a pod; one of a group counts with its group."""
        self.gate.fold_pod(event)
        pod = event.new
        if pod is not None and LOCAL_QUEUE in pod.labels:
            group = group_named_by(pod)
            if not group:
                self.books.put(read_pod(pod, self._requests.of(pod), self.books.priorities))
                return
            self._samples.setdefault(Key(GROUP, pod.namespace, group), pod.spec)
        if event.key in self.books.workloads:
            self.books.forget(event.key)

    def fold_group(self, event: Event) -> None:
        """Take in a change of a pod group."""
        if event.new is not None and LOCAL_QUEUE in event.new.labels:
            self._groups[event.key] = event.new
            self._renew_group(event.key)
        elif self._groups.pop(event.key, None) is not None:
            self._samples.pop(event.key, None)
            self.books.forget(event.key)

    def demand_changed(self, tallies: Iterable[Key]) -> None:
        """Pods of these groups came, went or were bound."""
        for key in tallies:
            if key in self._groups:
                self._renew_group(key)

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
        books.settle(key)
        for name in self._resting:
            books.touch(name, freed=False)
        if key in books.stray:
            books.untold[key] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """Who is given quota, who is told why not, and whose quota is taken back."""
        books = self.books
        if books.renewed:
            books.renew()
            self._grants = {}
            entries = {f"{COHORTS}/{name}": OPEN_ENTRY for name in books.queues}
            self._news = self._news or entries != self.entries
            self.entries = entries
            self._find_drained()
            self.gate.flavors_changed()
        self.gate.renew()
        decisions = [
            self._admit(books.workloads[key], books.promises[key].queue, books.promises[key].verdict, now)
            for key in list(books.ready)
            if key not in in_flight
        ]
        busy = in_flight | {decision.subject for decision in decisions}
        contest = Contest(books, self.gate, self._fair, self._resting)
        dirty, books.dirty = books.dirty, {}
        for names, freed in touched_trees(books.tree, dirty):
            for name in names:
                self._resting.pop(name, None)
                if freed:
                    books.lines[name].look_again()
            for entry in contest.run(names, busy):
                decisions += self._promise(entry, now) if entry.victims else [self._grant_to(entry, now)]
            decisions += self._words(names, now, busy)
            told = busy | {decision.subject for decision in decisions} if self._growth.waiting else busy
            decisions += [grown(workload, more.text()) for workload, more in self._growth.decide(set(names), told)]
        decisions += self._stray_words(now, busy)
        return [*decisions, *self._take_back(now, in_flight | {decision.subject for decision in decisions})]

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

    def _renew_group(self, key: Key) -> None:
        tally = self._demand.tallies.get(key)
        held = tally.held() if tally is not None else {}
        live = tally.live if tally is not None else 0
        group = self._groups[key]
        spec = self._samples.get(key) or self._templates.of(group.controller)
        podsets = self.gate.podsets(key, group.controller)
        self.books.put(read_pod_group(group, held, live, spec, self.books.priorities, self.books.classes, podsets))
        self._growth.look(key)
        if self.books.workloads[key].revoked:
            self._drained.setdefault(key, REQUEUED_WORDS)

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
            self._drained.setdefault(key, (victim.reason, message))
        text = f"waits for {', '.join(sorted(key.name for key in victims)[:3])} to give {len(victims)} shares of quota back"
        return held_back(workload, Verdict(Mode.PREEMPT, reason=WaitReason.VICTIMS, message=text), now)

    def _grant_to(self, entry: Entry, now: int) -> Decision:
        return self._admit(entry.workload, entry.queue.name, entry.verdict, now)

    def _admit(self, workload: Workload, queue: str, verdict: Verdict, now: int) -> Decision:
        admission, patch, message = self._grant(workload.shape, queue, verdict)
        self.gate.keep(workload.key, workload.shape, verdict.flavors)
        self.books.grant(workload.key, admission)
        return admitted(workload, patch, message, now)

    def _grant(self, shape: Shape, queue: str, verdict: Verdict) -> tuple[Admission, Manifest, str]:
        """What a workload is given, the change of its annotations, and the sentence; one for all who are alike."""
        kind = (queue, shape, tuple(verdict.flavors.items()))
        found = self._grants.get(kind)
        if found is None:
            admission = admission_of(verdict, shape, self.books.queues[queue], self.books.flavors)
            chosen = ", ".join(f"{name} of flavor {flavor}" for name, flavor in sorted(admission.flavors.items()))
            message = f"ClusterQueue {queue} gives {chosen or 'leave'}"
            patch: Manifest = {"metadata": {"annotations": {ADMISSION: admission.text()}}}
            found = self._grants[kind] = (admission, patch, message)
        return found

    def _words(self, names: Iterable[str], now: int, busy: AbstractSet[Key]) -> Iterator[Decision]:
        """Tell those who wait in these queues why they do."""
        for name in names:
            line = self.books.lines[name]
            blocker = line.blocker()
            behind = _behind(blocker, name) if blocker is not None else None
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

    def _find_drained(self) -> None:
        """The workloads whose queue wants to be empty; who was chosen to go but not told so yet may stay."""
        books = self.books
        told = {key: words for key, words in self._drained.items() if key in books.workloads}
        self._drained = {key: words for key, words in told.items() if books.workloads[key].revoked}
        for key, admission in books.held.items():
            queue = books.queues.get(admission.cluster_queue)
            local = books.local.get((key.namespace, books.workloads[key].local_queue))
            if queue is not None and queue.stop == DRAIN:
                self._drained[key] = ("ClusterQueueStopped", f"ClusterQueue {queue.name} is being drained")
            elif local is not None and local.stop == DRAIN:
                self._drained[key] = (
                    "LocalQueueStopped",
                    f"LocalQueue {local.namespace}/{local.name} is being drained",
                )

    def _take_back(self, now: int, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        """Ask for the eviction of those who have to go and run; those that do not run wait for quota again."""
        books = self.books
        for key in [key for key in {**self._drained, **books.leaving} if key not in in_flight]:
            workload, admission = books.workloads.get(key), books.held.get(key)
            if workload is None or admission is None:
                self._drained.pop(key, None)
                continue
            tally = self._demand.tallies.get(key)
            runs = bool(tally and tally.bound) if workload.is_group else workload.running
            if workload.deleting or key in books.assumed or (runs and workload.revoked):
                continue
            reason, message = self._drained.get(key, REQUEUED_WORDS)
            yield revoked(workload, reason, message) if runs else requeued(workload, now)


def _behind(head: Workload, name: str) -> Verdict:
    message = f"ClusterQueue {name} is strict and {head.key.name} is before it"
    return Verdict(Mode.NO_FIT, reason=WaitReason.BEHIND_HEAD, message=message)
