"""All nodes as one shape of pod sees them, kept up to date: how many copies fit where, and which node is best.

The plain rule is: of the nodes that pass every filter and have room, take the one with the highest score, and of equal
ones the first by name. A view is that rule as vectors, of which only the nodes that changed are computed again.
"""

import copy
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.compiled import Kernels, Renew, no_kernel
from gang_scheduler.domain.columns.vectors import ALL, Ints, Mask, Slots, parts
from gang_scheduler.domain.nodes.filters import StaticMasks, static_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.room.renewal import Renewal, compilable, plain
from gang_scheduler.domain.room.standing import RANK_BITS, Standing, base_of
from gang_scheduler.domain.score.outlook import Outlook
from gang_scheduler.domain.score.scoring import FULL, Placement, RoomScore

NO_NODE = -1
FEW = 24
"""Up to so many nodes plain integers are faster than vectors."""


@dataclass(slots=True)
class ShapeView:
    """``copies`` says how many more pods of the shape fit on each node, ``keys`` orders the nodes (-1: does not fit)."""

    shape: PodShape
    table: NodeTable
    placement: Placement
    foresight: Outlook
    kernels: Kernels = no_kernel
    standing: Standing | None = None
    """What views share, where there are others."""

    mask: Mask = field(init=False)
    base: Ints = field(init=False)
    """The part of the keys that changes with the nodes themselves only; others' as well until one of these changes."""

    copies: Ints = field(init=False)
    keys: Ints = field(init=False)
    total: int = 0
    _score: RoomScore = field(init=False)
    _largest: int | None = None
    _room_seen: int = -1
    _rules_seen: int = -1
    _foresight_seen: int = 0
    _renewal: Renewal | None = None
    _best: int | None = None
    """The best node, NO_NODE where there is none; None while it has to be looked for."""

    _best_key: int = NO_NODE
    _compilable: bool = field(init=False)
    """Whether compiled code can do it, where it is there and something is foreseen."""

    _shares_base: bool = True

    def __post_init__(self) -> None:
        self._compilable = self.placement is Placement.BINPACK and compilable(self.shape)
        self._score = RoomScore.of(self.shape, self.placement, self.table)

    def sync(self) -> "ShapeView":
        """Catch up with what changed since the last time."""
        rules, room = self.table.rules, self.table.room
        looked, rules_end, room_end = self._foresight_seen == self.foresight.version, rules.end, room.end
        if looked and self._room_seen == room_end and self._rules_seen == rules_end:
            return self
        self._foresight_seen = self.foresight.version
        changed = rules.since(self._rules_seen) if self._rules_seen >= 0 else None
        if changed:
            self._largest = None
        kernel = self._kernel() if changed is not None else None
        touched = room.entries(self._room_seen) if kernel is not None else None
        if kernel is not None and touched is not None and changed is not None:
            if changed:
                self._renew_rules(changed)
                touched = np.concatenate([touched, np.array(changed, np.int64)])
            self._renew_compiled(kernel, touched, everywhere=not looked)
        else:
            self._renew_plainly(changed, looked)
        self._room_seen, self._rules_seen = room_end, rules_end
        return self

    def _renew_plainly(self, changed: list[int] | None, looked: bool) -> None:
        """Catch up in vectors, or node by node. ``changed`` are the nodes whose rules changed; None: all, or it is not known."""
        touched = self.table.room.since(self._room_seen) if self._room_seen >= 0 else None
        if changed is None or touched is None or len(changed) + len(touched) > self.table.size // 2:
            self._renew()
            return
        if changed:
            self._renew_rules(changed)
        plain = not (self.shape.devices.cpus and self.table.devices.amplified) and not self._by_load
        for slots in (changed, touched) if looked else ():
            if not slots:
                continue
            if len(slots) <= FEW and plain and not self._foresees:
                self._renew_few(slots)
            else:
                self._renew_room(np.array(slots, np.intp))
        for part in () if looked else parts(self.table.size):
            self._renew_room(part)

    def inside(self, fence: Mask) -> "ShapeView":
        """The same for the nodes of ``fence`` only; it does not follow later changes."""
        view = copy.copy(self)
        view.mask = self.mask & fence
        view.copies = np.where(fence, self.copies, 0)
        view.keys = np.where(fence, self.keys, NO_NODE)
        view.total = int(view.copies.sum())
        view._largest = view._best = None
        return view

    def best(self) -> int:
        """The best node that has room for one copy, or NO_NODE."""
        if self._best is None:
            slot = int(self.keys.argmax())
            self._best_key = self.keys.item(slot)
            self._best = slot if self._best_key >= 0 else NO_NODE
        return self._best

    def with_bonus(self, bonus: Ints | int) -> Ints:
        """The keys with an addition to the scores; of no meaning where a node does not fit."""
        return self.keys + (bonus << RANK_BITS)

    def close(self, slot: int) -> None:
        """Leave a node out until it changes again: it was just filled with copies of this very shape."""
        self._set_key(slot, NO_NODE)

    def fitting_nodes(self) -> int:
        """How many nodes have room for a copy."""
        return int(np.count_nonzero(self.copies))

    def largest_possible(self) -> int:
        """How many copies all nodes together would hold if they were empty."""
        if self._largest is None:
            self._largest = int(self.when_empty().sum())
        return self._largest

    def when_empty(self) -> Ints:
        """How many copies each node would hold if it were empty."""
        rows = self.table.rows_for(self.shape)
        whole = (self.table.allocatable[rows] // self.shape.needs_vector).min(axis=0)
        devices = self.table.devices
        if devices.concern(self.shape.devices):
            whole = np.minimum(whole, devices.copies(self.shape.devices, ALL, devices.have))
        if (amplified := self.table.amplified(self.shape, ALL, empty=True)) is not None:
            whole = np.minimum(whole, amplified)
        return np.where(self.mask, whole, 0)

    def _renew(self) -> None:
        size = self.table.size
        standing = self.standing or Standing(self.table, StaticMasks(self.table))
        self.mask = self._allowed(standing.masks.of(self.shape.rules), ALL)
        self.base, self._shares_base = standing.base(self.shape), True
        self.copies, self.keys = np.zeros(size, np.int64), np.full(size, NO_NODE, np.int64)
        self.total, self._largest, self._best = 0, None, None
        for part in parts(size):
            self._renew_room(part)

    def _renew_rules(self, changed: list[int]) -> None:
        slots = np.array(changed, np.intp)
        self.mask[slots] = self._allowed(static_mask(self.shape.rules, self.table, slots), slots)
        if self._shares_base:
            self.base, self._shares_base = self.base.copy(), False
        self.base[slots] = base_of(self.shape, self.table, slots)

    def _allowed(self, static: Mask, slots: Slots) -> Mask:
        if self.shape.broken or self.shape.unmet:
            return np.zeros_like(static)
        return static & self.table.devices.agrees(self.shape.devices, slots)

    def _spared(self, slots: Slots) -> Ints:
        """The score of nodes where a pod that asks for shares of cards breaks no whole one."""
        return self.table.devices.spared(self.shape.devices, slots) * FULL

    @property
    def _foresees(self) -> bool:
        """Whether what a pod would spoil is the score of nodes that have cards."""
        return self.foresight.version > 0 and self.placement is Placement.BINPACK

    @property
    def _packs_shares(self) -> bool:
        return self.shape.devices.shares and self.placement is Placement.BINPACK

    @property
    def _by_load(self) -> bool:
        """Whether it counts how much nodes use."""
        return self.table.load.ranks(self.shape)

    def _renew_few(self, slots: list[int]) -> None:
        """The same as _renew_room, without the cost of starting vector operations."""
        allocatable, used, of_node = self.table.allocatable, self.table.used, self._score.of_node
        limits, spared = self._limits_at(slots), self._spared_at(slots)
        for place, slot in enumerate(slots):
            copies = score = 0
            if self.mask[slot]:
                copies, score = of_node(allocatable[:, slot].tolist(), used[:, slot].tolist())
                if limits is not None and copies > limits[place]:
                    copies = limits[place]
            self.total += copies - self.copies.item(slot)
            self.copies[slot] = copies
            if spared is not None:
                score += spared[place]
            self._set_key(slot, (score << RANK_BITS) + self.base.item(slot) if copies else NO_NODE)

    def _set_key(self, slot: int, key: int) -> None:
        """One node has another place in the order. Mostly the best was filled further and remains it: no two keys are equal."""
        self.keys[slot] = key
        if self._best is None:
            return
        if key > self._best_key:
            self._best, self._best_key = slot, key
        elif slot == self._best and key < self._best_key:
            self._best = None

    def _limits_at(self, slots: list[int]) -> list[int] | None:
        """How many copies devices and load allow; None where neither matters."""
        devices, load = self.table.devices, self.table.load
        limits = devices.copies_at(self.shape.devices, slots) if devices.concern(self.shape.devices) else None
        busy = load.copies_at(self.shape, slots) if load.by_slot else None
        if limits is None or busy is None:
            return busy if limits is None else limits
        return list(map(min, limits, busy))

    def _spared_at(self, slots: list[int]) -> list[int] | None:
        if not self._packs_shares:
            return None
        found: list[int] = self._spared(np.array(slots, np.intp)).tolist()
        return found

    def _renew_room(self, slots: Slots) -> None:
        self._best = None
        if (kernel := self._kernel()) is not None:
            places = np.arange(self.table.size)[slots] if isinstance(slots, slice) else slots
            self._renew_compiled(kernel, places, everywhere=False)
            return
        rows = self._score.rows
        if isinstance(slots, slice):
            allocatable, used = self.table.allocatable[rows, slots], self.table.used[rows, slots]
        else:
            at = np.ix_(np.array(rows, np.intp), slots)
            allocatable, used = self.table.allocatable[at], self.table.used[at]
        fits = ((allocatable - used) // self.shape.needs_vector).min(axis=0)
        devices = self.table.devices
        if devices.concern(self.shape.devices):
            fits = np.minimum(fits, devices.copies(self.shape.devices, slots))
        for limit in (self.table.amplified(self.shape, slots), self.table.load.copies(self.shape, slots)):
            if limit is not None:
                fits = np.minimum(fits, limit)
        copies = np.where(self.mask[slots], np.maximum(fits, 0), 0)
        self.total += int(copies.sum()) - int(self.copies[slots].sum())
        self.copies[slots] = copies
        score = self._scores(allocatable, used, copies, slots)
        if self._by_load:
            score = score + self.table.load.scores(self.shape, slots, FULL)
        keys = (score << RANK_BITS) + self.base[slots]
        self.keys[slots] = np.where(copies > 0, keys, NO_NODE)

    def _kernel(self) -> Renew | None:
        """Compiled code for what _renew_room does, where there is any."""
        if self.foresight.appraisal is None or not (self._compilable and plain(self.table)):
            return None
        compiled = None if self._by_load else self.kernels()
        return compiled.renew if compiled else None

    def _renew_compiled(self, kernel: Renew, slots: Ints, *, everywhere: bool) -> None:
        """What _renew_room does at ``slots``, which may be named twice, and the keys ``everywhere`` for copies that are right."""
        appraisal = self.foresight.appraisal
        assert appraisal is not None, "there is a kernel only where it is"
        if self._renewal is None:
            self._renewal = Renewal.of(self.shape, self._score, self.table)
        view = self.mask, self.base, self.copies, self.keys
        more, best = self._renewal.run(kernel, slots, view, appraisal, RANK_BITS, everywhere=everywhere)
        self.total += more
        self._best, self._best_key = best, self.keys.item(best) if best >= 0 else NO_NODE

    def _scores(self, allocatable: Ints, used: Ints, copies: Ints, slots: Slots) -> Ints:
        """How full nodes are; but where there are cards, and room, what a pod would spoil, once the foresight knows it."""
        if not self._foresees:
            score = self._score.of_nodes(allocatable, used)
            return score + self._spared(slots) if self._packs_shares else score
        fits = np.flatnonzero(copies)
        places = fits + slots.start if isinstance(slots, slice) else slots[fits]
        cards = self.table.devices.have.memory[0, places] > 0
        if cards.all():
            score = np.zeros(copies.shape, np.int64)
        else:
            score, fits, places = self._score.of_nodes(allocatable, used), fits[cards], places[cards]
        if len(fits):
            score[fits] = self.foresight.scores(self.shape, places)
        return score + self._spared(slots) if self.shape.devices.slices else score


@dataclass(slots=True)
class ShapeViews:
    """The views of the shapes in use, packing and spreading, the ones that were made first leave when there are too many."""

    table: NodeTable
    placement: Placement
    foresight: Outlook
    standing: Standing
    kernels: Kernels = no_kernel
    limit: int = 1024
    _views: dict[tuple[int, bool], ShapeView] = field(default_factory=dict)
    """By number of the shape, and whether its nodes are spread."""

    def of(self, shape: PodShape, placement: Placement | None = None) -> ShapeView:
        """The view of ``shape``, up to date; ``placement`` decides which nodes come first, not how many copies fit where."""
        placement = placement or self.placement
        key = shape.index, placement is Placement.SPREAD
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= self.limit:
                for old in list(self._views)[: self.limit // 2]:
                    del self._views[old]
            view = self._views[key] = ShapeView(
                shape, self.table, placement, self.foresight, self.kernels, self.standing
            )
        return view.sync()
