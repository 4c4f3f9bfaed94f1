"""The core of descheduler: facts in, moves of pods out."""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from descheduler.domain.cluster.budgets import BUDGET
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.load.anomaly import AnomalyRecords
from descheduler.domain.migration.arbiter import Arbiter
from descheduler.domain.migration.job import MIGRATION
from descheduler.domain.migration.migration_book import MigrationBook
from descheduler.domain.migration.migrations import Migrations
from descheduler.domain.plan_report import plan_manifest
from descheduler.domain.planning import Planning
from descheduler.domain.policy.policy import DeschedulerPolicy
from kube import Decision, Event, Key, Manifest, Outcome, Store
from kube.runs import runs
from kube.scheduling_pause import SWITCH, pause_of


class DeschedulerCore:
    """What should move? (the Core protocol)

    Migrations take their next step whenever anything happens; a round of planning is at each whole multiple of the interval,
    so that a successor has its rounds when this one would have had them.
    """

    def __init__(self, policy: DeschedulerPolicy | None = None) -> None:
        self._policy = policy or DeschedulerPolicy()
        self._view = ClusterView()
        self._book = MigrationBook()
        self._migrations = Migrations(self._policy.migration, self._book, self._view)
        self._planning = Planning(self._policy, self._view, self._book)
        self._records = AnomalyRecords()
        self._round: int | None = None
        self._remembered = b""
        self._looked_at = 0

    def read_from(self, store: Store) -> None:
        """Where objects are looked up."""
        self._view.store = self._book.store = self._book.serving.store = store

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        for run in runs(events):
            match run[0].key.kind:
                case "Pod":
                    self._view.fold(run)
                    self._book.serving.fold(run)
                case kind if kind == BUDGET:
                    self._book.serving.fold(run)
                case kind if kind == MIGRATION:
                    for event in run:
                        self._migrations.fold(event)

    def hear(self, service: str, decision: Decision) -> None:
        """Nothing that others decide matters here before it is a fact."""

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Count it as done until the outcome comes."""
        self._book.assumed[decision_id] = decision

    def settle(self, outcome: Outcome) -> None:
        """The facts tell what came of it."""
        self._book.assumed.pop(outcome.decision_id, None)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """The next step of each migration; and, when it is time, a plan."""
        self._looked_at = now
        number = now // self._policy.interval_ms
        due = self._round is not None and number > self._round
        if self._round is None or due:
            self._round = number
        if self._paused or not (due or self._book.open or _has_come(self._migrations.due, now)):
            return []
        arbiter = Arbiter.of(self._policy.migration, self._book, now)
        decisions = self._migrations.decide(arbiter, now, in_flight)
        if due and self._next_round is not None:
            plan, _ = self._planning.plan(self._records, arbiter, now, rehearsal=False)
            decisions += [one for one in self._planning.decisions(plan) if one.subject not in in_flight]
        return decisions

    def deadline(self) -> int | None:
        """The next round, or when a migration's time is over; while scheduling is paused nothing is due."""
        if self._paused:
            return None
        return min((time for time in (self._next_round, self._migrations.due) if time is not None), default=None)

    def remember(self) -> bytes | None:
        """How long nodes have been hot, and which round was the last."""
        content = json.dumps({"round": self._round, "records": self._records.manifest()}, sort_keys=True).encode()
        if not self._plans or content == self._remembered:
            return None
        self._remembered = content
        return content

    def restore(self, content: bytes) -> None:
        """Take up the rounds where the predecessor left them."""
        told = json.loads(content)
        self._round, self._records, self._remembered = told["round"], AnomalyRecords.of(told["records"]), content

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """``plan`` is what the next round would do, as of ``now``."""
        if name == "settings":
            return dict(self._policy.given)
        if name != "plan":
            raise KeyError(name)
        now = int(arguments.get("now") or self._looked_at)
        before, arbiter = self._planning.pools(now), Arbiter.of(self._policy.migration, self._book, now)
        plan, after = self._planning.plan(self._records, arbiter, now, rehearsal=True)
        plan.notes[:0] = self._policy.warnings
        idle = "scheduling is paused" if self._paused else "no strategy is set, nor thresholds of load"
        return plan_manifest(plan, before, after, None if self._paused else self._next_round, idle)

    def check(self) -> list[str]:
        """The invariants that do not hold."""
        return [*self._view.check(), *self._book.check()]

    @property
    def _next_round(self) -> int | None:
        """When the next plan is made, None where there is nothing to plan by."""
        wanted = self._plans or bool(self._book.lacking_room())
        return (self._round + 1) * self._policy.interval_ms if wanted and self._round is not None else None

    @property
    def _paused(self) -> bool:
        """Whether an operator keeps everything as it is."""
        return pause_of(self._view.store.get(SWITCH)) is not None

    @property
    def _plans(self) -> bool:
        """Whether there is anything to plan by."""
        return bool(self._policy.strategies) or any(pool.has_thresholds for pool in self._policy.load.pools)


def _has_come(time: int | None, now: int) -> bool:
    return time is not None and time <= now
