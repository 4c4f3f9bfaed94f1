"""Lots as vectors: which of them make room for one more copy of a shape, on which node, at what cost.

The plain rule is to look at every node: its lots, the cheapest first, until one more copy fits. Here all nodes are looked at
at once: the lots are sorted by node and cost, what the first so many of a node free are prefix sums, and the first prefix
that is enough is the node's offer. A gang that lies on several nodes makes an offer of its own.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.evictions.victims import Lot
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape

AT_ONCE = 64
"""So many offers are read from the vectors at a time."""


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

    shape: Ints = field(init=False)
    """The number of the shape of a lot of one pod, else -1."""

    _single: Ints = field(init=False)
    _slots: Ints = field(init=False)
    _freed: Ints = field(init=False)
    _pair_lot: Ints = field(init=False)
    _pair_slot: Ints = field(init=False)
    _pair_freed: Ints = field(init=False)

    def __post_init__(self) -> None:
        gangs: dict[int, int] = {}
        queues: dict[str, int] = {}
        lots, count = self.lots, len(self.lots)
        firsts = [lot.records[0] for lot in lots]
        self.gang = _column(gangs.setdefault(id(lot.holding), len(gangs)) for lot in lots)
        self.queue = _column(queues.setdefault(first.group.queue, len(queues)) for first in firsts)
        self.numbers = {id(lot): number for number, lot in enumerate(lots)}
        self.queues = list(queues)
        self.gone = np.zeros(count, np.bool_)
        self.minimum = np.array([lot.minimum for lot in lots], np.bool_)
        self.priority = _column(lot.priority for lot in lots)
        singles = np.array([len(lot.records) == 1 for lot in lots], np.bool_)
        self.shape = np.where(singles, _column(first.form.shape.index for first in firsts), -1)
        places = [(lot.created, first.order) for lot, first in zip(lots, firsts, strict=True)]
        self.age = np.zeros(count, np.int64)
        self.age[sorted(range(count), key=places.__getitem__, reverse=True)] = np.arange(count)
        self._single = np.flatnonzero(singles)
        self._slots = _column(first.slot for first in firsts)[self._single]
        self._lay_out()

    def _lay_out(self) -> None:
        lots, rows = self.lots, len(self.table.used)
        self._freed = np.zeros((rows, len(self._single)), np.int64)
        shapes = self.shape[self._single]
        for index in np.unique(shapes).tolist():
            columns = np.flatnonzero(shapes == index)
            shape = lots[int(self._single[columns[0]])].records[0].shape
            self._freed[np.ix_(np.array(shape.rows, np.intp), columns)] = shape.needs_vector
        pairs: dict[tuple[int, int], int] = {}
        members: dict[PodShape, dict[int, int]] = {}
        for number in np.flatnonzero(self.shape < 0).tolist():
            for record in lots[number].records:
                pair = pairs.setdefault((number, record.slot), len(pairs))
                counts = members.setdefault(record.form.shape, {})
                counts[pair] = counts.get(pair, 0) + 1
        self._pair_lot = np.array([number for number, _ in pairs], np.int64)
        self._pair_slot = np.array([slot for _, slot in pairs], np.int64)
        self._pair_freed = np.zeros((rows, len(pairs)), np.int64)
        for shape, counts in members.items():
            freed = shape.needs_vector * np.array(list(counts.values()), np.int64)
            self._pair_freed[np.ix_(np.array(shape.rows, np.intp), np.array(list(counts), np.intp))] += freed

    @property
    def claiming(self) -> Mask:
        """The lots with pods that have claims of devices, which come free with them."""
        return np.array([any(record.claim_keys for record in lot.records) for lot in self.lots], np.bool_)

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
        deficit = np.maximum(item.need * (copies + missing) - free[item.rows], 0)
        value = (np.minimum(self._freed[item.rows], deficit[:, self._slots]) / item.need).sum(axis=0)
        used = np.flatnonzero(usable[self._single] & item.mask[self._slots] & (value > 0))
        most, minimum = -np.rint(value[used] * 1e6), self.minimum[self._single[used]]
        # Members that their gangs can spare come first, or the lots that give most.
        keys = [(most, minimum), (minimum, most)] if differ(most) and differ(minimum) else [(most, minimum)]
        found = [self._of_nodes(free, item, copies, used, key, shares, missing) for key in keys] if len(used) else []
        return heapq.merge(*found, sorted(self._of_gangs(free, item, copies, usable, shares, missing)))

    def _of_nodes(
        self,
        free: Ints,
        item: Demand,
        copies: Ints,
        used: Ints,
        keys: tuple[npt.NDArray[np.generic], ...],
        shares: Ints,
        missing: int,
    ) -> Iterator[Offer]:
        """From the lots of one pod at the places ``used``; on one node and in one queue by ``keys``, the last first."""
        rows, need = item.rows, item.need
        number, slots = self._single[used], self._slots[used]
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
        best = np.lexsort(cost[::-1])
        for begin in range(0, len(best), AT_ONCE):
            some = best[begin : begin + AT_ONCE]
            bounds = zip(start_of[ends[some]].tolist(), ends[some].tolist(), strict=True)
            for price, more, (start, last) in zip(cost[:, some].T.tolist(), gain[some].tolist(), bounds, strict=True):
                yield Offer(tuple(price), more, tuple(number[start : last + 1].tolist()))

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


def differ(values: npt.NDArray[np.generic]) -> bool:
    """Whether not all are the same."""
    return bool((values != values[:1]).any())


def _column(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int64)


def _prefix(parts: Ints, start_of: Ints) -> Ints:
    """Running sums that begin anew at each start."""
    total = np.cumsum(parts, axis=1)
    before: Ints = total[:, start_of] - parts[:, start_of]
    return total - before
