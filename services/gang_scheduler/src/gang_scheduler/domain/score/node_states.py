"""States of nodes: what of a node decides how good it is for any pod. Many nodes are in the same state, and come back to it."""

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class NodeStates:
    """States at the prices of one look, numbered from 1 in the order in which they came up. Compiled code fills it in."""

    table: NodeTable
    kinds: int
    of: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The state of each node, by slot; 0 for those without cards."""

    words: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """State by word; another matrix when states were numbered anew."""

    parts: Floats = field(init=False)
    """How many parts of each kind the cards hold (state by kind)."""

    serves: Floats = field(init=False)
    """The cards' worth that the cards serve."""

    worth: Floats = field(init=False)
    places: Ints = field(init=False)
    """The states by their hash, 0 where there is none."""

    count: Ints = field(init=False)
    """One number."""

    _scores: dict[bytes, Ids] = field(default_factory=dict)
    """By what pods ask for."""

    _seen: tuple[int, int] = (-1, -1)
    """Until where the states of nodes are known."""

    def scores(self, ask: Ints) -> Ids:
        """The scores of states for pods that ask for this, -1 where not known yet: they are the same for all such shapes."""
        key = ask.tobytes()
        found = self._scores.get(key)
        if found is None:
            found = self._scores[key] = np.empty(len(self.worth), np.int32)
            found.fill(-1)
        return found

    def stale(self, changed: Ints, before: tuple[int, int], now: tuple[int, int]) -> Ints:
        """The nodes whose states are to be found, maybe among new ones: those that ``changed``, if all was known ``before``."""
        known, self._seen = self._seen == before, now
        width = CARDS + -(-len(self.table.devices.have.memory) // PER_WORD)
        fits = len(self.of) == self.table.size and self.words.shape[1] == width
        if known and fits and self.count.item() + len(changed) < len(self.worth) - 1:
            return changed
        self._begin(width)
        return np.arange(self.table.size)

    def _begin(self, width: int) -> None:
        most = self.table.size + SPARE
        self.of = np.zeros(self.table.size, np.int64)
        self.words, self.parts = np.zeros((most, width), np.int64), np.zeros((most, self.kinds))
        self.serves, self.worth = np.zeros(most), np.zeros(most)
        self.places, self.count = np.zeros(2 << most.bit_length(), np.int64), np.zeros(1, np.int64)
        self._scores = {}
