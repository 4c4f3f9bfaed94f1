"""What it costs to evict a set of lots, so that sets can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.evictions.rights import degree
from gang_scheduler.domain.evictions.victims import Lot
from gang_scheduler.domain.queues.queue_ledger import QueueLedger

IN_TURN = -1
"""The depth of a queue that gives while no other one is further above its due."""


class Price(NamedTuple):
    """A smaller one is better. Priorities and budgets are the same or less in one search. No lot more makes it smaller."""

    tier: int
    """How late the queue is asked that is asked last."""

    depth: int
    """How far a queue that gives is below another one, in billionths of its due; IN_TURN where none is."""

    ends: int
    """How many gangs end."""

    gangs: int
    pods: int


DEAREST = Price(1 << 62, 0, 0, 0, 0)
"""Everything is cheaper."""


@dataclass(slots=True)
class SetPrices:
    """``tiers`` says for each queue how late it is asked. The books are those without any of the lots gone.

    A queue gives in its turn as long as it is, before its last lot goes, at least as far above its due as every other queue
    of its tier is before anything goes. A set is cheaper if its queue that is worst in this is better.
    """

    ledger: QueueLedger
    short: Sequence[str]
    tiers: Mapping[str, int]
    giving: Sequence[str]
    """The queues that have something above their due to give."""

    _degrees: dict[str, int] = field(init=False)
    _rivals: dict[str, int] = field(init=False)
    """For each queue the largest degree of another one of its tier."""

    def __post_init__(self) -> None:
        self._degrees = {queue: degree(self.ledger, queue, self.short, {}) for queue in self.giving}
        self._rivals = {
            queue: max(
                (found for other, found in self._degrees.items() if other != queue and self._together(other, queue)),
                default=0,
            )
            for queue in self.giving
        }

    def of(self, lots: Sequence[Lot]) -> Price:
        """What it costs to evict all these."""
        by_queue: dict[str, list[Lot]] = {}
        for lot in lots:
            by_queue.setdefault(lot.queue, []).append(lot)
        tier, depth = max(
            ((self.tiers[queue], self._depth(queue, mine)) for queue, mine in by_queue.items()), default=(0, IN_TURN)
        )
        gangs = {id(lot.holding) for lot in lots}
        return Price(tier, depth, sum(lot.minimum for lot in lots), len(gangs), sum(len(lot.records) for lot in lots))

    def _depth(self, queue: str, lots: Sequence[Lot]) -> int:
        """How far it is, before the last of ``lots`` goes, below the rival that is furthest above its due."""
        rival = self._rivals.get(queue, 0)
        if not rival:
            return IN_TURN
        freed = [lot.freed() for lot in lots]
        total = {name: sum(one.get(name, 0) for one in freed) for name in self.short}
        before = max(
            degree(self.ledger, queue, self.short, {name: total[name] - one.get(name, 0) for name in self.short})
            for one in freed
        )
        return IN_TURN if before >= rival else rival - before

    def _together(self, one: str, other: str) -> bool:
        return self.tiers[one] == self.tiers[other]
