"""States of nodes: what of a node decides how good it is for any pod. Many nodes are in the same state, and come back to it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Ids, Ints
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.score.mixture import Floats

PER_WORD = 9
"""So many numbers of up to 100 are kept in one of 64 bits."""

CARDS = 3
"""The words of a state are its class, CPU in milli-cores, memory in bytes, and from this one on the free percents of the cards."""

SPARE = 1024
"""So many states more than nodes have room, before those are forgotten in which no node is any more."""


class Known(NamedTuple):
    """States, numbered from 1 in the order in which they came up. Compiled code fills them in."""

    of: Ints
    """The state of each node, by slot; 0 for those without cards."""

    words: Ints
    """State by word."""

    parts: Floats
    """How many parts of each kind the cards hold (state by kind)."""

    serves: Floats
    """The cards' worth that the cards serve."""

    worth: Floats
    places: Ints
    """The states by their hash, 0 where there is none."""

    last: Ints
    """The number of the newest one, alone."""

    @classmethod
    def none(cls, nodes: int, most: int, width: int, kinds: int) -> "Known":
        """Place for so many states."""
        words, parts = np.zeros((most, width), np.int64), np.zeros((most, kinds))
        places, count = np.zeros(2 << most.bit_length(), np.int64), np.zeros(1, np.int64)
        return cls(np.zeros(nodes, np.int64), words, parts, np.zeros(most), np.zeros(most), places, count)


@dataclass(slots=True)
class NodeStates:
    """The states of nodes at the prices of one look."""

    table: NodeTable
    kinds: int
    known: Known = field(default_factory=lambda: Known.none(0, 0, 0, 0))
    """Another one when states were numbered anew."""

    _scores: dict[bytes, Ids] = field(default_factory=dict)
    """By what pods ask for."""

    _seen: tuple[int, int] = (-1, -1)
    """Until where the states of nodes are known."""

    def scores(self, ask: Ints) -> Ids:
        """The scores of states for pods that ask for this, -1 where not known yet: they are the same for all such shapes."""
        key = ask.tobytes()
        found = self._scores.get(key)
        if found is None:
            found = self._scores[key] = np.full(len(self.known.worth), -1, np.int32)
        return found

    def stale(self, changed: Ints, before: tuple[int, int], now: tuple[int, int]) -> Ints:
        """The nodes whose states are to be found, maybe among new ones: those that ``changed``, if all was known ``before``."""
        continued, self._seen = self._seen == before, now
        known, size = self.known, self.table.size
        width = CARDS + -(-len(self.table.devices.have.memory) // PER_WORD)
        fits = len(known.of) == size and known.words.shape[1] == width
        if continued and fits and known.last.item() + len(changed) < len(known.worth) - 1:
            return changed
        self.known, self._scores = Known.none(size, size + SPARE, width, self.kinds), {}
        return np.arange(size)
