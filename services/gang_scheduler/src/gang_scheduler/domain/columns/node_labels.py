"""The labels of all nodes by column: one vector of value numbers per label key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ids


@dataclass(slots=True)
class NodeLabels:
    """For every label key a vector over the nodes with the number of the value; 0 means that a node lacks the label."""

    size: int
    _columns: dict[str, Ids] = field(default_factory=dict)
    _values: dict[str, dict[str, int]] = field(default_factory=dict)

    def keys(self) -> Iterable[str]:
        """Every label key that a node ever had, or that was asked for."""
        return self._columns.keys()

    def column(self, key: str) -> Ids:
        """The value numbers of ``key`` on every node."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = np.zeros(self.size, np.int32)
        return column

    def values_of(self, key: str) -> dict[str, int]:
        """Every value that ``key`` ever had on a node, with its number."""
        return self._values.get(key, {})

    def ids_of(self, key: str, values: Iterable[str]) -> list[int]:
        """The numbers of those ``values`` that ``key`` has on some node."""
        known = self.values_of(key)
        return [known[value] for value in values if value in known]

    def put(self, slot: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """The labels of the node at ``slot`` change from ``old`` to ``new``."""
        for key in old.keys() - new.keys():
            self.column(key)[slot] = 0
        for key, value in new.items():
            numbers = self._values.setdefault(key, {})
            self.column(key)[slot] = numbers.setdefault(value, len(numbers) + 1)

    def grow(self, size: int) -> None:
        """Make room for ``size`` nodes."""
        for key, column in self._columns.items():
            self._columns[key] = np.concatenate([column, np.zeros(size - len(column), np.int32)])
        self.size = size
