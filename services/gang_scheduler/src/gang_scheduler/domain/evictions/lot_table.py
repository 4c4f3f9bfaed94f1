"""Lots as vectors: which of them make room for one more copy of a shape, on which node, at what cost.

The plain rule is to look at every node: its lots, the cheapest first, until one more copy fits. Here all nodes are looked at
at once: the lots are sorted by node and cost, what the first so many of a node free are prefix sums, and the first prefix
that is enough is the node's offer. A gang that lies on several nodes makes an offer of its own.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.evictions.victims import Lot
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.vectors import Ints, Mask


class Offer(NamedTuple):
    """Lots that make room for ``gain`` more copies. A smaller ``cost`` is better."""

    cost: tuple[float, ...]
    gain: int
    lots: tuple[int, ...]


class Demand(NamedTuple):
    """So many copies of one shape, on nodes that pass its static rules."""

    rows: list[int]
    need: Ints
    mask: Mask
    wanted: int

    def copies(self, free: Ints) -> Ints:
        """How many copies fit on each node."""
        fits: Ints = np.where(self.mask, np.maximum((free[self.rows] // self.need).min(axis=0), 0), 0)
        return fits


@dataclass(slots=True)
class LotTable:
    """Lots by number. ``gone`` marks those that are not there any more."""

    table: NodeTable
    lots: Sequence[Lot]
    numbers: dict[int, int] = field(init=False)
    gone: Mask = field(init=False)
    minimum: Mask = field(init=False)
    priority: Ints = field(init=False)
    gang: Ints = field(init=False)
    queue: Ints = field(init=False)
    queues: list[str] = field(init=False)
    age: Ints = field(init=False)
    """The place in the order from young to old."""

    _single: Ints = field(init=False)
    _slots: Ints = field(init=False)
    _freed: Ints = field(init=False)
    _pair_lot: Ints = field(init=False)
    _pair_slot: Ints = field(init=False)
    _pair_freed: Ints = field(init=False)

    def __post_init__(self) -> None:
        lots = self.lots
        self.numbers = {id(lot): number for number, lot in enumerate(lots)}
        self.gone = np.zeros(len(lots), np.bool_)
        self.minimum = np.array([lot.minimum for lot in lots], np.bool_)
        self.priority = np.array([lot.priority for lot in lots], np.int64)
        gangs: dict[int, int] = {}
        self.gang = np.array([gangs.setdefault(id(lot.holding), len(gangs)) for lot in lots], np.int64)
        queues: dict[str, int] = {}
        self.queue = np.array([queues.setdefault(lot.queue, len(queues)) for lot in lots], np.int64)
        self.queues = list(queues)
        by_name = sorted(range(len(lots)), key=lambda number: lots[number].records[0].order, reverse=True)
        self.age = np.zeros(len(lots), np.int64)
        self.age[sorted(by_name, key=lambda number: lots[number].created, reverse=True)] = np.arange(len(lots))
        self._lay_out()

    def _lay_out(self) -> None:
        lots, rows = self.lots, len(self.table.used)
        single = [number for number, lot in enumerate(lots) if len(lot.records) == 1]
        self._single = np.array(single, np.int64)
        self._slots = np.array([lots[number].records[0].slot for number in single], np.int64)
        self._freed = np.zeros((rows, len(single)), np.int64)
        shapes: dict[int, list[int]] = {}
        for column, number in enumerate(single):
            shapes.setdefault(lots[number].records[0].shape.index, []).append(column)
        for columns in shapes.values():
            shape = lots[single[columns[0]]].records[0].shape
            self._freed[np.ix_(shape.rows, columns)] = shape.needs_vector
        pairs: dict[tuple[int, int], Ints] = {}
        for number, lot in enumerate(lots):
            for record in lot.records if len(lot.records) > 1 else ():
                freed = pairs.setdefault((number, record.slot), np.zeros(rows, np.int64))
                freed[list(record.shape.rows)] += record.shape.needs_vector[:, 0]
        self._pair_lot = np.array([number for number, _ in pairs], np.int64)
        self._pair_slot = np.array([slot for _, slot in pairs], np.int64)
        self._pair_freed = np.array(list(pairs.values()), np.int64).reshape(len(pairs), rows).T

    def worth(self, number: int) -> tuple[bool, int, int]:
        """What is worth more is evicted later."""
        return bool(self.minimum[number]), int(self.priority[number]), int(self.age[number])

    def freed_by(self, chosen: Mask) -> Ints:
        """What the ``chosen`` lots free, resource by node; no member of a gang counts by itself and with its gang."""
        whole = np.bincount(self.gang[chosen & self.minimum], minlength=int(self.gang.max(initial=0)) + 1) > 0
        counted = chosen & (self.minimum | ~whole[self.gang])
        total = np.zeros_like(self.table.used)
        picked = counted[self._single]
        for row in range(len(self._freed)):
            weights = self._freed[row][picked]
            total[row] += np.bincount(self._slots[picked], weights=weights, minlength=total.shape[1]).astype(np.int64)
        taken = counted[self._pair_lot]
        np.add.at(total.T, self._pair_slot[taken], self._pair_freed.T[taken])
        return total

    def losses(self, free: Ints, item: Demand) -> Ints:
        """For each lot how many copies of the shape would not fit any more if it alone came back to the ``free`` room."""
        copies, rows = item.copies(free), item.rows

        def lost(slots: Ints, freed: Ints) -> Ints:
            left = ((free[rows][:, slots] - freed[rows]) // item.need).min(axis=0)
            fewer: Ints = copies[slots] - np.where(item.mask[slots], np.maximum(left, 0), 0)
            return fewer

        found = np.zeros(len(self.lots), np.int64)
        found[self._single] = lost(self._slots, self._freed)
        if len(self._pair_lot):
            np.add.at(found, self._pair_lot, lost(self._pair_slot, self._pair_freed))
        return found

    def touching(self, item: Demand) -> Mask:
        """The lots that free something of what the shape needs, on a node that it may go to."""
        found = np.zeros(len(self.lots), np.bool_)
        found[self._single] = (self._freed[item.rows] > 0).any(axis=0) & item.mask[self._slots]
        pairs = (self._pair_freed[item.rows] > 0).any(axis=0) & item.mask[self._pair_slot]
        found[self._pair_lot[pairs]] = True
        return found

    def offers(self, free: Ints, item: Demand, usable: Mask, shares: Ints, missing: int) -> Iterator[Offer]:
        """The offers of nodes and gangs, the best first. ``shares`` says for each lot how much its queue is above its due."""
        copies = item.copies(free)
        return heapq.merge(
            self._of_nodes(free, item, copies, usable, shares, missing, spare_first=True),
            self._of_nodes(free, item, copies, usable, shares, missing, spare_first=False),
            sorted(self._of_gangs(free, item, copies, usable, shares, missing)),
        )

    def _of_nodes(
        self,
        free: Ints,
        item: Demand,
        copies: Ints,
        usable: Mask,
        shares: Ints,
        missing: int,
        *,
        spare_first: bool,
    ) -> Iterator[Offer]:
        """``spare_first``: members that their gangs can spare come first, else the lots that give most."""
        rows, need = item.rows, item.need
        deficit = np.maximum(need * (copies + missing) - free[rows], 0)
        value = (np.minimum(self._freed[rows], deficit[:, self._slots]) / need).sum(axis=0)
        used = np.flatnonzero(usable[self._single] & item.mask[self._slots] & (value > 0))
        if not len(used):
            return
        number, slots = self._single[used], self._slots[used]
        most = -np.rint(value[used] * 1e6)
        keys = (most, self.minimum[number]) if spare_first else (self.minimum[number], most)
        order = np.lexsort((self.age[number], self.priority[number], *keys, -shares[number], slots))
        number, slots, freed = number[order], slots[order], self._freed[rows][:, used[order]]
        starts = np.flatnonzero(np.r_[True, slots[1:] != slots[:-1]])
        start_of = np.repeat(starts, np.diff(np.r_[starts, len(slots)]))
        room = free[rows][:, slots] + _prefix(freed, start_of)
        enough = np.flatnonzero((room >= need * (copies[slots] + 1)).all(axis=0))
        if not len(enough):
            return
        _, first = np.unique(slots[enough], return_index=True)
        ends = enough[first]
        _, earliest = np.unique(slots * (self.gang.max() + 1) + self.gang[number], return_index=True)
        new_gang = np.zeros(len(slots), np.int64)
        new_gang[earliest] = 1
        gain = np.minimum((room[:, ends] // need).min(axis=0) - copies[slots[ends]], missing)
        parts = np.array(
            [self.minimum[number], new_gang, np.ones_like(slots), self.priority[number], self.age[number]], np.int64
        )
        cost = np.vstack(
            [-shares[number][ends], _prefix(parts, start_of)[:, ends] / gain, self.table.rank()[slots[ends]]]
        )
        for at in np.lexsort(cost[::-1]).tolist():
            end = int(ends[at])
            yield Offer(tuple(cost[:, at].tolist()), int(gain[at]), tuple(number[start_of[end] : end + 1].tolist()))

    def _of_gangs(
        self, free: Ints, item: Demand, copies: Ints, usable: Mask, shares: Ints, missing: int
    ) -> Iterator[Offer]:
        if not len(self._pair_lot):
            return
        slots = self._pair_slot
        room = free[item.rows][:, slots] + self._pair_freed[item.rows]
        after = np.where(item.mask[slots], (room // item.need).min(axis=0), 0)
        weights = np.maximum(after - copies[slots], 0)
        gained = np.bincount(self._pair_lot, weights=weights, minlength=len(self.lots)).astype(np.int64)
        for number in np.flatnonzero((gained > 0) & usable).tolist():
            gain = min(int(gained[number]), missing)
            pods = len(self.lots[number].records)
            parts = (1, 1, pods, int(self.priority[number]) * pods, int(self.age[number]))
            cost = (-float(shares[number]), *(part / gain for part in parts), float(number))
            yield Offer(cost, gain, (number,))


def _prefix(parts: Ints, start_of: Ints) -> Ints:
    """Running sums that begin anew at each start."""
    total = np.cumsum(parts, axis=1)
    before: Ints = total[:, start_of] - parts[:, start_of]
    return total - before
