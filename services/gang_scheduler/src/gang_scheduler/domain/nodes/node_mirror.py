"""Nodes row by row, as compiled code reads them: all that decides about one node is close together in memory."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.nodes.node_table import NodeTable

PER_CARD = 4
"""Of each card its memory in bytes, 0 where there is none, and what is free of it: percent, bytes, virtual GPUs."""


@dataclass(slots=True)
class NodeMirror:
    """Of each node (row): what is left of every resource, how many cards are whole, and PER_CARD of each card."""

    table: NodeTable
    rows: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    seen: tuple[int, int] = (-1, -1)
    """Until where it follows the logs of the table."""

    def stale(self) -> Ints:
        """The nodes that changed since this was asked last, some maybe twice: their rows are to be written anew."""
        table, (room, rules) = self.table, self.seen
        changed = table.room.entries(room)
        if rules != table.rules.end:
            others = table.rules.entries(rules)
            changed = None if changed is None or others is None else np.concatenate([changed, others])
        self.seen = table.room.end, table.rules.end
        size, width = table.size, len(table.used) + 1 + PER_CARD * len(table.devices.have.memory)
        if changed is None or self.rows.shape != (size, width):
            self.rows, changed = np.zeros((size, width), np.int64), np.arange(size)
        return changed
