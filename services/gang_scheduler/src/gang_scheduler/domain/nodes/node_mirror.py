"""Nodes row by row, as compiled code reads them: all that decides about one node is close together in memory."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.vectors import Ints

PER_CARD = 4
"""Of each card its memory in bytes, 0 where there is none, and what is free of it: percent, bytes, virtual GPUs."""


@dataclass(slots=True)
class Follower:
    """Reads the logs of a table, to tell which nodes changed since it looked last."""

    table: NodeTable
    _room_seen: int = -1
    _rules_seen: int = -1

    def changed(self) -> Ints | None:
        """The nodes that changed, some maybe twice; None when all may have."""
        room, rules = self.table.room, self.table.rules
        found = room.entries(self._room_seen)
        if self._rules_seen != rules.end:
            others = rules.entries(self._rules_seen)
            found = None if found is None or others is None else np.concatenate([found, others])
        self._room_seen, self._rules_seen = room.end, rules.end
        return found


@dataclass(slots=True)
class NodeMirror:
    """Of each node (row): what is left of every resource, how many cards are whole, and PER_CARD of each card."""

    table: NodeTable
    rows: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _follower: Follower = field(init=False)

    def __post_init__(self) -> None:
        self._follower = Follower(self.table)

    def stale(self) -> Ints:
        """The nodes whose rows are to be written anew."""
        table, changed = self.table, self._follower.changed()
        wanted = table.size, len(table.used) + 1 + PER_CARD * len(table.devices.have.memory)
        if changed is None or self.rows.shape != wanted:
            self.rows, changed = np.zeros(wanted, np.int64), np.arange(table.size)
        return changed
