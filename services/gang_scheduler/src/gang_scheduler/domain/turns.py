"""One pass over those who wait: the queues take turns, and in each the gangs by priority, minima before surplus, age, name.

After every success the queue's share is looked at anew, so the most entitled queue is always served next. A gang that
cannot be placed does not stop those behind it, except in a strict queue.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.attempt import Attempts
from gang_scheduler.domain.backfill import Backfill, Place
from gang_scheduler.domain.block import ANYTHING, OWN_CHANGE, Block, Wake
from gang_scheduler.domain.claims import Claims
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.eviction import Wish
from gang_scheduler.domain.evictor import Evictor, Plan
from gang_scheduler.domain.explain import Explanation, Reason
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.minimum import candidates, first_choice, shortage
from gang_scheduler.domain.pod_record import PodRecord
from gang_scheduler.domain.portions import Portion, lacks_minimum, portions
from gang_scheduler.domain.room import PodClass
from gang_scheduler.domain.trial import Step, Trial
from gang_scheduler.domain.waiting_line import Unit

MINIMUM, SURPLUS = 0, 1


@dataclass(slots=True, eq=False)
class Turn:
    """A unit in a pass. ``block`` is the first reason why something of it found no place."""

    unit: Unit
    groups: list[Group]
    block: Block | None = None
    blocked: list[PodRecord] = field(default_factory=list)
    started: list[Group] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rest: dict[Group, list[Portion]] = field(default_factory=dict)
    failed: set[PodClass] = field(default_factory=set)
    refused: Portion | None = None
    """The first portion that found no place."""

    place: Place | None = None
    """Where it stood in its queue when its minimum was tried last."""

    conceivable: bool = False
    """Whether others might be evicted for it one day: then any change may help."""

    plan: Plan | None = None
    """Who is to be evicted so that the unit can start."""

    def expect(self, plan: Plan, message: str) -> None:
        """Note that room is being freed for the unit; that is what is told."""
        self.plan = plan
        self.block = Block(Explanation(Reason.ROOM_BEING_FREED, message), ANYTHING)

    def refuse(self, block: Block, records: Iterable[PodRecord]) -> None:
        """Note why ``records`` found no place; the first reason is the one that is told."""
        self.block = self.block or block
        self.blocked.extend(records)


@dataclass(slots=True)
class Pass:
    """Places what it can on trial. ``turns`` are all units that it came to, in the order of their first turn."""

    cluster: Cluster
    trial: Trial
    claims: Claims
    evictor: Evictor
    backfill: Backfill
    turns: dict[Unit, Turn] = field(default_factory=dict)
    _attempts: Attempts = field(init=False)
    _queues: list[tuple[tuple[int, int, str, str], str]] = field(default_factory=list)
    _lines: dict[str, list[tuple[tuple[int, int, str, str, Unit], Turn]]] = field(default_factory=dict)
    _heads: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._attempts = Attempts(self.cluster.room, self.trial)

    def run(self, units: Iterable[Unit]) -> None:
        """Give every unit its turns."""
        for unit in units:
            turn = Turn(unit, [self.cluster.groups[gang] for gang in unit if gang in self.cluster.groups])
            if self._enter(turn) and not (unit in self.claims.promises and self._redeem(turn)):
                self._line_up(turn)
        ledger = self.cluster.room.ledger
        for queue, line in self._lines.items():
            heapq.heapify(line)
            self._queues.append((ledger.order(queue), queue))
        heapq.heapify(self._queues)
        while self._queues:
            order, queue = heapq.heappop(self._queues)
            now = ledger.order(queue)
            if now != order:
                heapq.heappush(self._queues, (now, queue))
                continue
            self._serve(queue)
            if self._lines[queue]:
                heapq.heappush(self._queues, (ledger.order(queue), queue))

    def _enter(self, turn: Turn) -> bool:
        """Whether the unit can be tried."""
        self.turns[turn.unit] = turn
        missing = self._incomplete(turn)
        if missing is not None:
            turn.refuse(missing, [r for group in turn.groups for r in group.pending.values()])
            return False
        for group in turn.groups:
            if group.started and group.pending:
                turn.rest[group] = portions(group)
        return True

    def _redeem(self, turn: Turn) -> bool:
        """Room is kept for the unit: it takes it, or goes on waiting. False when it has to look for room like all others."""
        claim = self.claims.promises[turn.unit]
        self.claims.lift([turn.unit])
        before = self.trial.checkpoint()
        failed = self._start(turn) if self._unstarted(turn) else self._add(turn)
        turn.steps.extend(self.trial.since(before))
        self.claims.restore([turn.unit])
        if not failed:
            return False
        if not self.claims.pending_room(claim):
            self.claims.end(claim)
            turn.block, turn.refused = None, None
            turn.blocked.clear()
            turn.failed.clear()
            for group in turn.groups:
                if group.started and group.pending:
                    turn.rest[group] = portions(group)
            return False
        turn.block = Block(Explanation(Reason.ROOM_BEING_FREED, _expectation(turn, len(claim.awaited))), ANYTHING)
        return True

    def _incomplete(self, turn: Turn) -> Block | None:
        """Why a unit cannot be tried at all: members, groups or the leave of a queue are missing."""
        present = {group.id for group in turn.groups}
        name = turn.unit[0].name
        for gang in turn.unit:
            if gang not in present:
                return _waits(
                    Reason.BUNDLE_INCOMPLETE,
                    f"gang {gang.namespace}/{gang.name} of the bundle of {name} does not exist",
                )
        for group in turn.groups:
            if group.terms is None:
                return _waits(Reason.GROUP_MISSING, f"PodGroup {group.id.namespace}/{group.name} does not exist")
            if not group.let_in:
                return _waits(
                    Reason.BUNDLE_INCOMPLETE,
                    f"gang {group.name} of the bundle has not been let in by queue {group.queue}",
                )
            if group.started or group.id.kind == "pod":
                continue
            lack = shortage(group, candidates(group))
            if lack:
                return _waits(Reason.NOT_ENOUGH_PODS, lack)
        return None

    def _line_up(self, turn: Turn) -> None:
        """The unit goes to its place in its queue, if it has anything left to try."""
        stage = self._stage(turn)
        if stage is None:
            return
        group = turn.groups[0]
        priority = max(item.priority(self.cluster.classes) for item in turn.groups)
        place = (-priority, stage, group.created, group.name, turn.unit)
        line = self._lines.setdefault(group.queue, [])
        heapq.heappush(line, (place, turn))

    def _stage(self, turn: Turn) -> int | None:
        if self._unstarted(turn):
            return MINIMUM
        waiting = [group for group, rest in turn.rest.items() if rest]
        if not waiting:
            return None
        return MINIMUM if any(lacks_minimum(group, self._placed(turn, group)) for group in waiting) else SURPLUS

    def _serve(self, queue: str) -> None:
        """The first of the queue has its turn."""
        place, turn = heapq.heappop(self._lines[queue])
        self.evictor.present()
        turn.place = place if place[1] == MINIMUM else None
        before = self.trial.checkpoint()
        starts = bool(self._unstarted(turn))
        waiting = [record for group in turn.groups for record in group.pending.values()]
        passed = self.backfill.passable(turn.unit, queue, place, waiting)
        self.claims.lift(passed)
        failed = self._start(turn) if starts else self._add(turn)
        turn.steps.extend(self.trial.since(before))
        self.claims.restore(passed)
        if not failed:
            self._line_up(turn)
            return
        if place[1] == MINIMUM and turn.block is not None and not turn.block.hopeless and not turn.steps:
            self.evictor.reserved = [claim for unit, claim in self.claims.reservations.items() if unit not in passed]
            self._make_room(turn, -place[0])
        if starts and self.cluster.room.ledger.strict(queue) and not (turn.block and turn.block.hopeless):
            self._stop(queue, turn)

    def _make_room(self, turn: Turn, priority: int) -> None:
        """Ask whether others may be evicted for the minimum of the unit."""
        groups = self._unstarted(turn)
        if groups:
            records = [record for group in groups for record in first_choice(candidates(group))]
            wish = Wish(groups, records, priority, lambda: self._attempts.starts(groups))
        elif turn.refused and lacks_minimum(turn.refused[0].group, 0):
            portion, group = turn.refused, turn.refused[0].group
            wish = Wish([group], list(portion), priority, lambda: self._attempts.adds(group, portion))
        else:
            return
        plan = self.evictor.plan(turn.unit, wish) if wish.records else None
        if plan is None:
            turn.conceivable = bool(wish.records) and self.evictor.conceivable(wish)
            if turn.unit in self.backfill.due:
                self.evictor.present()
                self.backfill.reserve(turn.unit, wish)
        else:
            turn.expect(plan, _expectation(turn, len(plan.victims)))

    def _start(self, turn: Turn) -> bool:
        groups = self._unstarted(turn)
        block = self._attempts.start(groups)
        if block is not None:
            turn.refuse(block, [record for group in groups for record in group.pending.values()])
            return True
        turn.started.extend(groups)
        for group in groups:
            if len(group.pending) > 1:
                turn.rest[group] = portions(group)
        return False

    def _add(self, turn: Turn) -> bool:
        """Bind the next portion that has a place; returns whether none has."""
        for group, rest in turn.rest.items():
            while rest:
                portion = rest.pop(0)
                kind = self.cluster.room.class_of(portion[0])
                if len(portion) == 1 and kind in turn.failed:
                    turn.blocked.extend(portion)
                    continue
                block = self._attempts.add(group, portion)
                if block is None:
                    return False
                turn.refuse(block, portion)
                turn.refused = turn.refused or portion
                turn.failed.add(kind)
        return True

    def _stop(self, queue: str, head: Turn) -> None:
        """Nobody passes the head of a strict queue."""
        for _, turn in self._lines[queue]:
            message = f"queue {queue} is strict and {head.unit[0].name} is before {turn.unit[0].name}"
            turn.refuse(
                _waits(Reason.BEHIND_HEAD, message, ANYTHING),
                [r for g in turn.groups for r in g.pending.values() if r.slot < 0],
            )
        self._lines[queue].clear()

    def _unstarted(self, turn: Turn) -> list[Group]:
        return [group for group in turn.groups if not group.started and group not in turn.started and _wants(group)]

    def _placed(self, turn: Turn, group: Group) -> int:
        return sum(len(step.records) for step in turn.steps if step.records[0].group is group)


def _expectation(turn: Turn, victims: int) -> str:
    who = " and ".join(group.name for group in turn.groups)
    if victims:
        return f"room for {who} is kept until {victims} evicted {'pod has' if victims == 1 else 'pods have'} left it"
    return f"room for {who} is kept until the pods that are leaving have left it"


def _wants(group: Group) -> bool:
    """Whether a gang has anything to start."""
    return bool(group.pending)


def _waits(reason: Reason, message: str, wake: Wake = OWN_CHANGE) -> Block:
    return Block(Explanation(reason, message), wake)


def wake_of(turn: Turn, classes: Sequence[PodClass]) -> Wake:
    """What a unit waits for: with several kinds of waiting members anything may help."""
    assert turn.block is not None
    if turn.conceivable and not turn.block.wake.own:
        return ANYTHING
    return turn.block.wake if len(classes) <= 1 or not turn.failed else ANYTHING
