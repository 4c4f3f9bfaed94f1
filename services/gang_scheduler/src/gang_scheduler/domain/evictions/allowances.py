"""What a set of victims may not do together: break more budgets than it must, take a gang below its minimum, a queue below its due."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.evictions.disruption_budgets import DisruptionBudgets
from gang_scheduler.domain.evictions.rights import Floors
from gang_scheduler.domain.evictions.victims import Holding, Lot
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.queues.queue_ledger import total_of
from kube import Key


@dataclass(slots=True)
class Allowances:
    """``chosen`` is a set of lots that may go together. ``may_break`` is how many budgets they may break."""

    budgets: DisruptionBudgets
    spent: dict[Key, int]
    floors: Floors
    may_break: int
    chosen: list[Lot] = field(default_factory=list)
    _members: dict[int, list[PodRecord]] = field(default_factory=dict)
    _whole: set[int] = field(default_factory=set)

    def admit(self, lot: Lot) -> bool:
        """Choose the lot too, if it may go with those chosen."""
        if not (self._keeps_gang(lot) and self._keeps_floor(lot) and self._keeps_budgets(lot)):
            return False
        self.floors.take(lot.queue, _freed(lot))
        self.chosen.append(lot)
        if lot.minimum:
            self._whole.add(id(lot.holding))
        else:
            self._members.setdefault(id(lot.holding), []).append(lot.records[0])
        return True

    def dismiss(self, lots: Sequence[Lot]) -> None:
        """The newest of the chosen lots, ``lots``, stay after all."""
        for lot in reversed(lots):
            assert self.chosen.pop() is lot
            self.floors.take(lot.queue, _freed(lot), -1)
            if lot.minimum:
                self._whole.discard(id(lot.holding))
            else:
                self._members[id(lot.holding)].pop()

    def exhausts(self, holding: Holding) -> bool:
        """Whether the gang can spare no further member by itself."""
        return id(holding) in self._whole or len(self._members.get(id(holding), ())) >= holding.spare

    def _keeps_gang(self, lot: Lot) -> bool:
        gang = id(lot.holding)
        if gang in self._whole:
            return False
        members = self._members.get(gang, [])
        return not members if lot.minimum else lot.holding.spares([*members, lot.records[0]])

    def _keeps_floor(self, lot: Lot) -> bool:
        return self.floors.allow(lot.queue, _freed(lot))

    def _keeps_budgets(self, lot: Lot) -> bool:
        if not self.budgets.by_key:
            return True
        records = [record for item in (*self.chosen, lot) for record in item.records]
        return len(self.budgets.broken_by(records, self.spent)) <= self.may_break


def _freed(lot: Lot) -> dict[str, int]:
    if len(lot.records) == 1:
        return lot.records[0].shape.requests
    return total_of((record.shape.requests, 1) for record in lot.records)
