"""The cheapest of few lots that make room enough: branch and bound over their sets.

The plain rule goes through every set of lots that may go together and keeps the cheapest that is enough. Left out here are
sets that cannot become cheaper than the one known; those that would not be enough even with all lots that are still to
come, or with as many copies gained for each further pod as any lot can give at most; and those that differ from another
only in lots that are alike, of which the first, the cheapest to lose, go first.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.evictions.allowances import Allowances
from gang_scheduler.domain.evictions.lot_table import Demand
from gang_scheduler.domain.evictions.set_price import Price, SetPrices
from gang_scheduler.domain.evictions.victims import Lot

MOST_STEPS = 400
"""So many sets are looked at; the cheapest among them is taken then."""


@dataclass(slots=True)
class CheapestLots:
    """``lots`` are the candidates, the cheapest first; ``free`` is the room without any of them gone.

    ``is_enough`` tries a set on the books with every rule; the vectors only say what cannot be.
    """

    lots: Sequence[Lot]
    demands: Sequence[Demand]
    free: Ints
    allowances: Allowances
    prices: SetPrices
    is_enough: Callable[[Sequence[Lot]], bool]
    best: Price
    found: list[Lot] | None = None
    _slots: list[int] = field(init=False)
    _freed: list[Ints] = field(init=False)
    _rest: list[Ints] = field(init=False)
    """What the lots from here on free together."""

    _others: list[int] = field(init=False)
    """How many copies of each demand fit on nodes where no lot is."""

    _kinds: list[Hashable] = field(init=False)
    _gains: list[float] = field(init=False)
    """How many copies of each demand a pod can make room for at most."""

    _steps: int = 0

    def run(self) -> list[Lot] | None:
        """The cheapest lots that are enough and cheaper than ``best``; None where there are none."""
        self._lay_out()
        self._extend(0, self.free[:, self._slots])
        return self.found

    def _lay_out(self) -> None:
        self._slots = sorted({record.slot for lot in self.lots for record in lot.records})
        column = {slot: at for at, slot in enumerate(self._slots)}
        self._freed = []
        for lot in self.lots:
            freed = np.zeros((len(self.free), len(column)), np.int64)
            for record in lot.records:
                freed[list(record.shape.rows), column[record.slot]] += record.shape.needs
            self._freed.append(freed)
        self._rest = [np.zeros((len(self.free), len(column)), np.int64)]
        for freed in reversed(self._freed):
            self._rest.append(self._rest[-1] + freed)
        self._rest.reverse()
        self._others = [int(np.delete(item.copies(self.free), self._slots).sum()) for item in self.demands]
        self._kinds = [self._kind(lot) for lot in self.lots]
        self._gains = [
            max((self._gain(item, at) for at in range(len(self.lots))), default=0.0) for item in self.demands
        ]

    def _kind(self, lot: Lot) -> Hashable:
        """Lots of one kind are alike to the price and to all rules but the order in which they go."""
        if len(lot.records) > 1:
            return id(lot)
        record = lot.records[0]
        lone = lot.minimum and len(lot.holding.groups) == 1 and len(lot.holding.groups[0].members) == 1
        budgets = tuple(sorted(budget.key for budget in self.allowances.budgets.of(record)))
        gang = None if lone else id(lot.holding)
        return record.slot, record.shape.index, record.role, lot.minimum, lot.queue, record.charged, gang, budgets

    def _gain(self, item: Demand, at: int) -> float:
        """Room for at most so many more copies for each pod of a lot: what it frees, rounded up node by node."""
        most = np.maximum(-(-self._freed[at][item.rows] // item.need).max(axis=0), 0)
        return float(most.sum()) / len(self.lots[at].records)

    def _missing(self, free: Ints) -> list[int]:
        """How many copies of each demand have no room by itself."""
        return [
            item.wanted - others - int(_copies(item, free, self._slots).sum())
            for item, others in zip(self.demands, self._others, strict=True)
        ]

    def _extend(self, first: int, free: Ints) -> None:
        """Look at all sets that have the chosen lots and some of those from ``first`` on; ``free`` is the room by now."""
        chosen = self.allowances.chosen
        price, missing = self.prices.of(chosen), self._missing(free)
        self._steps += 1
        if all(count <= 0 for count in missing) and self.is_enough(list(chosen)):
            self.best, self.found = price, list(chosen)
            return
        more = self._pods_missing(missing)
        tried: set[Hashable] = set()
        for at in range(first, len(self.lots)):
            if self._steps >= MOST_STEPS or price._replace(pods=price.pods + more) >= self.best:
                return
            if self._kinds[at] in tried:
                continue
            if any(count > 0 for count in self._missing(free + self._rest[at])):
                return
            lot = self.lots[at]
            if not self.allowances.admit(lot):
                continue
            tried.add(self._kinds[at])
            if self.prices.of(chosen) < self.best:
                self._extend(at + 1, free + self._freed[at])
            self.allowances.dismiss([lot])

    def _pods_missing(self, missing: Sequence[int]) -> int:
        """At least so many more pods have to go."""
        needed = [-int(-count // gain) for count, gain in zip(missing, self._gains, strict=True) if count > 0 and gain]
        return max([1, *needed])


def _copies(item: Demand, free: Ints, slots: Sequence[int]) -> Ints:
    fits = np.maximum((free[item.rows] // item.need).min(axis=0), 0)
    copies: Ints = np.where(item.mask[slots], fits, 0)
    return copies
