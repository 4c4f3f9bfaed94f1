"""The trees of node labels in use, made anew when nodes changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.nodes.node_table import NodeTable
from topology.levels import LabelColumn, LevelTree, grow


@dataclass(slots=True)
class LevelTrees:
    """The trees of the nodes of ``table``."""

    table: NodeTable
    _trees: dict[tuple[str, ...], LevelTree] = field(default_factory=dict)
    _version: int = -1

    def of(self, keys: Sequence[str]) -> LevelTree:
        """The tree of these labels, the widest first."""
        if self._version != self.table.version:
            self._trees.clear()
            self._version = self.table.version
        wanted = tuple(keys)
        if wanted not in self._trees:
            self._trees[wanted] = grow([_column(self.table, key) for key in wanted], self.table.exists)
        return self._trees[wanted]


def _column(table: NodeTable, key: str) -> LabelColumn:
    numbers = table.labels.values_of(key)
    names = sorted(numbers)
    places = np.full(len(names) + 1, -1, np.int64)
    places[[numbers[name] for name in names]] = np.arange(len(names))
    return LabelColumn(key, names, places[table.labels.column(key)])
