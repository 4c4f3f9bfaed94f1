"""Who has to go so that a gang can start: first its whole placement, then the cheapest victims that it needs.

The plain rule: of all sets of pods that may be evicted for it, take the cheapest one without which the gang would not start,
where a set is cheaper if it breaks fewer disruption budgets; if its most important pod is less important; if it breaks fewer
gangs; touches fewer; has fewer pods; has younger ones. The search goes through these orders from the outside in: it opens
more budgets, queues and priorities only when it must, picks lots by vectors over all nodes, and tries the pick on the books
with every rule of placement. At last it puts back, the most valuable first, whoever is not needed. The result is always
enough and never more than is needed; the picking itself is greedy, so that it may miss the cheapest of several sets that
combine gangs and lone pods on many nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.allowances import Allowances
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.departure import Departures
from gang_scheduler.domain.gang import by_scarcity
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.lot_picker import Picker
from gang_scheduler.domain.lot_table import Demand, LotTable
from gang_scheduler.domain.pod_record import PodRecord
from gang_scheduler.domain.queue_ledger import total_of
from gang_scheduler.domain.rights import Floors
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


def demands(cluster: Cluster, records: Sequence[PodRecord]) -> list[Demand]:
    """What ``records`` need, shape by shape; the one that fits the fewest nodes first."""
    room, found = cluster.room, []
    for batch in by_scarcity(room, records):
        shape = batch[0].shape
        found.append(Demand(room.table.rows_for(shape), shape.needs_vector, room.view(batch[0]).mask, len(batch)))
    return found


def short_resources(cluster: Cluster, wish: Wish) -> list[str]:
    """The resources of which there is too little even if nothing else mattered; all of them if it is none alone."""
    free = free_room(cluster, wish.records)
    short: dict[str, None] = {}
    asked: dict[str, None] = {}
    for batch in by_scarcity(cluster.room, wish.records):
        shape, mask = batch[0].shape, cluster.room.view(batch[0]).mask
        for name, row, need in zip(shape.requests, cluster.room.table.rows_for(shape), shape.needs, strict=True):
            asked[name] = None
            alone = Demand([row], np.array([[need]], np.int64), mask, len(batch))
            if int(alone.copies(free).sum()) < len(batch):
                short[name] = None
    lack = cluster.room.ledger.lack(wish.queue, wish.ask)
    short |= dict.fromkeys(lack[1] if lack else ())
    return list(short or asked)


def free_room(cluster: Cluster, records: Sequence[PodRecord]) -> Ints:
    """What is free on every node as the books stand, negative where a node is overfull.

    What reservations hold for any of ``records`` counts as free; the attempt then sees to whose it is.
    """
    table, reserved = cluster.room.table, cluster.room.reserved
    free = table.allocatable - table.used
    for name in dict.fromkeys(name for record in records for name in reserved.matching(record)):
        found = reserved.standing[name]
        for resource, amount in found.held.items():
            free[table.resources.rows[resource], found.slot] += amount
    return free


@dataclass(slots=True)
class Search:
    """One search among the ``eligible`` lots on the books of the future; leaves the books as they were.

    ``tiers`` says for each lot how late its queue is asked.
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
    _gone: Departures = field(init=False)
    _shapes: list[tuple[PodRecord, int]] = field(init=False)
    """A member of each shape, and how many there are of it."""

    def __post_init__(self) -> None:
        counts = Counter(record.shape.index for record in self.wish.records)
        of_shape = {record.shape.index: record for record in self.wish.records}
        self._shapes = [(of_shape[index], count) for index, count in counts.items()]
        self._demands = demands(self.cluster, self.wish.records)
        self._free = free_room(self.cluster, self.wish.records)
        self._gone = Departures(self.cluster.room)

    def run(self) -> list[Lot] | None:
        """The cheapest lots without which the wish would not come true; None when it cannot."""
        if not self._bound(self.eligible):
            return None
        for may_break in self._budget_steps():
            for scope in self._scopes():
                found = self._among(scope, may_break)
                if found is not None:
                    return found
        return None

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
        """Those of these lots that are needed, if all of them are enough. The first are put back first."""
        lots = [self.table.lots[number] for number in numbers]
        for lot in lots:
            self._gone.take(lot.records)
        found = self._needed(lots) if self._succeeds() else None
        self._gone.undo()
        return found

    def _needed(self, lots: list[Lot]) -> list[Lot]:
        """Put back as many as can stay: in blocks that grow while that goes well."""
        indispensable = self._indispensable()
        needed = {id(lot) for lot in lots if indispensable[self.table.numbers[id(lot)]]}
        asked = [lot for lot in lots if id(lot) not in needed]
        at, step = 0, 1
        while at < len(asked):
            block = asked[at : at + step]
            records = [record for lot in block for record in lot.records]
            self._gone.put_back(records)
            if self._is_enough() and self._succeeds():
                at, step = at + len(block), step * 2
                continue
            self._gone.take(records)
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

    def _succeeds(self) -> bool:
        mark = self.trial.checkpoint()
        done = self.wish.attempt()
        self.trial.rollback(mark)
        return done
