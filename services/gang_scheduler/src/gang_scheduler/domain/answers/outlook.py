"""What would have to happen before a unit that waits can start: who has to end, who might be evicted, and when that is.

Everything is tried on the books themselves, by the same code that decides, and taken back. That costs about as much as a
pass, so it is left out where more than ``MOST_PODS`` pods are placed: `tidegate whatif` answers it from a snapshot then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gang_scheduler.domain.answers.knowledge import Knowledge
from gang_scheduler.domain.evictions.evictor import EvictionRules, Evictor
from gang_scheduler.domain.evictions.wish import Wish
from gang_scheduler.domain.gangs.minimum import candidates, first_choice
from gang_scheduler.domain.gangs.portions import lacks_minimum, portions
from gang_scheduler.domain.line.claims import Claim
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.terms.revocable_pods import stated_priority
from gang_scheduler.domain.turns.attempt import Attempts
from gang_scheduler.domain.turns.backfill import Backfill
from kube import Key, Manifest, rfc3339
from kube.running_estimates import turn_after
from kube.words import NAMED, counted, some, verb

MOST_PODS = 1_000

_HIGHEST = 2_000_000_000
"""Above the priority of all work of users."""


@dataclass(slots=True)
class Outlook:
    """Looks ahead for one unit, whose ``records`` are to be placed together."""

    knowledge: Knowledge
    trial: Trial
    unit: Unit
    groups: list[Group]
    records: list[PodRecord]

    def manifest(self) -> Manifest:
        """``after``: who has to end first; ``evict``: who could be evicted for it; ``estimate``: when it starts."""
        promise = self.knowledge.claims.promises.get(self.unit)
        if promise is not None:
            return self._promised(promise)
        placed = sum(1 for _ in self.knowledge.cluster.placed())
        if placed > MOST_PODS:
            return {
                "outlook": f"not looked into here, as {counted(placed, 'pod')} {verb(placed)} placed; `tidegate whatif KIND/NAME` does"
            }
        return self._after() | ({} if self._is_surplus() else self._evictable())

    def _is_surplus(self) -> bool:
        """Whether its gang does without what is looked at here: then nobody leaves for it."""
        lead = self.groups[0]
        return lead.id.kind != "pod" and lead.started and not lacks_minimum(lead, 0)

    def _promised(self, claim: Claim) -> Manifest:
        awaited = self._present(claim.awaited)
        nodes = sorted({node for _, node in claim.places.values()})
        return {
            "after": _names(awaited),
            "nodes": nodes,
            "estimate": f"once {some([record.key.name for record in awaited]) or 'those who leave'} left {', '.join(nodes[:NAMED])}",
        }

    def _after(self) -> Manifest:
        k, wish = self.knowledge, self._wish()
        backfill = Backfill(k.cluster, self.trial, k.claims, k.heads, k.now)
        heads = self._before(backfill)
        claim = k.claims.reservations.get(self.unit) or backfill.foresee(self.unit, wish, heads)
        if claim is None and heads and (alone := backfill.foresee(self.unit, wish)) is not None:
            return self._behind(heads, alone)
        if claim is None:
            return {"after": [], "estimate": "never as things are: not even if all that runs now ended"}
        awaited = self._present(claim.awaited)
        nodes = sorted({node for _, node in claim.places.values() if node})
        answer: Manifest = {"after": _names(awaited), "nodes": nodes}
        if not awaited:
            return answer | {"estimate": "there is room for it already: as soon as those before it had their turn"}
        ends = [(record.key.name, k.cluster.run_times.expected_end(record, k.now)) for record in awaited]
        return answer | turn_after(ends, claim.until)

    def _before(self, backfill: Backfill) -> list[Claim]:
        """The heads for whom room is reserved that the unit may not take."""
        others = {unit: claim for unit, claim in self.knowledge.claims.reservations.items() if unit != self.unit}
        place = self.knowledge.heads.places.get(self.unit) if others else None
        passed = backfill.passable(self.unit, *place, self.records) if place is not None else []
        return [claim for unit, claim in others.items() if unit not in passed]

    def _behind(self, heads: Sequence[Claim], alone: Claim) -> Manifest:
        """There is no room beside the heads: it comes when they have started and ended."""
        names = [f"{unit.namespace}/{unit.title}" for head in heads for unit in head.unit]
        answer: Manifest = {"after": _names(self._present(alone.awaited)), "behind": names}
        who = ", ".join(names[:NAMED])
        ends = [self._end_of(head) for head in heads]
        if None in ends or (alone.awaited and alone.until is None):
            return answer | {
                "estimate": f"once {who}, for whom room is reserved, started and ended; nobody says when that is"
            }
        until = max(end for end in (*ends, alone.until or 0) if end is not None)
        words = f"{rfc3339(until)}, by when {who}, for whom room is reserved, should have started and ended"
        return answer | {"estimateMs": until, "estimate": words}

    def _end_of(self, head: Claim) -> int | None:
        """When one for whom room is reserved will have ended, in milliseconds since the epoch; None when nobody knows."""
        run_times = self.knowledge.cluster.run_times
        lengths = [run_times.estimate(record) for record, _ in self.knowledge.claims.waiting(head)]
        known = [length for length in lengths if length is not None]
        if head.until is None or not known or len(known) < len(lengths):
            return None
        return head.until + max(known)

    def _evictable(self) -> Manifest:
        """Whom the unit could have evicted if only it were important enough."""
        k = self.knowledge
        rules = EvictionRules(preemption=True, reclaim=False, gangs=k.rules.gangs)
        evictor = Evictor(k.cluster, self.trial, k.claims, rules)
        wish = self._wish()
        own = wish.priority
        wish.priority = _HIGHEST
        plan = None
        try:
            plan = evictor.plan(self.unit, wish)
        finally:
            evictor.forget()
            if plan is not None:
                k.claims.end(plan.claim)
            k.claims.renew()
        if plan is None or not plan.victims:
            return {}
        least = max(stated_priority(record.form.priority) for record in plan.victims) + 1
        answer: Manifest = {
            "evictable": _names(plan.victims),
            "priorityNeeded": least,
            "priority": stated_priority(own),
        }
        return answer | ({} if k.rules.preemption else {"preemption": "off"})

    def _wish(self) -> Wish:
        attempts = Attempts(self.knowledge.cluster.room, self.trial)
        priority = max(group.priority(self.knowledge.cluster.classes) for group in self.groups)
        lead = self.groups[0]
        if lead.open:
            return Wish([lead], self.records, priority, lambda: attempts.adds(lead, self.records))
        return Wish(self.groups, self.records, priority, lambda: attempts.starts(self.groups))

    def _present(self, awaited: dict[Key, str]) -> list[PodRecord]:
        found = (self.knowledge.cluster.pods.get(key) for key in sorted(awaited))
        return [record for record in found if record is not None and record.pod.uid == awaited[record.key]]


def wanted(groups: Sequence[Group]) -> list[PodRecord]:
    """The members of gangs that have not started which start together."""
    return [record for group in groups if group.pending for record in first_choice(candidates(group))]


def up_to(record: PodRecord) -> list[PodRecord]:
    """The members of a gang that runs which are placed before ``record`` and with it; empty where nothing can be said."""
    found: list[PodRecord] = []
    for portion in portions(record.group):
        found += portion
        if record in portion:
            return found
    return []


def _names(records: Sequence[PodRecord]) -> list[str]:
    return [f"{record.key.namespace}/{record.key.name}" for record in records]
