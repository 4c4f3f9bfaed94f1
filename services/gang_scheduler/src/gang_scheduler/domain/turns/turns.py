"""One pass over those who wait: the queues take turns, and in each the gangs by priority, minima before surplus, age, name.

Where that is chosen, queues are served first in, first out: priority then counts for evictions only.

After every success the queue's share is looked at anew, so the most entitled queue is always served next. A gang that
cannot be placed does not stop those behind it, except in a strict queue.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.evictor import Evictor
from gang_scheduler.domain.evictions.wish import Wish
from gang_scheduler.domain.gangs.minimum import candidates, first_choice
from gang_scheduler.domain.gangs.portions import lacks_minimum, portions
from gang_scheduler.domain.line.claims import Claims
from gang_scheduler.domain.line.wait_limits import WaitLimits
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.queues.queue_ledger import QueueOrder
from gang_scheduler.domain.reasons.block import ANYTHING, OWN_CHANGE, Block
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.room.trial import Step, Trial
from gang_scheduler.domain.terms.gang_terms import MatchPolicy
from gang_scheduler.domain.terms.revocable_pods import is_last, put_last
from gang_scheduler.domain.turns.attempt import Attempts
from gang_scheduler.domain.turns.backfill import Backfill
from gang_scheduler.domain.turns.turn import Turn, expectation, incomplete, waits
from kube import rfc3339

MINIMUM, SURPLUS = 0, 1


@dataclass(slots=True)
class Pass:
    """Places what it can on trial. ``turns`` are all units that it came to, in the order of their first turn."""

    cluster: Cluster
    trial: Trial
    claims: Claims
    evictor: Evictor
    backfill: Backfill
    limits: WaitLimits = field(default_factory=WaitLimits)
    turns: dict[Unit, Turn] = field(default_factory=dict)
    _attempts: Attempts = field(init=False)
    _queues: list[tuple[QueueOrder, str]] = field(default_factory=list)
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
            line = self._lines[queue]
            self._serve(queue)
            while line and not self._queues:  # no other queue to compare with
                self._serve(queue)
            if line:
                heapq.heappush(self._queues, (ledger.order(queue), queue))
        for turn in self.turns.values():
            if any(step.grants for step in turn.steps):
                turn.steps = [self._granted(step) for step in turn.steps]

    def _granted(self, step: Step) -> Step:
        """The step with its resource claims reserved for all who got them in this pass: decisions are carried out in any order."""
        if not step.grants:
            return step
        book = self.cluster.room.claim_book
        return step._replace(grants=tuple(grant for record in step.records for grant in book.grants(record.pod)))

    def _enter(self, turn: Turn) -> bool:
        """Whether the unit can be tried."""
        self.turns[turn.unit] = turn
        missing = incomplete(turn)
        if missing is not None:
            turn.refuse(missing, [r for group in turn.groups for r in group.pending.values()])
            return False
        if not turn.alone:
            self._look_for_rest(turn)
        return True

    def _look_for_rest(self, turn: Turn) -> None:
        """The unit is tried from the beginning."""
        turn.block, turn.refused = None, None
        turn.blocked.clear()
        turn.failed.clear()
        turn.rest = {group: portions(group) for group in turn.groups if group.open and group.pending}

    def _redeem(self, turn: Turn) -> bool:
        """Room is kept for the unit: it takes it, or goes on waiting. False when it has to look for room like all others."""
        claim = self.claims.promises[turn.unit]
        # A promise goes before reservations, but takes what is reserved only when nothing else is there for it.
        for lifted in ([turn.unit], [turn.unit, *self.claims.reservations]):
            self._look_for_rest(turn)
            self.claims.lift(lifted)
            before = self.trial.checkpoint()
            unstarted = self._unstarted(turn)
            failed = self._start(turn, unstarted) if unstarted else self._add(turn)
            turn.steps.extend(self.trial.since(before))
            self.claims.restore(lifted)
            if not failed:
                turn.block = None
                turn.blocked.clear()
                return False
            if not self.claims.reservations:
                break
        if not self.claims.pending_room(claim):
            self.claims.end(claim)
            self._look_for_rest(turn)
            return False
        turn.block = Block(Explanation(Reason.ROOM_BEING_FREED, expectation(turn, len(claim.awaited))), ANYTHING)
        return True

    def _line_up(self, turn: Turn) -> None:
        """The unit goes to its place in its queue, if it has anything left to try."""
        stage = self._stage(turn)
        if stage is None:
            return
        group = turn.groups[0]
        created = next(iter(group.pending.values())).order[1] if turn.alone else group.created
        priority = self._priority(turn)
        if self.cluster.room.ledger.by_age:
            priority = put_last(0) if is_last(priority) else 0
        place = (-priority, stage, created, group.name, turn.unit)
        line = self._lines.setdefault(group.queue, [])
        heapq.heappush(line, (place, turn))

    def _priority(self, turn: Turn) -> int:
        if turn.alone:
            return -next(iter(turn.groups[0].pending.values())).order[0]
        return max(group.priority(self.cluster.classes) for group in turn.groups)

    def _stage(self, turn: Turn) -> int | None:
        if turn.alone:
            return MINIMUM if turn.groups[0].pending and not turn.started else None
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
        unstarted = turn.groups if turn.alone else self._unstarted(turn)
        records = (record for group in turn.groups for record in group.pending.values())
        passed = self.backfill.passable(turn.unit, queue, place, records)
        self.claims.lift(passed)
        failed = self._start(turn, unstarted) if unstarted else self._add(turn)
        turn.steps.extend(self.trial.since(before))
        self.claims.restore(passed)
        if not failed:
            if not turn.alone:
                self._line_up(turn)
            return
        if place[1] == MINIMUM and turn.block is not None and _for_room(turn.block) and not turn.steps:
            self.evictor.reserved = [claim for unit, claim in self.claims.reservations.items() if unit not in passed]
            self._make_room(turn, self._priority(turn))
        self._mention_reservations(turn, passed)
        self._mention_limit(turn)
        if unstarted and self.cluster.room.ledger.strict(queue) and not (turn.block and turn.block.hopeless):
            self._stop(queue, turn)

    def _mention_reservations(self, turn: Turn, passed: Sequence[Unit]) -> None:
        """Say for whom room is reserved that the unit might have had."""
        names = [unit[0].name for unit in self.claims.reservations if unit not in passed and unit != turn.unit]
        if names and turn.block is not None and turn.plan is None and not turn.block.hopeless:
            told = turn.block.explanation
            message = f"{told.message}; room is reserved for {' and '.join(names)}, waiting at the head of the queue"
            turn.block = turn.block._replace(explanation=Explanation(told.reason, message, told.detail))

    def _mention_limit(self, turn: Turn) -> None:
        """Say that the unit has waited as long as it wanted to."""
        if turn.block is None or turn.plan is not None or not self.limits.over(turn.unit, self.backfill.now):
            return
        told = turn.block.explanation
        at = rfc3339(self.limits.until[turn.unit])
        message = f"{told.message}; its waiting time was over at {at}: no room is reserved for it any more"
        turn.block = turn.block._replace(explanation=Explanation(told.reason, message, told.detail))

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
            turn.expect(plan, expectation(turn, len(plan.victims)))

    def _start(self, turn: Turn, groups: list[Group]) -> bool:
        block = self._attempts.start(groups)
        if block is not None:
            turn.refuse(block, [record for group in groups for record in group.pending.values()])
            return True
        turn.started.extend(groups)
        for group in groups:
            if len(group.pending) > 1 and _is_open_then(group):
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
            message = f"queue {queue} is strict and {head.unit[0].title} is before {turn.unit[0].title}"
            turn.refuse(
                waits(Reason.BEHIND_HEAD, message, ANYTHING),
                [r for g in turn.groups for r in g.pending.values() if r.slot < 0],
            )
        self._lines[queue].clear()

    def _unstarted(self, turn: Turn) -> list[Group]:
        return [group for group in turn.groups if not group.open and group not in turn.started and _wants(group)]

    def _placed(self, turn: Turn, group: Group) -> int:
        return sum(len(step.records) for step in turn.steps if step.records[0].group is group)


def _for_room(block: Block) -> bool:
    """Whether the room of others could help."""
    return not block.hopeless and block.wake is not OWN_CHANGE


def _wants(group: Group) -> bool:
    """Whether a gang has anything to start."""
    return bool(group.pending)


def _is_open_then(group: Group) -> bool:
    """Whether members beyond its minimum may follow once a gang has started."""
    return group.terms is None or group.terms.match is not MatchPolicy.ONLY_WAITING
