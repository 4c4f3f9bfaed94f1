"""What answers to people are made from: the books, who waits for what, and what became of those who were evicted."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.evictor import EvictionRules
from gang_scheduler.domain.line.claims import Claims
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.reasons.explain import Explanation
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.turns.backfill import Heads
from kube import Decision, Key, Manifest, Verb

KEPT = 2_000
"""So many evictions are remembered, the newest."""


@dataclass(slots=True)
class Evictions:
    """Who was evicted of late, for whom and why; what was before the start is told by the conditions of pods alone."""

    of: dict[Key, Manifest] = field(default_factory=dict)

    def note(self, decision: Decision, now: int) -> None:
        """Remember whom a decision evicts."""
        for mutation in decision.mutations:
            if mutation.verb is Verb.EVICT:
                self.of.pop(mutation.key, None)
                self.of[mutation.key] = {
                    "uid": mutation.uid,
                    "decision": decision.name,
                    "reason": decision.reason,
                    "by": f"{decision.subject.namespace}/{decision.subject.name}",
                    "message": decision.message,
                    "atMs": now,
                }
        while len(self.of) > KEPT:
            del self.of[next(iter(self.of))]


@dataclass(slots=True)
class Knowledge:
    """The state of a core as answers need it. ``now`` is in milliseconds since the epoch."""

    cluster: Cluster
    explanations: Mapping[Unit, Explanation]
    """What those who wait were told last."""

    claims: Claims
    heads: Heads
    line: WaitingLine
    rules: EvictionRules
    evictions: Evictions
    backfill: bool
    now: int

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A trial of which nothing stays: not on the books, and no news for those who wait."""
        room = self.cluster.room
        current, trial = self.line.is_current(room), Trial(room)
        try:
            yield trial
        finally:
            trial.rollback(0)
            if current:
                self.line.seen(room)
