"""The core of gang_scheduler: facts and entitlements in, bindings and explanations out."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields

from gang_scheduler.domain import decisions
from gang_scheduler.domain.answers.inquiry import explain
from gang_scheduler.domain.answers.knowledge import Evictions, Knowledge
from gang_scheduler.domain.audit import audit
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.columns.compiled import Kernels, no_kernel
from gang_scheduler.domain.evictions.askers import Askers
from gang_scheduler.domain.evictions.evictor import EvictionRules, Evictor
from gang_scheduler.domain.evictions.victims import GangEviction
from gang_scheduler.domain.evictions.zone_clearing import ZoneClearing
from gang_scheduler.domain.line.claims import Claim, Claims
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.nodes.revocable_zones import RevocableZones, windows_of
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.queues.entitlement import entitlements
from gang_scheduler.domain.queues.quota_admission import evicted
from gang_scheduler.domain.reasons.block import Wake
from gang_scheduler.domain.reasons.explain import Explanation
from gang_scheduler.domain.reserving.reservation_desk import ReservationDesk
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.terms.load_policy import LoadPolicy
from gang_scheduler.domain.turns.assumptions import Assumptions, by_gang
from gang_scheduler.domain.turns.backfill import Backfill, Heads
from gang_scheduler.domain.turns.kept_room import KeptRoom
from gang_scheduler.domain.turns.lineup import Lineup
from gang_scheduler.domain.turns.memory import dump, load
from gang_scheduler.domain.turns.tellings import Tellings
from gang_scheduler.domain.turns.turn import Turn, wake_of
from gang_scheduler.domain.turns.turns import Pass
from gang_scheduler.domain.verdicts import Verdicts
from kube import Decision, Event, Key, Manifest, Outcome

SERVED = frozenset({"tidegate", "volcano", "", "default-scheduler", "koord-scheduler"})
"""The scheduler names whose pods are placed here."""


@dataclass(slots=True)
class SchedulerCore:
    """Where pods go. State is what facts, entitlements and decisions on their way make it; deciding leaves it as it was."""

    schedulers: frozenset[str] = SERVED
    placement: str = Placement.BINPACK
    """``binpack`` or ``spread``."""

    preemption: bool = True
    reclaim: bool = True
    backfill: bool = True
    gang_eviction: str = GangEviction.WHOLE
    """``whole``, or ``surplus``: no gang is evicted below its minimum."""

    strict_fifo: bool = False
    """Whether nobody passes the head of any queue."""

    fifo: bool = False
    """Whether those of a queue are served by age, whatever their priority."""

    load: LoadPolicy = field(default_factory=LoadPolicy)
    revocable_zones: str = ""
    """The hours of nodes that are lent: ``zone=08:00-20:00``, several with commas between."""

    told_after_ms: int = 0
    """How long somebody waits before it is written why."""

    kernels: Kernels = no_kernel
    """Compiled code for what vectors are slow at, with the same results; made by the shell, which has threads."""

    cluster: Cluster = field(init=False)
    line: WaitingLine = field(default_factory=WaitingLine)
    explanations: dict[Unit, Explanation] = field(default_factory=dict)
    """What the units that wait were last told."""

    claims: Claims = field(init=False)
    """The room that is kept for somebody."""

    _verdicts: Verdicts = field(init=False)
    _kept: KeptRoom = field(init=False)
    _due: set[Unit] = field(default_factory=set)
    """For whom room had to be reserved in the last pass."""

    _again: bool = False
    """Whether a head that is due was not looked at as such yet, or room that was held back came free in the last pass."""

    _let_go: int = -1
    """When that was last: at one moment it is looked at once."""

    _held: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """What was held back on nodes when the last pass began, by their places in the table and its rows."""

    heads: Heads = field(default_factory=Heads)
    """Who waits for room in which queue, and for how long."""

    evictions: Evictions = field(default_factory=Evictions)
    """Who was evicted of late, for whoever asks."""

    desk: ReservationDesk = field(init=False)
    """Sees to the Reservations that users make."""

    clearing: ZoneClearing = field(init=False)
    """Sends pods away from nodes whose hours are over."""

    limits: WaitLimits = field(default_factory=WaitLimits)
    """Who wants to wait for so long and no longer."""

    _new: bool = True
    """Whether no pass was made yet: a successor finds waiting whom its predecessor tried in vain."""

    _planned: list[Claim] = field(default_factory=list)
    _assumptions: Assumptions = field(init=False)
    _askers: Askers = field(init=False)
    _rules: EvictionRules = field(init=False)
    _remembered: bytes = b""
    _lineup: Lineup = field(init=False)

    def __post_init__(self) -> None:
        zones = RevocableZones(windows_of(self.revocable_zones))
        self.cluster = Cluster(self.schedulers, Placement(self.placement), self.load, zones)
        self.clearing = ZoneClearing(self.cluster)
        self.cluster.room.ledger.all_strict = self.strict_fifo
        self.cluster.room.ledger.by_age = self.fifo
        self.cluster.room.views.kernels = self.kernels
        self.claims = Claims(self.cluster)
        self.desk = ReservationDesk(self.cluster)
        self._assumptions = Assumptions(self.cluster, self.claims)
        self._askers = Askers(self.cluster, self.line)
        self._lineup = Lineup(self.cluster, self.line, self.heads, self.limits, self._askers, self.explanations)
        self._verdicts = Verdicts(self.cluster, self._lineup, Tellings(self.told_after_ms))
        self._kept = KeptRoom(self.claims, self.line, self.heads, self.limits, self.backfill)
        self._rules = EvictionRules(self.preemption, self.reclaim, GangEviction(self.gang_eviction))

    def fold(self, events: Sequence[Event], now: int) -> None:
        """Take in what one change set changed."""
        self.cluster.fold(events, now)

    def hear(self, service: str, decision: Decision) -> None:
        """Take in the entitlements of the queues. Until the first ones were heard nothing is placed."""
        if decision.name == "EntitlementsComputed":
            payload = decision.payload or {}
            self.cluster.room.ledger.hear_order(payload.get("order") or {})
            self.cluster.hear(entitlements(payload))
            self._askers.shares_changed = True

    def assume(self, decision_id: str, decision: Decision) -> None:
        """Count the bindings of an own decision as done."""
        self.evictions.note(decision, self.claims.now)
        self.clearing.note(decision)
        self._assumptions.add(decision_id, decision)

    def settle(self, outcome: Outcome) -> None:
        """Take back what was assumed and did not become a fact. What did may be wanted by others: it can be evicted now."""
        for group, records in by_gang(self._assumptions.settle(outcome)):
            self._askers.tempt(group.queue, records)
        self._lineup.settle(outcome)

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """Place whoever can be placed, and tell the others why they wait."""
        cluster, first = self.cluster, self._new
        if cluster.room.ledger.queues is None:
            return []
        made = [decisions.released(claim, patch) for claim, patch in cluster.releases(in_flight)]
        touched = self._look_around(now, in_flight)
        made += self.desk.open(now, in_flight)
        turns, waits = self._pass(now, in_flight)
        made += self.desk.close(now, in_flight)
        self.claims.renew()
        made += [decision for group in touched if (decision := evicted(group))]
        made += [decision for decision in self.clearing.clear(now) if decision.subject not in in_flight]
        gone = {decision.subject for decision in made}
        told = list(self._verdicts.told(turns.values(), now, in_flight))
        made += [decision for _, decision in told]
        self._verdicts.note(touched, [unit for unit, _ in told], gone, now)
        # A successor tells all statuses at once.
        busy = bool(made or in_flight) and not first
        made += list(self._verdicts.observed(turns, now, in_flight, busy=busy))
        self._close(turns, waits, now)
        return made

    def _look_around(self, now: int, in_flight: AbstractSet[Key]) -> list[Group]:
        """Bring the books, the line and the room that is kept to ``now``; returns the groups that changed."""
        room = self.cluster.room
        room.ledger.now = self.claims.now = now
        self.cluster.advance(now)
        touched = self._lineup.take_touched(in_flight, new=self._new)
        room.ledger.supply = room.table.totals()
        for slot in room.table.load.advance(now):
            room.table.room.add(slot)
        self._due = self._kept.due(now)
        self._askers.look()
        self._kept.renew(self._due, now)
        self._held = {slot: dict(rows) for slot, rows in room.table.held.items()}
        self.line.wake(room, self._lineup.strict_queue)
        room.ledger.released.clear()
        return touched

    def _pass(self, now: int, in_flight: AbstractSet[Key]) -> tuple[dict[Unit, Turn], dict[Unit, Wake]]:
        """Give everybody a turn, on trial; returns the turns, and what those wait for who found no place."""
        cluster = self.cluster
        trial = Trial(cluster.room)
        evictor = Evictor(cluster, trial, self.claims, self._rules)
        backfill = Backfill(cluster, trial, self.claims, self.heads, now, self._due)
        passed = Pass(cluster, trial, self.claims, evictor, backfill, self.limits)
        # In every pass: whether somebody is tried again must not decide when prices are looked at.
        cluster.room.look_ahead()
        if cluster.pause is None:
            ready = self._lineup.ready(in_flight)
            self.desk.place(self._lineup.first_of(ready))
            passed.run(ready)
            if self.desk.busy:
                evictor.present()  # Nobody leaves for a reservation: it takes what is free now.
                self.desk.place()
        tried = passed.turns.values()
        self._planned = [turn.plan.claim for turn in tried if turn.plan]
        # Planned is not decided yet: nothing is kept for it when the books come back.
        for claim in self._planned:
            self.claims.end(claim)
        evictor.forget()
        waits = {turn.unit: wake_of(turn, cluster.room.classes_of(turn.blocked)) for turn in tried if turn.block}
        trial.rollback(0)
        return passed.turns, waits

    def _close(self, turns: dict[Unit, Turn], waits: dict[Unit, Wake], now: int) -> None:
        """Those who were tried wait, or come back with the outcome of what was decided."""
        for turn in turns.values():
            self._lineup.park(turn, waits.get(turn.unit), evicts=self._rules.any)
        self.heads.settle(now, self.line.__contains__)
        let_go = self._let_go != now and self._lets_go()
        self._again = let_go or not self._due.issuperset(self._kept.due(now))
        if let_go:
            self._let_go = now
        else:
            self.line.seen(self.cluster.room)
        if self.cluster.pause is None:
            self.desk.seen()
        else:
            self.desk.put_off()
        self._new = False

    def _lets_go(self) -> bool:
        """Whether less room is held back somewhere than when this pass began: others might have had it, but for their turn."""
        held = self.cluster.room.table.held
        before = ((slot, row, kept) for slot, rows in self._held.items() for row, kept in rows.items())
        return any(held.get(slot, {}).get(row, 0) < kept for slot, row, kept in before)

    def deadline(self) -> int | None:
        """When room is to be reserved for a head that has waited long, a busy node opens, or the time of somebody is over."""
        times = [self.limits.next, self.desk.deadline(), self._verdicts.deadline()]
        times += [self.cluster.zones.next_change(), self.clearing.deadline()]
        if self.line.waits():
            times.append(self.cluster.room.table.load.next_expiry())
            times.append(self.cluster.cooldowns.next_end(self.claims.now))
        if self.backfill:
            times.append(self.heads.next_due(self.claims.now))
        if self._again:
            times.append(self.claims.now)
        return min((time for time in times if time is not None), default=None)

    def remember(self) -> bytes | None:
        """The claims, those of the decisions just made included, and what was learned; None if all is as it was."""
        made = {claim.unit: claim for claim in self._planned}
        kept = {claim.unit: claim for claim in self.claims.promises.values()}
        claims = [*(kept | made).values(), *self.claims.reservations.values()]
        foresight = self.cluster.room.foresight.remember()
        runs = self.cluster.run_times.history.dump()
        content = dump(claims, self.heads.since, self.heads.first(), runs, foresight, self.clearing.planned)
        if content == (self._remembered or dump((), {}, {})):
            return None
        self._remembered = content
        return content

    def restore(self, content: bytes) -> None:
        """Take up the claims of a predecessor. What became of the evictions behind them is told by the facts."""
        self._remembered = content
        found = load(content)
        self.heads.recall(found.heads, found.first)
        self.cluster.run_times.history.load(found.runs)
        self.cluster.room.foresight.restore(found.foresight)
        self.clearing.last = self.clearing.planned = found.cleared
        for claim in found.claims:
            claim.ordered = True
            self.claims.add(claim)

    def query(self, name: str, arguments: Manifest) -> Manifest:
        """Answer ``explain`` for a pod, a PodGroup or a job's group, or ``settings``; raises KeyError for another question."""
        if name == "settings":
            return {
                item.name: value for item in fields(self) if _is_choice(item.name, value := getattr(self, item.name))
            }
        if name != "explain":
            raise KeyError(name)
        now = max(self.claims.now, int(arguments.get("now") or 0))
        knowledge = Knowledge(
            self.cluster,
            self.explanations,
            self.claims,
            self.heads,
            self.line,
            self._rules,
            self.evictions,
            self.backfill,
            now,
        )
        return explain(knowledge, arguments)

    def check(self) -> list[str]:
        """The invariants that do not hold, in words."""
        return audit(self.cluster)


def _is_choice(name: str, value: object) -> bool:
    """Whether it says what is decided. How long words wait says only when they are told, and is forgotten with the process."""
    return not name.startswith("_") and isinstance(value, str | bool)
