"""The core of gang_scheduler: facts and entitlements in, bindings and explanations out."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields

from gang_scheduler.domain import decisions
from gang_scheduler.domain.answers.inquiry import explain
from gang_scheduler.domain.answers.knowledge import Evictions, Knowledge
from gang_scheduler.domain.answers.tellings import Tellings
from gang_scheduler.domain.audit import audit
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.askers import Askers
from gang_scheduler.domain.evictions.evictor import EvictionRules, Evictor
from gang_scheduler.domain.evictions.victims import GangEviction
from gang_scheduler.domain.evictions.zone_clearing import ZoneClearing
from gang_scheduler.domain.line.claims import Claim, Claims
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.nodes.revocable_zones import RevocableZones, windows_of
from gang_scheduler.domain.queues.entitlement import entitlements
from gang_scheduler.domain.queues.quota_admission import evicted
from gang_scheduler.domain.reasons.block import OWN_CHANGE, Wake
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.reasons.group_reports import GroupReports
from gang_scheduler.domain.reserving.reservation_desk import Rank, ReservationDesk
from gang_scheduler.domain.room.renewal import Kernels, no_kernel
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.terms.load_policy import LoadPolicy
from gang_scheduler.domain.turns.assumptions import Assumptions, by_gang
from gang_scheduler.domain.turns.backfill import Backfill, Heads
from gang_scheduler.domain.turns.lineup import Lineup
from gang_scheduler.domain.turns.memory import dump, load
from gang_scheduler.domain.turns.turn import Turn, wake_of
from gang_scheduler.domain.turns.turns import Pass
from kube import Decision, Event, Key, Manifest, Outcome

FOR_ROOM = (Reason.NOT_ENOUGH_RESOURCES, Reason.NO_DOMAIN, Reason.QUEUE_CAPABILITY, Reason.DEVICES_MISSING)
"""The reasons for which somebody at the head of a queue gets room reserved after a while."""

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

    _reports: GroupReports = field(default_factory=GroupReports)
    _tellings: Tellings = field(init=False)
    _again: bool = False
    """Whether a head that is due was not looked at as such yet, or room that was held back came free in the last pass."""

    _let_go: int = -1
    """When that was last: at one moment it is looked at once."""

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
        self._tellings = Tellings(self.told_after_ms)
        self.cluster.room.ledger.all_strict = self.strict_fifo
        self.cluster.room.ledger.by_age = self.fifo
        self.cluster.room.views.kernels = self.kernels
        self.claims = Claims(self.cluster)
        self.desk = ReservationDesk(self.cluster)
        self._assumptions = Assumptions(self.cluster, self.claims)
        self._askers = Askers(self.cluster, self.line)
        self._lineup = Lineup(self.cluster, self.line, self.heads, self.limits, self._askers, self.explanations)
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
        cluster = self.cluster
        if cluster.room.ledger.queues is None:
            return []
        made = [decisions.released(claim, patch) for claim, patch in cluster.releases(in_flight)]
        cluster.room.ledger.now = now
        cluster.advance(now)
        touched = self._lineup.take_touched(in_flight, new=self._new)
        cluster.room.ledger.supply = cluster.room.table.totals()
        for slot in cluster.room.table.load.advance(now):
            cluster.room.table.room.add(slot)
        due = self._renew_claims(now)
        held = {slot: dict(rows) for slot, rows in cluster.room.table.held.items()}
        self.line.wake(cluster.room, self._strict_queue)
        cluster.room.ledger.released.clear()
        trial = Trial(cluster.room)
        evictor = Evictor(cluster, trial, self.claims, self._rules)
        backfill = Backfill(cluster, trial, self.claims, self.heads, now, due)
        turns = Pass(cluster, trial, self.claims, evictor, backfill, self.limits)
        ready = [unit for unit in self.line.ready if not self._busy(unit, in_flight)] if cluster.pause is None else []
        made += self.desk.open(now, in_flight)
        # In every pass: whether somebody is tried again must not decide when prices are looked at.
        cluster.room.look_ahead()
        if cluster.pause is None:
            self.desk.place(self._first_of(ready))
            turns.run(ready)
            evictor.present()  # Nobody leaves for a reservation: it takes what is free now.
            self.desk.place()
        self._planned = [turn.plan.claim for turn in turns.turns.values() if turn.plan]
        waits = {
            turn.unit: wake_of(turn, cluster.room.classes_of(turn.blocked))
            for turn in turns.turns.values()
            if turn.block
        }
        # Planned is not decided yet: nothing is kept for it when the books come back.
        for claim in self._planned:
            self.claims.end(claim)
        evictor.forget()
        trial.rollback(0)
        made += self.desk.close(now, in_flight)
        self.claims.renew()
        made += [decision for group in touched if (decision := evicted(group))]
        made += [decision for decision in self.clearing.clear(now) if decision.subject not in in_flight]
        gone = {decision.subject for decision in made}
        decided = list(self._decisions(turns, now, in_flight))
        made += [decision for _, decision in decided]
        old = (group for group in touched if group.pod_group is not None and group.key not in gone)
        self._reports.note([group.id for group in old], now)
        self._reports.drop(gang for unit, _ in decided for gang in unit)
        made += list(self._observed(turns, now, in_flight, busy=bool(made or in_flight)))
        for turn in turns.turns.values():
            self._park(turn, waits)
        self.heads.settle(now, self.line.__contains__)
        let_go = self._let_go != now and self._lets_go(held)
        self._again = let_go or (self.backfill and not due.issuperset(self._due(now)))
        if let_go:
            self._let_go = now
        else:
            self.line.seen(cluster.room)
        if cluster.pause is None:
            self.desk.seen()
        else:
            self.desk.put_off()
        self._new = False
        return made

    def deadline(self) -> int | None:
        """When room is to be reserved for a head that has waited long, a busy node opens, or the time of somebody is over."""
        times = [self.limits.next, self.desk.deadline(), self._reports.deadline(), self._tellings.deadline()]
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

    def _renew_claims(self, now: int) -> set[Unit]:
        """Let go of what has no point any more; those for whom room is kept look at it in every pass.

        Returns the heads that have waited so long that room has to be reserved for them.
        """
        self.claims.now = now
        due = self._due(now) if self.backfill else set()
        self._askers.look()
        for unit in self.limits.take(now):
            if unit in self.line:
                self.line.renew(unit)
        for claim in list(self.claims.promises.values()):
            if claim.unit not in self.line or not self.claims.holds(claim):
                self.claims.end(claim)
            else:
                self.line.renew(claim.unit)
        for claim in list(self.claims.reservations.values()):
            if claim.unit not in due or claim.unit not in self.line or not self.claims.holds(claim):
                self.claims.end(claim)
        for unit in sorted(due):
            if unit in self.line:
                self.line.renew(unit)
        self.claims.renew()
        return due

    def _lets_go(self, before: Mapping[int, Mapping[int, int]]) -> bool:
        """Whether less room is held back somewhere than when this pass began: others might have had it, but for their turn."""
        held = self.cluster.room.table.held
        return any(held.get(slot, {}).get(row, 0) < kept for slot, rows in before.items() for row, kept in rows.items())

    def _due(self, now: int) -> set[Unit]:
        """For whom room has to be reserved: heads that waited long, and those who may not be passed over any more."""
        heads = [unit for unit in self.heads.due(now) if not self.limits.over(unit, now)]
        return {*heads, *self.limits.pressing(now)}

    def _busy(self, unit: Unit, in_flight: AbstractSet[Key]) -> bool:
        if not in_flight:
            return False
        groups = (self.cluster.groups.get(gang) for gang in unit)
        return any(group is not None and group.key in in_flight for group in groups)

    def _first_of(self, units: Sequence[Unit]) -> Rank | None:
        """Priority and age of whoever waits and comes first: what decides who goes before a reservation that waits too."""
        if not self.cluster.room.reserved.by_name:
            return None
        groups = [group for unit in units if (group := self.cluster.groups.get(unit[0])) is not None]
        return min(((-group.priority(self.cluster.classes), group.created) for group in groups), default=None)

    def _strict_queue(self, unit: Unit) -> str | None:
        group = self.cluster.groups.get(unit[0])
        return group.queue if group and self.cluster.room.ledger.strict(group.queue) else None

    def _decisions(self, turns: Pass, now: int, in_flight: AbstractSet[Key]) -> Iterator[tuple[Unit, Decision]]:
        """What came of those who were tried, of whom each decision tells, and what those wait for who were tried a while ago."""
        names = self.cluster.room.table.names
        uids = {name: found.item.uid for name, found in self.cluster.room.reserved.by_name.items()}
        for turn in turns.turns.values():
            if turn.steps:
                yield turn.unit, decisions.placed(turn, names, uids, now)
            elif turn.plan:
                yield turn.unit, decisions.room_made(turn, now)
            elif turn.block is not None and (words := decisions.explained(turn, now)) is not None:
                if self._tellings.put_off(turn, now):
                    continue
                yield turn.unit, words
            self._tellings.forget(turn.unit)
        for turn in self._tellings.due(now, self.line, lambda unit: self._busy(unit, in_flight)):
            if (words := decisions.explained(turn, now)) is not None:
                yield turn.unit, words

    def _observed(self, turns: Pass, now: int, in_flight: AbstractSet[Key], *, busy: bool) -> Iterator[Decision]:
        """The statuses that follow pods, of groups that nothing else was said of; a successor tells all of them at once."""
        for gang in self._reports.take(now, busy=busy and not self._new):
            group = self.cluster.groups.get(gang)
            if group is None or group.pod_group is None:
                continue
            if group.key in in_flight:
                self._reports.note((gang,), now)
                continue
            unit = self._lineup.units.get(gang, ())
            if unit in self._tellings:
                continue
            tried = turns.turns.get(unit)
            told = self.explanations.get(unit) if tried is None else tried.block and tried.block.explanation
            status = decisions.observed(group, now, told)
            if status is not None:
                yield status

    def _park(self, turn: Turn, waits: dict[Unit, Wake]) -> None:
        """A unit that found no place waits; one with a decision comes back with its outcome."""
        if turn.steps:
            # It stays ready until its decision is assumed: what is only decided may be decided again.
            self.line.renew(turn.unit)
            return
        if turn.block is None:
            self._lineup.leave(turn.unit)
            return
        group = turn.groups[0] if turn.groups else None
        if turn.block.hopeless:
            self._askers.despair(turn.unit)
        elif self._rules.any and group is not None and turn.block.wake is not OWN_CHANGE:
            self._askers.wait(turn.unit, group.queue, group.priority(self.cluster.classes))
        if turn.place is not None and turn.block.explanation.reason in FOR_ROOM and not turn.block.hopeless:
            self.heads.wait(turn.unit, turn.groups[0].queue, turn.place)
            self.limits.wait(turn.unit, turn.groups)
        else:
            self.heads.leave(turn.unit)
            self.limits.leave(turn.unit)
        self.explanations[turn.unit] = turn.block.explanation
        self.line.park(turn.unit, waits[turn.unit], self._strict_queue(turn.unit))


def _is_choice(name: str, value: object) -> bool:
    return not name.startswith("_") and isinstance(value, str | int)
