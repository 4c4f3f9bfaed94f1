"""The domains that the values of a list of node labels make: blocks, racks in them, nodes in those; as vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.vectors import Ids, Ints, Mask


@dataclass(frozen=True, slots=True)
class Level:
    """The domains of one label, numbered in the order of their paths of names."""

    key: str
    of_node: Ints
    """The domain of each node, -1 for one that lacks a label of any level."""

    parent: Ints
    """For each domain the one that it is in, of the level above; 0 at the top."""

    names: tuple[str, ...]

    def nodes(self, domain: int) -> Mask:
        """The nodes of a domain."""
        mask: Mask = self.of_node == domain
        return mask

    def sums(self, of_nodes: Ints) -> Ints:
        """The sums of ``of_nodes`` by domain."""
        inside = self.of_node >= 0
        weights = of_nodes[inside]
        sums: Ints = np.bincount(self.of_node[inside], weights=weights, minlength=len(self.names)).astype(np.int64)
        return sums


@dataclass(frozen=True, slots=True)
class LevelTree:
    """The levels from the widest to the narrowest."""

    levels: tuple[Level, ...]

    def index(self, key: str) -> int:
        """The place of the level of a label, -1 for none."""
        return next((place for place, level in enumerate(self.levels) if level.key == key), -1)


@dataclass(slots=True)
class LevelTrees:
    """The trees in use, made anew when nodes changed."""

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
            self._trees[wanted] = grow(self.table, wanted)
        return self._trees[wanted]


def grow(table: NodeTable, keys: tuple[str, ...]) -> LevelTree:
    """The tree of the nodes that have all of ``keys``."""
    inside = table.exists.copy()
    for key in keys:
        inside &= table.labels.column(key) > 0
    above: Ints = np.zeros(table.size, np.int64)
    levels = []
    for key in keys:
        names, ranks = _ranked(table, key)
        codes = above * (len(names) + 1) + ranks[table.labels.column(key)]
        found, numbers = np.unique(codes[inside], return_inverse=True)
        of_node = np.full(table.size, -1, np.int64)
        of_node[inside] = numbers
        values = tuple(names[code] for code in (found % (len(names) + 1)).tolist())
        levels.append(Level(key, of_node, found // (len(names) + 1), values))
        above = np.maximum(of_node, 0)
    return LevelTree(tuple(levels))


def _ranked(table: NodeTable, key: str) -> tuple[list[str], Ids]:
    """The values of a label in their order, and for each number of a value its place among them."""
    numbers = table.labels.values_of(key)
    names = sorted(numbers)
    ranks = np.zeros(len(names) + 1, np.int32)
    ranks[[numbers[name] for name in names]] = np.arange(len(names))
    return names, ranks
