"""Picking lots by vectors until there is room on the nodes, and in the queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gang_scheduler.domain.evictions.allowances import Allowances
from gang_scheduler.domain.evictions.lot_table import Demand, LotTable, Offer
from gang_scheduler.domain.evictions.rights import degree
from gang_scheduler.domain.nodes.vectors import Ints, Mask
from gang_scheduler.domain.queues.queue_ledger import QueueLedger, total_of
from resources import Amounts


@dataclass(slots=True)
class Picker:
    """Picks among the lots that are ``open``; what it picked is in ``allowances.chosen``. ``free`` is counted up on the way."""

    table: LotTable
    ledger: QueueLedger
    allowances: Allowances
    open: Mask
    free: Ints

    def pick(self, demands: Sequence[Demand], queue: str, ask: Amounts) -> bool:
        """Whether there is enough for all ``demands`` and for ``ask`` in ``queue``."""
        return all(self._for_copies(item, len(demands) > 1) for item in demands) and self._for_queue(queue, ask)

    def by_use(self, numbers: Iterable[int], demands: Sequence[Demand]) -> list[int]:
        """In which order to try to do without these lots: those of no use first, then where they would be dearest."""
        asked = list(numbers)
        usable = np.zeros(len(self.table.lots), np.bool_)
        usable[asked] = True
        cost: dict[int, tuple[float, ...]] = {}
        for item in demands:
            for offer in self.table.offers(self.free, item, usable, np.zeros_like(self.table.age), item.wanted):
                for number in offer.lots:
                    cost.setdefault(number, offer.cost)
        useless = sorted((n for n in asked if n not in cost), key=self.table.worth, reverse=True)
        return useless + sorted(cost, key=lambda number: (cost[number], self.table.worth(number)), reverse=True)

    def _for_copies(self, item: Demand, several: bool) -> bool:
        while (missing := item.wanted - int(item.copies(self.free).sum())) > 0:
            shares = self._shares()
            one = len(np.unique(shares[self.open])) > 1
            if not self._take(self.table.offers(self.free, item, self.open, shares, missing), missing, one=one):
                return False
        if several:
            self._consume(item)
        return True

    def _take(self, offers: Iterable[Offer], missing: int, *, one: bool) -> bool:
        """Take the best offers that are as good as the first; returns whether the next look will see something else."""
        best: tuple[float, ...] | None = None
        changed = False
        for offer in offers:
            if best is not None and (one or missing <= 0 or offer.cost[:4] != best):
                return True
            changed = True
            if self._admit(offer.lots):
                best = best or offer.cost[:4]
                missing -= offer.gain
        return changed

    def _admit(self, numbers: Sequence[int]) -> bool:
        """Choose all of these lots, or close the first that may not go and choose none."""
        if not self.open[list(numbers)].all():
            return False
        lots = [self.table.lots[number] for number in numbers]
        for done, lot in enumerate(lots):
            if not self.allowances.admit(lot):
                self._close_like(numbers[done])
                self.allowances.dismiss(lots[:done])
                return False
        for number, lot in zip(numbers, lots, strict=True):
            self.open[number] = False
            for record in lot.records:
                self.free[list(record.shape.rows), record.slot] += record.shape.needs
            if lot.holding.spare:
                same = self.table.gang == self.table.gang[number]
                exhausted = lot.minimum or self.allowances.exhausts(lot.holding)
                self.open[same & (True if exhausted else self.table.minimum)] = False
        return True

    def _close_like(self, number: int) -> None:
        """What holds for a lot holds for those of its queue that free the same."""
        self.open[number] = False
        lot = self.table.lots[number]
        if len(lot.records) > 1 or self.allowances.floors.allow(lot.queue, lot.records[0].shape.requests):
            return
        for other in np.flatnonzero(self.open & (self.table.queue == self.table.queue[number])).tolist():
            records = self.table.lots[other].records
            if len(records) == 1 and records[0].shape is lot.records[0].shape:
                self.open[other] = False

    def _for_queue(self, queue: str, ask: Amounts) -> bool:
        """Lots of the queues under a capability that is reached, until it is not."""
        while True:
            freed = self._freed_in_queues()
            for name, amounts in freed.items():
                self.ledger.charge(name, amounts, -1)
            lack = self.ledger.lack(queue, ask)
            for name, amounts in freed.items():
                self.ledger.charge(name, amounts, 1)
            if lack is None:
                return True
            if not self._under(*lack):
                return False

    def _under(self, queue: str, over: Amounts) -> bool:
        """Choose one more lot below ``queue``, the one that gives most of what is over for the least."""
        found = []
        for number in np.flatnonzero(self.open).tolist():
            lot = self.table.lots[number]
            if queue not in self.ledger.chain(lot.queue):
                continue
            given = total_of((record.shape.requests, 1) for record in lot.records)
            gain = sum(min(given.get(name, 0), amount) / amount for name, amount in over.items())
            if gain > 0:
                parts = (int(lot.minimum), len(lot.records), lot.priority)
                found.append((*(part / gain for part in parts), int(self.table.age[number]), number))
        return any(self._admit([int(item[-1])]) for item in sorted(found))

    def _freed_in_queues(self) -> dict[str, Amounts]:
        freed: dict[str, Amounts] = {}
        for lot in self.allowances.chosen:
            for record in lot.records:
                if record.charged is not None:
                    amounts = freed.setdefault(record.charged, {})
                    for name, amount in record.shape.requests.items():
                        amounts[name] = amounts.get(name, 0) + amount
        return freed

    def _shares(self) -> Ints:
        """For each lot how far its queue is above its due now; 0 inside the queue itself."""
        floors = self.allowances.floors
        if not floors.levels:
            return np.zeros(len(self.table.lots), np.int64)
        freed = self._freed_in_queues()
        for queue, amounts in freed.items():
            self.ledger.charge(queue, amounts, -1)
        degrees = [degree(self.ledger, q, floors.short) if q in floors.levels else 0 for q in self.table.queues]
        for queue, amounts in freed.items():
            self.ledger.charge(queue, amounts, 1)
        shares: Ints = np.array(degrees, np.int64)[self.table.queue]
        return shares

    def _consume(self, item: Demand) -> None:
        """The copies of a shape take their room, where fewest fit first."""
        fits = item.copies(self.free)
        left = item.wanted
        for slot in np.argsort(np.where(fits > 0, fits, np.iinfo(np.int64).max), kind="stable").tolist():
            take = min(left, int(fits[slot]))
            self.free[item.rows, slot] -= item.need[:, 0] * take
            left -= take
            if left <= 0:
                return
