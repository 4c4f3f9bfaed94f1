"""The domains that the values of a list of node labels make: blocks, racks in them, nodes in those; as vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class LabelColumn(NamedTuple):
    """One label of all nodes: the place of each node's value among ``values``, which are sorted; -1 where it has none."""

    key: str
    values: Sequence[str]
    of_node: Ints


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


def grow(columns: Sequence[LabelColumn], nodes: Mask) -> LevelTree:
    """The tree of those of ``nodes`` that have all labels of ``columns``, the widest first."""
    inside = nodes.copy()
    for column in columns:
        inside &= column.of_node >= 0
    above: Ints = np.zeros(len(nodes), np.int64)
    levels = []
    for key, values, of_value in columns:
        codes = above * (len(values) + 1) + of_value
        found, numbers = np.unique(codes[inside], return_inverse=True)
        of_node = np.full(len(nodes), -1, np.int64)
        of_node[inside] = numbers
        names = tuple(values[code] for code in (found % (len(values) + 1)).tolist())
        levels.append(Level(key, of_node, found // (len(values) + 1), names))
        above = np.maximum(of_node, 0)
    return LevelTree(tuple(levels))
