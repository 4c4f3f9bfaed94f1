"""Amounts of the devices of all nodes as matrices: row ``i`` is the i-th card or NUMA node, zero where a node has fewer."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints
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


def most_copies(parts: Ints, count: int) -> Ints:
    """For each node how many pods of ``count`` different cards each fit where each card holds so many parts."""
    most: Ints = parts.sum(axis=0) // count
    while count > 1:
        fewer = np.minimum(parts, most).sum(axis=0) // count
        if (fewer == most).all():
            break
        most = np.minimum(most, fewer)
    return most
