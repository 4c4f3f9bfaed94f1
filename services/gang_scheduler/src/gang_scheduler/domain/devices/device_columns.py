"""Amounts of the devices of all nodes as matrices: row ``i`` is the i-th card or NUMA node, zero where a node has fewer."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask, Slots
from gang_scheduler.domain.devices.card_room import MOST_COPIES
from gang_scheduler.domain.devices.device_needs import CardNeed
from gang_scheduler.domain.devices.node_room import NodeRoom


@dataclass(slots=True)
class Columns:
    """What is free on the nodes, or what they have: of cards and of NUMA nodes."""

    core: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    memory: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    slots: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    cell_cpu: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    cell_memory: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    whole: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many cards of a node are free altogether."""

    def put(self, slot: int, node: NodeRoom) -> None:
        """Take over the free amounts of a node."""
        cards, cells = len(node.cards), len(node.cell_cpu)
        self.core[:cards, slot] = node.core
        self.memory[:cards, slot] = node.memory
        self.slots[:cards, slot] = node.slots
        if cells:
            self.cell_cpu[:cells, slot] = node.cell_cpu
            self.cell_memory[:cells, slot] = node.cell_memory
        self.whole[slot] = node.whole

    def follow(self, slot: int, node: NodeRoom) -> None:
        """Take over what changed of the free amounts of a node."""
        for at in node.moved:
            self.core[at, slot], self.memory[at, slot], self.slots[at, slot] = (
                node.core[at],
                node.memory[at],
                node.slots[at],
            )
        node.moved.clear()
        self.whole[slot] = node.whole
        if node.cells_moved:
            cells, node.cells_moved = len(node.cell_cpu), False
            self.cell_cpu[:cells, slot] = node.cell_cpu
            self.cell_memory[:cells, slot] = node.cell_memory

    def clear(self, slot: int) -> None:
        for matrix in (self.core, self.memory, self.slots, self.cell_cpu, self.cell_memory):
            matrix[:, slot] = 0
        self.whole[slot] = 0

    def grow(self, cards: int, cells: int, nodes: int) -> None:
        """Make place for at least so many."""
        self.core, self.memory, self.slots = (
            grown(matrix, cards, nodes) for matrix in (self.core, self.memory, self.slots)
        )
        self.cell_cpu, self.cell_memory = (grown(matrix, cells, nodes) for matrix in (self.cell_cpu, self.cell_memory))
        self.whole = np.concatenate([self.whole, np.zeros(max(0, nodes - len(self.whole)), np.int64)])


def grown(matrix: Ints, rows: int, columns: int) -> Ints:
    """The matrix with at least so many rows and columns."""
    if rows <= len(matrix) and columns <= matrix.shape[1]:
        return matrix
    larger = np.zeros((max(rows, len(matrix)), max(columns, matrix.shape[1])), np.int64)
    larger[: len(matrix), : matrix.shape[1]] = matrix
    return larger


def card_parts(need: CardNeed, free: Columns, have: Columns, slots: Slots) -> Ints:
    """How many pods each card could hold a part of (card by node), by what is ``free`` of what the nodes ``have``."""
    memory = have.memory[:, slots]
    parts = np.where(memory > 0, MOST_COPIES, 0)
    if need.core:
        parts = np.minimum(parts, free.core[:, slots] // need.core)
    if need.memory or need.ratio:
        each = need.memory or np.maximum(1, -(-memory * need.ratio // 100))
        parts = np.minimum(parts, free.memory[:, slots] // each)
    if need.virtual:
        parts = np.minimum(parts, free.slots[:, slots])
        if not need.core:
            parts = np.where(free.core[:, slots] > 0, parts, 0)
    return np.maximum(parts, 0)


def cards_holding(need: CardNeed, free: Columns, have: Columns, slots: Slots) -> Mask:
    """Which cards could hold a part of one pod (card by node): where card_parts is above zero, without its divisions."""
    memory, core = have.memory[:, slots], free.core[:, slots]
    holding: Mask = memory > 0
    if need.core:
        holding &= core >= need.core
    if need.memory:
        holding &= free.memory[:, slots] >= need.memory
    elif need.ratio:
        holding &= free.memory[:, slots] * 100 >= memory * need.ratio
    if need.virtual:
        holding &= (free.slots[:, slots] > 0) & ((core > 0) | bool(need.core))
    return holding


def times(have: Ints, need: Ints | int) -> Ints:
    """How often the need fits."""
    return np.where(np.asarray(need) > 0, have // np.maximum(need, 1), MOST_COPIES)


def most_copies(parts: Ints, count: int) -> Ints:
    """For each node how many pods of ``count`` different cards each fit where each card holds so many parts."""
    most: Ints = parts.sum(axis=0) // count
    while count > 1:
        fewer = np.minimum(parts, most).sum(axis=0) // count
        if (fewer == most).all():
            break
        most = np.minimum(most, fewer)
    return most
