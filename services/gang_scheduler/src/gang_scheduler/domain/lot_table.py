"""Lots as vectors: which of them make room for one more copy of a shape, on which node, at what cost.

The plain rule is to look at every node: its lots, the cheapest first, until one more copy fits. Here all nodes are looked at
at once: the lots are sorted by node and cost, what the first so many of a node free are prefix sums, and the first prefix
that is enough is the node's offer. A gang that lies on several nodes makes an offer of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.node_table import NodeTable
from gang_scheduler.domain.vectors import Ints, Mask
from gang_scheduler.domain.victims import Lot


class Offer(NamedTuple):
    """Lots that make room for ``gain`` more copies. A smaller ``cost`` is better."""

    cost: tuple[float, ...]
    gain: int
    lots: tuple[int, ...]


@dataclass(slots=True)
class LotTable:
    """``single`` are the numbers of the lots of one pod, in the order of worth; ``open`` those that may still be taken."""

    table: NodeTable
    lots: Sequence[Lot]
    open: Mask = field(init=False)
    _single: Ints = field(init=False)
    _slots: Ints = field(init=False)
    _freed: Ints = field(init=False)
    _minimum: Ints = field(init=False)
    _gang: Ints = field(init=False)
    _priority: Ints = field(init=False)
    _age: Ints = field(init=False)
    _pair_lot: Ints = field(init=False)
    _pair_slot: Ints = field(init=False)
    _pair_freed: Ints = field(init=False)

    def __post_init__(self) -> None:
        lots, rows = self.lots, len(self.table.used)
        self.open = np.ones(len(lots), np.bool_)
        self._single = np.array([n for n, lot in enumerate(lots) if len(lot.records) == 1], np.int64)
        self._slots = np.array([lots[n].records[0].slot for n in self._single], np.int64)
        self._freed = np.zeros((rows, len(self._single)), np.int64)
        for column, number in enumerate(self._single):
            shape = lots[number].records[0].shape
            self._freed[list(shape.rows), column] = shape.needs
        gangs = {id(holding): n for n, holding in enumerate({id(lot.holding): lot.holding for lot in lots}.values())}
        self._gang = np.array([gangs[id(lot.holding)] for lot in lots], np.int64)
        self._minimum = np.array([lot.minimum for lot in lots], np.int64)
        self._priority = np.array([lot.priority for lot in lots], np.int64)
        self._age = np.zeros(len(lots), np.int64)
        self._age[sorted(range(len(lots)), key=lambda n: (lots[n].worth[2:], n))] = np.arange(len(lots))
        self._pair_up(rows)

    def _pair_up(self, rows: int) -> None:
        """What each gang of several pods would free on each of its nodes."""
        pairs: dict[tuple[int, int], Ints] = {}
        for number, lot in enumerate(self.lots):
            if len(lot.records) == 1:
                continue
            for record in lot.records:
                freed = pairs.setdefault((number, record.slot), np.zeros(rows, np.int64))
                freed[list(record.shape.rows)] += np.array(record.shape.needs, np.int64)
        self._pair_lot = np.array([number for number, _ in pairs], np.int64)
        self._pair_slot = np.array([slot for _, slot in pairs], np.int64)
        self._pair_freed = np.array(list(pairs.values()), np.int64).reshape(len(pairs), rows).T

    def freed_by(self, chosen: Mask) -> Ints:
        """What the ``chosen`` lots free, resource by node; a pod in two of them counts once only if they exclude each other."""
        total = np.zeros_like(self.table.used)
        picked = chosen[self._single]
        for row in range(len(total)):
            total[row] += np.bincount(
                self._slots[picked], weights=self._freed[row][picked], minlength=total.shape[1]
            ).astype(np.int64)
        taken = chosen[self._pair_lot]
        np.add.at(total.T, self._pair_slot[taken], self._pair_freed.T[taken])
        return total

    def offers(self, free: Ints, rows: list[int], need: Ints, mask: Mask, shares: Ints, missing: int) -> list[Offer]:
        """The offers of all nodes and gangs, the best first. ``shares`` says for each lot how much its queue is above its due."""
        copies = _copies(free[rows], need, mask)
        return sorted(
            [
                *self._of_nodes(free, rows, need, mask, copies, shares, missing),
                *self._of_gangs(free, rows, need, mask, copies, shares, missing),
            ]
        )

    def _of_nodes(
        self, free: Ints, rows: list[int], need: Ints, mask: Mask, copies: Ints, shares: Ints, missing: int
    ) -> list[Offer]:
        deficit = np.maximum(need * (copies + 1) - free[rows], 0)
        useful = np.minimum(self._freed[rows], deficit[:, self._slots])
        value = (useful / need).sum(axis=0)
        usable = np.flatnonzero(self.open[self._single] & mask[self._slots] & (value > 0))
        if not len(usable):
            return []
        number = self._single[usable]
        slots = self._slots[usable]
        keys = (self._age[number], self._priority[number], -np.rint(value[usable] * 1e6), self._minimum[number])
        order = np.lexsort((*keys, -shares[number], slots))
        number, slots, freed = number[order], slots[order], self._freed[rows][:, usable[order]]
        starts = np.flatnonzero(np.r_[True, slots[1:] != slots[:-1]])
        start_of = np.repeat(starts, np.diff(np.r_[starts, len(slots)]))
        room = free[rows][:, slots] + _prefix(freed, start_of)
        enough = np.flatnonzero((room >= need * (copies[slots] + 1)).all(axis=0))
        if not len(enough):
            return []
        _, first = np.unique(slots[enough], return_index=True)
        ends = enough[first]
        _, earliest = np.unique(slots * (self._gang.max() + 1) + self._gang[number], return_index=True)
        new_gang = np.zeros(len(slots), np.int64)
        new_gang[earliest] = 1
        gain = np.minimum((room[:, ends] // need).min(axis=0) - copies[slots[ends]], missing)
        sums = [
            _prefix(part.reshape(1, -1), start_of)[0][ends]
            for part in (
                self._minimum[number],
                new_gang,
                np.ones_like(slots),
                self._priority[number],
                self._age[number],
            )
        ]
        share = shares[number][ends]
        rank = self.table.rank()[slots[ends]]
        return [
            Offer(
                (-float(share[at]), *(float(part[at]) / int(gain[at]) for part in sums), float(rank[at])),
                int(gain[at]),
                tuple(number[start_of[end] : end + 1].tolist()),
            )
            for at, end in enumerate(ends.tolist())
        ]

    def _of_gangs(
        self, free: Ints, rows: list[int], need: Ints, mask: Mask, copies: Ints, shares: Ints, missing: int
    ) -> list[Offer]:
        if not len(self._pair_lot):
            return []
        slots = self._pair_slot
        after = np.where(mask[slots], ((free[rows][:, slots] + self._pair_freed[rows]) // need).min(axis=0), 0)
        gained = np.bincount(
            self._pair_lot, weights=np.maximum(after - copies[slots], 0), minlength=len(self.lots)
        ).astype(np.int64)
        found = []
        for number in np.flatnonzero((gained > 0) & self.open).tolist():
            gain = min(int(gained[number]), missing)
            lot = self.lots[number]
            parts = (1, 1, len(lot.records), lot.priority * len(lot.records), int(self._age[number]))
            cost = (-float(shares[number]), *(part / gain for part in parts), float(number))
            found.append(Offer(cost, gain, (number,)))
        return found


def possible_copies(free: Ints, rows: list[int], need: Ints, mask: Mask) -> int:
    """How many copies fit on all nodes together."""
    return int(_copies(free[rows], need, mask).sum())


def _copies(free: Ints, need: Ints, mask: Mask) -> Ints:
    fits: Ints = np.where(mask, np.maximum((free // need).min(axis=0), 0), 0)
    return fits


def _prefix(parts: Ints, start_of: Ints) -> Ints:
    """Running sums that begin anew at each start."""
    total = np.cumsum(parts, axis=1)
    before: Ints = total[:, start_of] - parts[:, start_of]
    return total - before
