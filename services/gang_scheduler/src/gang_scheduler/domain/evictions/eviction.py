"""Who has to go so that a gang can start: first its whole placement, then the cheapest victims that it needs.

The plain rule: of all sets of pods that may be evicted for it, take the cheapest one without which the gang would not start,
where a set is cheaper if it breaks fewer disruption budgets; if its most important pod is less important; if it breaks fewer
gangs; touches fewer; has fewer pods; has younger ones. The search goes through these orders from the outside in: it opens
more budgets, queues and priorities only when it must, picks lots by vectors over all nodes, and tries the pick on the books
with every rule of placement. Then it puts back, the most valuable first, whoever is not needed. The result is always
enough and never more than is needed. The picking itself is greedy; so at last what it found is compared with all other sets
of few lots (`cheapest_lots`): of all that may be asked where these are few, else of those found and the offers next to
them, which makes it a local search. Between queues the one furthest above its due gives first: to that comes, for a set,
what ``SetPrices`` compares before all that counts within a queue.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.evictions.allowances import Allowances
from gang_scheduler.domain.evictions.cheapest_lots import CheapestLots
from gang_scheduler.domain.evictions.lot_picker import Picker
from gang_scheduler.domain.evictions.lot_table import Demand, LotTable, differ
from gang_scheduler.domain.evictions.rehearsal import Rehearsal
from gang_scheduler.domain.evictions.rights import Floors
from gang_scheduler.domain.evictions.set_price import DEAREST, Price, SetPrices
from gang_scheduler.domain.evictions.victims import Lot
from gang_scheduler.domain.evictions.wish import Wish, demands, free_room
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.trial import Trial
from kube import Key

FEW_LOTS = 24
"""Sets of up to so many lots are compared with each other."""

MOST_BROKEN = 4
"""Sets that break up to so many budgets are told apart; beyond that any number is alike."""


@dataclass(slots=True)
class Search:
    """One search among the ``eligible`` lots on the books of the future.

    ``tiers`` says for each lot how late its queue is asked. What is found is gone from the books at the end (``rehearsal``);
    the books are as they were where nothing is.
    """

    cluster: Cluster
    trial: Trial
    wish: Wish
    table: LotTable
    eligible: Mask
    tiers: Ints
    floors: Callable[[], Floors]
    spent: dict[Key, int]
    _demands: list[Demand] = field(init=False)
    _free: Ints = field(init=False)
    rehearsal: Rehearsal = field(init=False)
    _shapes: list[tuple[PodRecord, int]] = field(init=False)
    """A member of each shape, and how many there are of it."""

    def __post_init__(self) -> None:
        counts = Counter(record.shape.index for record in self.wish.records)
        of_shape = {record.shape.index: record for record in self.wish.records}
        self._shapes = [(of_shape[index], count) for index, count in counts.items()]
        self._demands = demands(self.cluster, self.wish.records)
        self._free = free_room(self.cluster, self.wish.records)
        self.rehearsal = Rehearsal(self.trial, self.wish.attempt)

    def run(self) -> list[Lot] | None:
        """The cheapest lots without which the wish would not come true; None when it cannot."""
        if not self._bound(self.eligible):
            return None
        for may_break in self._budget_steps():
            for scope in self._scopes():
                found = self._among(scope, may_break)
                if found is None:
                    found = self._of_few(scope, may_break)
                elif not self._is_cheapest(found, scope):
                    found = self._cheaper(found, scope, may_break)
                if found is not None:
                    return found
        return None

    def _cheaper(self, found: list[Lot], scope: Mask, may_break: int) -> list[Lot]:
        """Lots that are enough, too, and cost less than those found; else those found."""
        self.rehearsal.undo()
        prices = self._prices(scope)
        better = self._cheapest(self._near(found, scope), prices, prices.of(found), may_break)
        if better is None:
            self.rehearsal.take(_records(found))
        return better or found

    def _of_few(self, scope: Mask, may_break: int) -> list[Lot] | None:
        """Lots that are enough together though the first choice of some, a queue at its due, keeps others from going."""
        useful = np.logical_or.reduce([self.table.touching(item) for item in self._demands]) & scope
        prices = self._prices(scope)
        if not prices.giving or int(useful.sum()) > FEW_LOTS:
            return None
        return self._cheapest(np.flatnonzero(useful).tolist(), prices, DEAREST, may_break)

    def _cheapest(self, numbers: Sequence[int], prices: SetPrices, below: Price, may_break: int) -> list[Lot] | None:
        """The cheapest set of these lots that is enough and costs less than ``below``."""
        lots = [self.table.lots[number] for number in sorted(numbers, key=self.table.worth)]
        allowances = Allowances(self.cluster.budgets, self.spent, self.floors(), may_break)
        best = CheapestLots(lots, self._demands, self._free, allowances, prices, self._is_enough_without, below).run()
        return best and self._proved([self.table.numbers[id(lot)] for lot in reversed(best)])

    def _prices(self, scope: Mask) -> SetPrices:
        numbers, places = np.unique(self.table.queue[scope], return_index=True)
        queues = [self.table.queues[number] for number in numbers.tolist()]
        tiers = dict(zip(queues, self.tiers[scope][places].tolist(), strict=True))
        floors = self.floors()
        giving = [queue for queue in queues if queue in floors.levels]
        return SetPrices(self.cluster.room.ledger, floors.short, tiers, giving)

    def _is_cheapest(self, found: list[Lot], scope: Mask) -> bool:
        """Whether it is not worth while to look for cheaper ones.

        There are too many sets as large as that one, or it is one pod and nobody could give before its queue does.
        """
        if not found or len(found) > FEW_LOTS // 2:
            return True
        if len(found) > 1 or len(found[0].records) > 1 or differ(self.table.queue[scope]):
            return False
        return not found[0].minimum or bool(self.table.minimum[scope].all())

    def _near(self, found: list[Lot], scope: Mask) -> list[int]:
        """The lots that are worth a comparison: all that could help, or those found and others that make the best offers."""
        near = dict.fromkeys(self.table.numbers[id(lot)] for lot in found)
        even = np.zeros_like(self.table.age)
        for item in self._demands:
            useful = self.table.touching(item) & scope
            if int(useful.sum()) <= FEW_LOTS:
                offered = [np.flatnonzero(useful).tolist()]
            else:
                offers = self.table.offers(self._free, item, useful, even, item.wanted)
                offered = [list(offer.lots) for offer in islice(offers, FEW_LOTS)]
            for numbers in offered:
                if len(near.keys() | set(numbers)) <= FEW_LOTS:
                    near |= dict.fromkeys(numbers)
        return list(near)

    def _is_enough_without(self, lots: Sequence[Lot]) -> bool:
        self.rehearsal.take(_records(lots))
        enough = self.rehearsal.succeeds()
        self.rehearsal.undo()
        return enough

    def _budget_steps(self) -> Iterator[int]:
        budgets = self.cluster.budgets
        if not budgets.by_key:
            yield 0
            return
        lots = [self.table.lots[number] for number in np.flatnonzero(self.eligible).tolist()]
        touched = {budget.key for lot in lots for record in lot.records for budget in budgets.of(record)}
        yield from range(min(len(touched), MOST_BROKEN) + 1)
        if len(touched) > MOST_BROKEN:
            yield len(touched)

    def _scopes(self) -> Iterator[Mask]:
        """Ever more lots that might be enough: tier by tier, priority by priority, surplus before minima."""
        for tier in np.unique(self.tiers[self.eligible]).tolist():
            within = self.eligible & (self.tiers <= tier)
            if not self._bound(within):
                continue
            for priority in np.unique(self.table.priority[within]).tolist():
                upto = within & (self.table.priority <= priority)
                if not self._bound(upto):
                    continue
                surplus = upto & ~self.table.minimum
                if surplus.any() and self._bound(surplus):
                    yield surplus
                if (upto & self.table.minimum).any():
                    yield upto

    def _bound(self, lots: Mask) -> bool:
        """Whether there would be room for each shape by itself with all ``lots`` gone: what is cheap to see."""
        free = self._free + self.table.freed_by(lots)
        return all(int(item.copies(free).sum()) >= item.wanted for item in self._demands)

    def _among(self, scope: Mask, may_break: int) -> list[Lot] | None:
        ledger = self.cluster.room.ledger
        allowances = Allowances(self.cluster.budgets, self.spent, self.floors(), may_break)
        picker = Picker(self.table, ledger, allowances, scope.copy(), self._free.copy())
        if picker.pick(self._demands, self.wish.queue, self.wish.ask):
            numbers = [self.table.numbers[id(lot)] for lot in allowances.chosen]
            found = self._proved(sorted(numbers, key=self.table.worth, reverse=True))
            if found is not None:
                return found
        holding = scope & self.table.claiming
        if any(record.shape.resource_claims for record, _ in self._shapes) and holding.any():
            found = self._among_all(holding, may_break)
            if found is not None:
                return found
        return self._among_all(scope, may_break)

    def _among_all(self, scope: Mask, may_break: int) -> list[Lot] | None:
        """What the vectors do not see: begin with as many lots as may go together, and see who can stay."""
        lots, tiers = self.table.lots, self.tiers
        allowances = Allowances(self.cluster.budgets, self.spent, self.floors(), may_break)

        def cheapness(number: int) -> tuple[int, bool, tuple[bool, int, int]]:
            lot = lots[number]
            return int(tiers[number]), not lot.minimum and lot.holding.whole, self.table.worth(number)

        for number in sorted(np.flatnonzero(scope).tolist(), key=cheapness):
            allowances.admit(lots[number])
        picker = Picker(self.table, self.cluster.room.ledger, allowances, scope, self._free)
        return self._proved(picker.by_use((self.table.numbers[id(lot)] for lot in allowances.chosen), self._demands))

    def _proved(self, numbers: Sequence[int]) -> list[Lot] | None:
        """Those of these lots that are needed, if all of them are enough: they are gone then. The first are put back first."""
        lots = [self.table.lots[number] for number in numbers]
        self.rehearsal.take(_records(lots))
        indispensable = self._indispensable()
        if self.rehearsal.succeeds():
            return self._needed(lots, indispensable)
        self.rehearsal.undo()
        return None

    def _needed(self, lots: list[Lot], indispensable: Mask) -> list[Lot]:
        """Put back as many as can stay: in blocks that grow while that goes well."""
        needed = {id(lot) for lot in lots if indispensable[self.table.numbers[id(lot)]]}
        asked = [lot for lot in lots if id(lot) not in needed]
        at, step = 0, 1
        while at < len(asked):
            block = asked[at : at + step]
            self.rehearsal.put_back(_records(block))
            if self._is_enough() and self.rehearsal.succeeds():
                at, step = at + len(block), step * 2
                continue
            self.rehearsal.take(_records(block))
            if len(block) == 1:
                needed.add(id(block[0]))
                at += 1
            step = max(1, len(block) // 2)
        return [lot for lot in lots if id(lot) in needed]

    def _indispensable(self) -> Mask:
        """The lots without each of which there is too little room though all others are gone: what vectors can tell."""
        free = free_room(self.cluster, self.wish.records)
        indispensable = np.zeros(len(self.table.lots), np.bool_)
        for item in self._demands:
            slack = int(item.copies(free).sum()) - item.wanted
            indispensable |= self.table.losses(free, item) > slack
        return indispensable

    def _is_enough(self) -> bool:
        """Whether there is room for each shape by itself: what is cheap to see before it is tried."""
        room = self.cluster.room
        return all(
            room.view(record).total >= copies or room.reserved.concerns(record) for record, copies in self._shapes
        )


def _records(lots: Sequence[Lot]) -> list[PodRecord]:
    return [record for lot in lots for record in lot.records]
