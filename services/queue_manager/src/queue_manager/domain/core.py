"""The core of queue_manager: facts in, decisions about queues and waiting groups out."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict

from kube import Decision, Event, Key, Manifest, Outcome, runs
from kube.elastic_quotas import ELASTIC_QUOTA, ROOT_QUOTA, quota_name
from kube.resource_quotas import RESOURCE_QUOTA
from queue_manager.domain.admitting.cohort_answer import cohort_answer
from queue_manager.domain.admitting.cohorts import OBJECTS, Cohorts
from queue_manager.domain.admitting.quota_outlook import QuotaOutlook
from queue_manager.domain.admitting.workload_decisions import POD_ADMITTED, QUOTA_RESERVED
from queue_manager.domain.gates.gate_answer import queue_lines
from queue_manager.domain.gates.waiting import ADMISSION, WaitingGroups
from queue_manager.domain.members.demand import Demand, Tally
from queue_manager.domain.members.members import GROUP
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.quotas.cluster_queue import PRIORITY
from queue_manager.domain.quotas.elastic_quota import is_quota
from queue_manager.domain.quotas.queue_tree import QUEUE, ROOT, QueueTree, read_queue
from queue_manager.domain.quotas.sums import accumulate
from queue_manager.domain.shares.elastic_report import ElasticReport
from queue_manager.domain.shares.entitlements import NAME as ENTITLEMENTS
from queue_manager.domain.shares.entitlements import SUBJECT, Entitlements
from queue_manager.domain.shares.queue_report import QueueReport
from queue_manager.domain.shares.queue_state import COMMAND, Command, StateKeeper, read_command
from queue_manager.domain.shares.quota_register import QuotaRegister
from queue_manager.domain.shares.share_rules import QueueRule, QuotaRule
from queue_manager.domain.shares.supply import Supply
from queue_manager.domain.shares.tree_shares import TreeShares
from queue_manager.domain.workloads.account import WORKLOAD
from resources import Amounts

ONLY_IN_COHORTS = ("Job.batch", WORKLOAD)
"""Work that has to do with queues only where it is in a ClusterQueue."""


class QueueCore:
    """Who may compete, and how much does each queue deserve? (the Core protocol)

    One round of ``decide``: the states of queues, then who is let in, then the shares, as these depend on both; reports
    last, when nothing else happened. Each part looks only at what changed since the round before.
    """

    def __init__(self, policy: QueuePolicy | None = None) -> None:
        self._policy = policy or QueuePolicy()
        self._tree = QueueTree()
        self._quotas = QuotaRegister()
        self._demand = Demand()
        self._supply = Supply()
        self._waiting = WaitingGroups(self._tree_of, self._demand, self._policy.factor_milli, self._policy.fifo)
        self._shares = TreeShares(self._tree, QueueRule(self._policy))
        self._quota_shares = TreeShares(self._quotas.tree, QuotaRule(self._policy.strict_fifo))
        half_life_ms = self._policy.kueue.half_life_ms
        self._entitlements = Entitlements(half_life_ms, self._policy.claim == "drf")
        self._cohorts = Cohorts(self._demand, self._policy.fair, self._policy.kueue)
        self._report = QueueReport(half_life_ms)
        self._elastic_report = ElasticReport(self._quota_shares)
        kinds = (self._report, self._elastic_report, self._cohorts.report, self._cohorts.shown)
        self._reports = {kind.reports.name: kind.reports for kind in kinds}
        self._states = StateKeeper(self._tree, self._is_occupied)
        self._commands: dict[Key, Command] = {}
        self._unsettled: dict[str, None] = {}
        self._folds: dict[str, Callable[[Event], None]] = {
            "Namespace": self._fold_namespace,
            "Node": self._fold_node,
            PRIORITY: self._fold_priority,
            GROUP: self._fold_group,
            RESOURCE_QUOTA: self._waiting.fold_quota,
            QUEUE: self._fold_queue,
            ELASTIC_QUOTA: self._fold_elastic_quota,
            COMMAND: self._fold_command,
        }
        self._folds.update(dict.fromkeys(OBJECTS, self._cohorts.fold_object))

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        self._cohorts.begin(now)
        for run in runs(events):
            if run[0].key.kind == "Pod":
                self._demand.fold_pods(run)
                self._cohorts.fold_pods(run)
                continue
            fold = self._folds.get(run[0].key.kind, self._cohorts.fold_other)
            for event in run:
                fold(event)

    def hear(self, service: str, decision: Decision) -> None:
        """Take in what this service told last itself: no other's decisions matter here."""
        if decision.name == ENTITLEMENTS:
            self._entitlements.recall(decision.payload or {})

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Count a group as let in until the outcome comes."""
        self._cohorts.deciding[decision_id] = decision.subject
        if decision.name == ADMISSION:
            self._waiting.assume(decision.subject)
        if decision.name in (ADMISSION, POD_ADMITTED, QUOTA_RESERVED):
            self._cohorts.assume(decision)

    def settle(self, outcome: Outcome) -> None:
        """Look again at what the outcome is about."""
        self._waiting.settle(outcome.subject, outcome.name)
        self._cohorts.settle(outcome)
        if outcome.subject.kind == QUEUE:
            self._unsettled[outcome.subject.name] = None
        if outcome.name == ENTITLEMENTS and not outcome.applied:
            self._entitlements.forget_told()
        report = self._reports.get(outcome.name)
        if report is not None and not outcome.applied:
            report.refused()

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """All that should happen now."""
        self._post()
        decisions = list(self._decide_states(in_flight))
        decisions += self._waiting.decide(self._supply.total, now, in_flight)
        decisions += self._cohorts.decide(now, in_flight)
        self._post()
        if SUBJECT not in in_flight and all(decision.subject != SUBJECT for decision in decisions):
            told = self._tell(now)
            decisions += [told] if told else []
        busy = bool(decisions or in_flight)
        totals = self._demand.totals
        reports = (
            self._report.write(self._tree, totals, now, busy, in_flight),
            self._elastic_report.write(totals, now, busy, in_flight),
            self._cohorts.report.write(now, busy, in_flight),
            self._cohorts.shown.write(now, busy, in_flight),
        )
        return [*decisions, *(report for report in reports if report)]

    def deadline(self) -> int | None:
        """When reports that were put off may be written, or somebody's time is over."""
        times = [report.due for report in self._reports.values()]
        return min((time for time in [*times, self._cohorts.due] if time is not None), default=None)

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``queue`` answers what the queue ``arguments["name"]`` asks for, has and deserves; ``explain`` why work waits, as of ``now``."""
        if name == "settings":
            return asdict(self._policy)
        if name == "explain":
            kind = str(arguments.get("kind"))
            kind = kind if kind == "Pod" or kind in ONLY_IN_COHORTS else GROUP
            key = Key(kind, str(arguments.get("namespace") or ""), str(arguments.get("name") or ""))
            return self._explain(key, int(arguments.get("now") or 0))
        if name != "queue":
            raise KeyError(name)
        queue = str(arguments["name"])
        totals = self._demand.totals.get(queue)
        entry = self._shares.entries.get(queue) or self._quota_shares.entries.get(queue)
        return {
            "request": dict(totals.request) if totals else {},
            "allocated": dict(totals.allocated) if totals else {},
            "deserved": dict(entry["deserved"]) if entry else {},
        }

    def _explain(self, key: Key, now: int) -> Manifest:
        cohorts = self._cohorts
        now = max(now, cohorts.books.now)
        found = cohort_answer(QuotaOutlook(cohorts.books, cohorts.gate, cohorts.sources.items, now), key)
        if found is not None or key.kind in ONLY_IN_COHORTS:
            return found or {}
        answer = self._waiting.explain(key, self._supply.total)
        queue, shares = str(answer.get("queue") or ""), {**self._quota_shares.entries, **self._shares.entries}
        return answer | {"queues": queue_lines(self._tree_of(queue), queue, self._demand.totals, shares)}

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return [*self._tree.check(), *self._demand.check(), *self._waiting.check(), *self._cohorts.check()]

    def _fold_group(self, event: Event) -> None:
        self._waiting.fold_group(event)
        self._cohorts.fold_group(event)

    def _fold_namespace(self, event: Event) -> None:
        self._demand.fold_namespace(event)
        self._cohorts.fold_object(event)

    def _fold_priority(self, event: Event) -> None:
        self._waiting.fold_priority(event)
        self._cohorts.fold_object(event)

    def _fold_node(self, event: Event) -> None:
        self._cohorts.gate.fold_node(event)
        if self._supply.fold(event):
            self._waiting.supply_changed()

    def _fold_command(self, event: Event) -> None:
        self._commands.pop(event.key, None)
        command = read_command(event.new) if event.new and not event.new.deleting else None
        if command is not None:
            self._commands[event.key] = command

    def _fold_queue(self, event: Event) -> None:
        name = event.key.name
        self._report.read(name, event.new.status if event.new else None)
        if event.new is None:
            self._tree.remove(name)
        elif not self._tree.put(read_queue(event.new)):
            return
        self._unsettled[name] = None
        self._shares.tree_changed()
        self._demand.touch({name})
        self._waiting.look_again()

    def _fold_elastic_quota(self, event: Event) -> None:
        self._elastic_report.read(event)
        if self._quotas.fold(event):
            self._quota_shares.tree_changed()
            self._demand.touch({quota_name(event.key.name)})
            self._waiting.look_again()
        self._demand.own_namespaces(self._quotas.namespaces)

    def _post(self) -> None:
        """Bring the totals up to date, and mark what has to be looked at again because of that."""
        if not self._demand.dirty:
            return
        self._waiting.demand_changed(self._demand.dirty)
        self._cohorts.demand_changed(self._demand.dirty)
        changed = self._demand.post(self._competes)
        for shares in (self._shares, self._quota_shares):
            shares.demand_changed(changed, self._demand.totals)
        self._report.touch(self._tree, changed)
        self._elastic_report.touch(changed)
        for name in changed:
            self._unsettled.update(dict.fromkeys(self._tree.line_of(name)))

    def _decide_states(self, in_flight: AbstractSet[Key]) -> Iterator[Decision]:
        touched: set[Key] = set()
        for command in sorted(self._commands.values(), key=lambda command: command.order):
            decision = self._states.obey(command)
            if {decision.subject, command.key}.isdisjoint(in_flight | touched):
                touched |= {mutation.key for mutation in decision.mutations} | {decision.subject}
                yield decision
        for name in sorted(self._unsettled):
            wanted = self._states.settle(name)
            if wanted is None:
                del self._unsettled[name]
            elif wanted.subject not in in_flight and wanted.subject not in touched:
                yield wanted

    def _tell(self, now: int) -> Decision | None:
        """The entitlements, if they changed. What is used outside of a tree reduces what that tree shares."""
        totals, quotas = self._demand.totals, self._quota_shares
        changed = quotas.renew(totals, self._supply_of(ROOT_QUOTA))
        self._elastic_report.touch(changed)
        news = bool(self._shares.renew(totals, self._supply_of("")) or changed)
        news |= self._cohorts.take_news()
        parts = (self._shares.entries, quotas.entries, self._cohorts.entries)
        root = self._tree.queues[ROOT].uid
        return self._entitlements.tell(news, parts, root, now, self._report.past)

    def _supply_of(self, domain: str) -> Amounts:
        left = dict(self._supply.total)
        for other, used in self._demand.allocated.items():
            if other != domain:
                accumulate(left, used, -1)
        return left

    def _tree_of(self, queue: str) -> QueueTree:
        return self._quotas.tree if is_quota(queue) else self._tree

    def _competes(self, tally: Tally) -> bool:
        queue = self._tree_of(tally.queue).queues.get(tally.queue)
        group = self._demand.groups.get(tally.key)
        inside = tally.is_bare or (group is not None and self._waiting.is_let_in(group))
        return inside and queue is not None and queue.is_open

    def _is_occupied(self, name: str) -> bool:
        totals = self._demand.totals.get(name)
        if totals is not None and (totals.groups or totals.live):
            return True
        return any(self._is_occupied(child) for child in self._tree.children_of(name))
