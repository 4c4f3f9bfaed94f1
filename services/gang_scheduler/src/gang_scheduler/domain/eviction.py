"""Who has to go so that a gang can start: first its whole placement, then the cheapest victims that it needs.

The plain rule: of all sets of pods that may be evicted for it, take the cheapest one without which the gang would not start,
where a set is cheaper if it breaks fewer disruption budgets; if its most important pod is less important; if it breaks fewer
gangs; touches fewer; has fewer pods; has younger ones. The search goes through these orders from the outside in: it opens
more budgets, queues and priorities only when it must, picks lots by vectors over all nodes, and tries the pick on the books
with every rule of placement. At last it puts back, the most valuable first, whoever is not needed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.allowances import Allowances
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.departure import Departures
from gang_scheduler.domain.gang import by_scarcity
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.lot_table import LotTable, Offer, possible_copies
from gang_scheduler.domain.pod_record import PodRecord
from gang_scheduler.domain.queue_ledger import total_of
from gang_scheduler.domain.rights import Floors, degree
from gang_scheduler.domain.trial import Trial
from gang_scheduler.domain.vectors import Ints, Mask
from gang_scheduler.domain.victims import Lot
from kube import Key
from resources import Amounts

MOST_BROKEN = 4
"""Sets that break up to so many budgets are told apart; beyond that any number is alike."""


@dataclass(slots=True, eq=False)
class Wish:
    """Somebody who needs room: the members to place, and how to try it. ``attempt`` leaves them placed where it succeeds."""

    groups: list[Group]
    records: list[PodRecord]
    priority: int
    attempt: Callable[[], bool]

    @property
    def queue(self) -> str:
        return self.groups[0].queue

    @property
    def ask(self) -> Amounts:
        """What all its members ask for together."""
        return total_of((record.shape.requests, 1) for record in self.records)


@dataclass(slots=True)
class Demand:
    """So many copies of one shape, on nodes that pass its static rules."""

    rows: list[int]
    need: Ints
    mask: Mask
    count: int


def demands(cluster: Cluster, records: Sequence[PodRecord]) -> list[Demand]:
    """What ``records`` need, shape by shape; the one that fits the fewest nodes first."""
    room = cluster.room
    found = []
    for batch in by_scarcity(room, records):
        view = room.view(batch[0])
        shape = batch[0].shape
        found.append(Demand(room.table.rows_for(shape), shape.needs_vector, view.mask, len(batch)))
    return found


def short_resources(cluster: Cluster, records: Sequence[PodRecord]) -> list[str]:
    """The resources of which there is too little for ``records`` even if nothing else mattered; all of them if it is none alone."""
    table, free = cluster.room.table, free_room(cluster)
    short: dict[str, None] = {}
    asked: dict[str, None] = {}
    for batch in by_scarcity(cluster.room, records):
        shape, mask = batch[0].shape, cluster.room.view(batch[0]).mask
        for name, row, need in zip(shape.requests, table.rows_for(shape), shape.needs, strict=True):
            asked[name] = None
            if possible_copies(free, [row], np.array([[need]], np.int64), mask) < len(batch):
                short[name] = None
    ledger, queue = cluster.room.ledger, records[0].group.queue
    lack = ledger.lack(queue, total_of((record.shape.requests, 1) for record in records))
    short |= dict.fromkeys(lack[1] if lack else ())
    return list(short or asked)


def free_room(cluster: Cluster) -> Ints:
    """What is free on every node as the books stand, negative where a node is overfull."""
    table = cluster.room.table
    return table.allocatable - table.used


@dataclass(slots=True)
class Search:
    """One search among ``lots`` on the books of the future; leaves the books as they were."""

    cluster: Cluster
    trial: Trial
    wish: Wish
    lots: list[Lot]
    floors: Callable[[], Floors]
    spent: dict[Key, int]
    _demands: list[Demand] = field(init=False)
    _free: Ints = field(init=False)
    _gone: Departures = field(init=False)

    def __post_init__(self) -> None:
        self._demands = demands(self.cluster, self.wish.records)
        self._free = free_room(self.cluster)
        self._gone = Departures(self.cluster.room)

    def run(self) -> list[Lot] | None:
        """The cheapest lots without which the wish would not come true; None when it cannot."""
        everything = LotTable(self.cluster.room.table, self.lots)
        if not self._bound(everything, self.lots):
            return None
        for may_break in self._budget_steps():
            for lots in self._scopes():
                if self._bound(everything, lots):
                    found = self._among(lots, may_break)
                    if found is not None:
                        return found
        return None

    def _budget_steps(self) -> Iterator[int]:
        budgets = self.cluster.budgets
        touched = {budget.key for lot in self.lots for record in lot.records for budget in budgets.of(record)}
        yield from range(min(len(touched), MOST_BROKEN) + 1)
        if len(touched) > MOST_BROKEN:
            yield len(touched)

    def _scopes(self) -> Iterator[list[Lot]]:
        """Ever more lots: tier by tier, priority by priority, surplus before minima."""
        last = -1
        for tier in sorted({lot.tier for lot in self.lots}):
            within = [lot for lot in self.lots if lot.tier <= tier]
            for priority in sorted({lot.priority for lot in within}):
                for minima in (False, True):
                    scope = [lot for lot in within if lot.priority <= priority and (minima or not lot.minimum)]
                    if len(scope) > max(last, 0):
                        last = len(scope)
                        yield scope
            last = -1

    def _bound(self, everything: LotTable, lots: Sequence[Lot]) -> bool:
        """Whether there would be room for each shape by itself with all ``lots`` gone: what is cheap to see."""
        numbers = {id(lot): number for number, lot in enumerate(everything.lots)}
        whole = {id(lot.holding) for lot in lots if lot.minimum}
        chosen = np.zeros(len(everything.lots), np.bool_)
        chosen[[numbers[id(lot)] for lot in lots if lot.minimum or id(lot.holding) not in whole]] = True
        free = self._free + everything.freed_by(chosen)
        return all(possible_copies(free, item.rows, item.need, item.mask) >= item.count for item in self._demands)

    def _among(self, lots: list[Lot], may_break: int) -> list[Lot] | None:
        allowances = Allowances(self.cluster.budgets, self.spent, self.floors(), may_break)
        picked = Picker(self.cluster, self.wish, lots, allowances, self._demands, self._free.copy())
        if picked.pick():
            found = self._proved(sorted(allowances.chosen, key=lambda lot: lot.worth, reverse=True))
            if found is not None:
                return found
        allowances = Allowances(self.cluster.budgets, self.spent, self.floors(), may_break)
        for lot in sorted(lots, key=lambda lot: (lot.tier, not lot.minimum and lot.holding.whole, lot.worth)):
            allowances.admit(lot)
        return self._proved(picked.by_use(allowances.chosen))

    def _proved(self, lots: list[Lot]) -> list[Lot] | None:
        """Those of ``lots`` that are needed, if all of them are enough. The first are put back first."""
        for lot in lots:
            self._gone.take(lot.records)
        found = self._needed(lots) if self._succeeds() else None
        self._gone.undo()
        return found

    def _needed(self, lots: list[Lot]) -> list[Lot]:
        """Put back as many as can stay: in blocks that grow while that goes well."""
        needed: list[Lot] = []
        at, step = 0, 1
        while at < len(lots):
            block = lots[at : at + step]
            records = [record for lot in block for record in lot.records]
            self._gone.put_back(records)
            if self._succeeds():
                at, step = at + len(block), step * 2
                continue
            self._gone.take(records)
            if len(block) == 1:
                needed.append(block[0])
                at += 1
            step = max(1, len(block) // 2)
        return needed

    def _succeeds(self) -> bool:
        mark = self.trial.checkpoint()
        done = self.wish.attempt()
        self.trial.rollback(mark)
        return done


@dataclass(slots=True)
class Picker:
    """Picks lots until there is room in the vectors: on the nodes first, then in the queue."""

    cluster: Cluster
    wish: Wish
    lots: list[Lot]
    allowances: Allowances
    demands: list[Demand]
    free: Ints
    _table: LotTable = field(init=False)
    _at: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._table = LotTable(self.cluster.room.table, self.lots)
        self._at = {id(lot): number for number, lot in enumerate(self.lots)}

    def pick(self) -> bool:
        """Whether enough was found; it is in ``allowances.chosen`` then."""
        return all(self._pick_for(item) for item in self.demands) and self._pick_for_queue()

    def by_use(self, lots: Sequence[Lot]) -> list[Lot]:
        """``lots`` in the order in which to try to do without them: those of no use first, then where they would be dearest."""
        table = LotTable(self.cluster.room.table, lots)
        free = self.cluster.room.table.allocatable - self.cluster.room.table.used
        shares = np.zeros(len(lots), np.int64)
        cost: dict[int, tuple[float, ...]] = {}
        for item in self.demands:
            for offer in table.offers(free, item.rows, item.need, item.mask, shares, item.count):
                for number in offer.lots:
                    cost.setdefault(number, offer.cost)
        useless = [lot for number, lot in enumerate(lots) if number not in cost]
        useful = sorted(cost, key=lambda number: (cost[number], lots[number].worth), reverse=True)
        return [*sorted(useless, key=lambda lot: lot.worth, reverse=True), *(lots[number] for number in useful)]

    def _pick_for(self, item: Demand) -> bool:
        have = possible_copies(self.free, item.rows, item.need, item.mask)
        while have < item.count:
            shares = self._shares()
            offers = self._table.offers(self.free, item.rows, item.need, item.mask, shares, item.count - have)
            if not self._take(offers, item.count - have, one=bool(shares.any())):
                return False
            have = possible_copies(self.free, item.rows, item.need, item.mask)
        if len(self.demands) > 1:
            self._consume(item)
        return True

    def _take(self, offers: list[Offer], missing: int, *, one: bool) -> bool:
        """Take the best offers that are as good as the first; returns whether anything changed for the next look."""
        best: tuple[float, ...] | None = None
        for offer in offers:
            if best is not None and (one or missing <= 0 or offer.cost[:4] != best):
                return True
            if self._admit([self.lots[number] for number in offer.lots]):
                best = best or offer.cost[:4]
                missing -= offer.gain
        return best is not None or bool(offers)

    def _admit(self, lots: list[Lot]) -> bool:
        """Choose all of ``lots``, or close the first that may not go and choose none."""
        for done, lot in enumerate(lots):
            if not self.allowances.admit(lot):
                self._close_like(lot)
                self.allowances.dismiss(lots[:done])
                return False
        for lot in lots:
            for record in lot.records:
                self.free[list(record.shape.rows), record.slot] += record.shape.needs
            for number in self._of_gang(lot):
                other = self.lots[number]
                if other is lot or other.minimum != lot.minimum or lot.minimum or self.allowances.exhausts(lot.holding):
                    self._table.open[number] = False
        return True

    def _close_like(self, lot: Lot) -> None:
        """What holds for a lot holds for those of its gang, or of its queue, that are alike."""
        self._table.open[self._at[id(lot)]] = False
        if len(lot.records) > 1:
            return
        shape = lot.records[0].shape
        if not self.allowances.floors.allow(lot.queue, shape.requests):
            for number, other in enumerate(self.lots):
                if other.queue == lot.queue and len(other.records) == 1 and other.records[0].shape is shape:
                    self._table.open[number] = False

    def _of_gang(self, lot: Lot) -> list[int]:
        if len(lot.records) == 1 and not lot.holding.spare:
            return [self._at[id(lot)]]
        return [number for number, other in enumerate(self.lots) if other.holding is lot.holding]

    def _pick_for_queue(self) -> bool:
        """Lots of the queues under a capability that is reached, until it is not."""
        ledger, ask = self.cluster.room.ledger, self.wish.ask
        freed: dict[str, Amounts] = {}
        for lot in self.allowances.chosen:
            self._give(freed, lot)
        while True:
            for queue, amounts in freed.items():
                ledger.charge(queue, amounts, -1)
            lack = ledger.lack(self.wish.queue, ask)
            for queue, amounts in freed.items():
                ledger.charge(queue, amounts, 1)
            if lack is None:
                return True
            if not self._pick_under(*lack, freed):
                return False

    def _pick_under(self, queue: str, over: Amounts, freed: dict[str, Amounts]) -> bool:
        ledger = self.cluster.room.ledger
        found = []
        for number in np.flatnonzero(self._table.open).tolist():
            lot = self.lots[number]
            given = total_of((record.shape.requests, 1) for record in lot.records)
            gain = sum(min(given.get(name, 0), amount) / amount for name, amount in over.items())
            if gain > 0 and queue in ledger.chain(lot.queue):
                parts = (int(lot.minimum), len(lot.records), lot.priority)
                found.append(((*(part / gain for part in parts), lot.worth[2:]), number))
        for _, number in sorted(found):
            if self._admit([self.lots[number]]):
                self._give(freed, self.lots[number])
                return True
        return False

    @staticmethod
    def _give(freed: dict[str, Amounts], lot: Lot) -> None:
        for record in lot.records:
            if record.charged is not None:
                amounts = freed.setdefault(record.charged, {})
                for name, amount in record.shape.requests.items():
                    amounts[name] = amounts.get(name, 0) + amount

    def _shares(self) -> Ints:
        """For each lot how far its queue is above its due now; 0 inside the queue itself."""
        floors = self.allowances.floors
        if not floors.levels:
            return np.zeros(len(self.lots), np.int64)
        ledger = self.cluster.room.ledger
        taken: dict[str, Amounts] = {}
        for lot in self.allowances.chosen:
            self._give(taken, lot)
        for queue, amounts in taken.items():
            ledger.charge(queue, amounts, -1)
        degrees = {queue: degree(ledger, queue, floors.short) for queue in floors.levels}
        for queue, amounts in taken.items():
            ledger.charge(queue, amounts, 1)
        return np.array([degrees.get(lot.queue, 0) for lot in self.lots], np.int64)

    def _consume(self, item: Demand) -> None:
        """The copies of a shape take their room, on the fullest nodes first."""
        fits = np.where(item.mask, np.maximum((self.free[item.rows] // item.need).min(axis=0), 0), 0)
        left = item.count
        for slot in np.argsort(np.where(fits > 0, fits, np.iinfo(np.int64).max), kind="stable").tolist():
            take = min(left, int(fits[slot]))
            self.free[item.rows, slot] -= item.need[:, 0] * take
            left -= take
            if left <= 0:
                return
