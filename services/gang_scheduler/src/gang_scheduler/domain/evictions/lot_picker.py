"""Picking lots by vectors until there is room on the nodes, and in the queue."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.evictions.allowances import Allowances
from gang_scheduler.domain.evictions.lot_table import Demand, LotTable, Offer, differ
from gang_scheduler.domain.evictions.rights import degree
from gang_scheduler.domain.evictions.victims import Lot
from gang_scheduler.domain.pods.pod_shape import PodShape
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
    _gone: Counter[tuple[str, PodShape]] = field(default_factory=Counter)
    """How many pods of each shape go that were charged to each queue."""

    _freed: dict[str, Amounts] = field(default_factory=dict)
    """What each queue and those above it use less by that, of what is short."""

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
            degrees = self._degrees()
            shares = np.array(degrees, np.int64)[self.table.queue]
            contested = self._contested()
            if contested and self._take_in_turn(item, missing, degrees):
                continue
            offers = self.table.offers(self.free, item, self.open, shares, missing)
            if not self._take(offers, missing, one=contested):
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

    def _take_in_turn(self, item: Demand, missing: int, degrees: list[int]) -> bool:
        """The same for several queues, as far as each can make room alone; returns whether anything was taken.

        The queue furthest above its due gives until another one is. Offers are looked at once: those on nodes where somebody
        has given already wait for the next look, and so do all when one is not as good as the first of its queue.
        """
        streams: dict[tuple[int, ...], Iterator[Offer]] = {}
        best: dict[tuple[int, ...], tuple[float, ...]] = {}
        touched: set[int] = set()
        even = np.zeros_like(self.table.age)
        giving = np.unique(self.table.queue[self.open & self.table.touching(item)]).tolist()
        while missing > 0 and giving:
            top = max(degrees[queue] for queue in giving)
            turn = tuple(queue for queue in giving if degrees[queue] == top)
            if turn not in streams:
                usable = self.open & np.isin(self.table.queue, turn)
                streams[turn] = self.table.offers(self.free, item, usable, even, missing)
            offer = next(streams[turn], None)
            if offer is None or offer.cost[:4] != best.setdefault(turn, offer.cost[:4]):
                break
            slots = {record.slot for number in offer.lots for record in self.table.lots[number].records}
            if not touched & slots and self._admit(offer.lots):
                touched |= slots
                missing -= offer.gain
                for queue in {int(self.table.queue[number]) for number in offer.lots}:
                    degrees[queue] = self._degree_of(self.table.queues[queue])
        return bool(touched)

    def _contested(self) -> bool:
        """Whether more than one queue can give, so that with every lot another one may be the next."""
        return bool(self.allowances.floors.levels) and differ(self.table.queue[self.open])

    def _admit(self, numbers: Sequence[int]) -> bool:
        """Choose all of these lots, or close the first that may not go and choose none."""
        if not all(self.open[number] for number in numbers):
            return False
        lots = [self.table.lots[number] for number in numbers]
        for done, lot in enumerate(lots):
            if not self.allowances.admit(lot):
                self._close_like(numbers[done])
                self.allowances.dismiss(lots[:done])
                return False
        free = self.free.data  # which is faster, number by number
        for number, lot in zip(numbers, lots, strict=True):
            self.open[number] = False
            for record in lot.records:
                shape, slot = record.shape, record.slot
                for row, need in zip(shape.rows, shape.needs, strict=True):
                    free[row, slot] += need
                if record.charged is not None:
                    self._gone[record.charged, shape] += 1
                    self._note_freed(record.charged, shape.requests)
            if lot.holding.spare:
                self._close_gang(number, lot)
        return True

    def _note_freed(self, queue: str, requests: Amounts) -> None:
        for name in self.ledger.chain(queue):
            freed = self._freed.setdefault(name, {})
            for resource in self.allowances.floors.short:
                freed[resource] = freed.get(resource, 0) + requests.get(resource, 0)

    def _close_gang(self, number: int, lot: Lot) -> None:
        """Of a gang that loses members by themselves not all may go; of one that can spare no more, none."""
        if lot.minimum or self.allowances.exhausts(lot.holding):
            self.open[self.table.gang == self.table.gang[number]] = False
        elif self.allowances.members_of(lot.holding) == 1:
            self.open[(self.table.gang == self.table.gang[number]) & self.table.minimum] = False

    def _close_like(self, number: int) -> None:
        """What holds for a lot holds for those of its queue that free the same."""
        self.open[number] = False
        lot = self.table.lots[number]
        if len(lot.records) > 1 or self.allowances.floors.allow(lot.queue, lot.records[0].shape.requests):
            return
        alike = (self.table.queue == self.table.queue[number]) & (self.table.shape == self.table.shape[number])
        self.open[alike] = False

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
        freed: dict[str, list[tuple[Amounts, int]]] = {}
        for (queue, shape), count in self._gone.items():
            freed.setdefault(queue, []).append((shape.requests, count))
        return {queue: total_of(parts) for queue, parts in freed.items()}

    def _degrees(self) -> list[int]:
        """For each queue of the table how far it is above its due now; 0 inside the queue itself."""
        return [self._degree_of(queue) for queue in self.table.queues]

    def _degree_of(self, queue: str) -> int:
        floors = self.allowances.floors
        return degree(self.ledger, queue, floors.short, self._freed.get(queue, {})) if queue in floors.levels else 0

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
