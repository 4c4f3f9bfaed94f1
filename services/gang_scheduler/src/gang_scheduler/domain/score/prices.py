"""What nodes with so much left are worth, and what pods would take from that.

Copies are whole numbers and so are their prices, cards serve multiples of a small fraction: sums do not depend on an order.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.compiled import Compiled
from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import Ask, Demand, Filling, Floats, Kinds, demands_of, filling_of, kinds_of

PRICE = 1 << 20
"""The unit of prices is the average worth of a card through this."""

BEST = 1_000_000
"""The score of a node that loses nothing."""

HALF = 8.0
"""The loss, in worths of an average card, at which half of that is left."""

ALMOST = 1e-9
"""Keeps what fits exactly from being rounded to one less."""

CORNERS = 4
"""How sharp the corner is between what cards and what CPU or memory serve: the norm with the exponent 2 ** CORNERS."""


TOGETHER = 16
"""Compiled code takes so many kinds at once, and a rest one by one: the last ones of vectors by kind are no kinds, worth nothing."""


class Measures(NamedTuple):
    """What copies of kinds take: the inverse of the CPU, the memory and the cards of one copy (by kind)."""

    cpu: Floats
    memory: Floats
    cards: Floats
    parts: Floats
    """Into how many parts for each kind a card can be divided (free percent by kind)."""

    @classmethod
    def of(cls, kinds: Kinds) -> "Measures":
        """The measures of ``kinds``."""
        known = len(kinds.cpu)
        size = -(-known // TOGETHER) * TOGETHER
        cpu, memory, cards, parts = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros((101, size))
        for inverse, of in ((cpu, kinds.cpu), (memory, kinds.memory), (cards, kinds.cards)):
            inverse[:known] = 1 / np.maximum(of, 1.0)
        parts[:, :known] = np.arange(101).reshape(-1, 1) // kinds.percent
        return cls(cpu, memory, cards, parts)

    def copies(self, cpu: Floats, memory: Floats, cards: Ints) -> Floats:
        """How many copies of each kind fit (node by kind). ``cards`` are free percents (card by node)."""
        copies: Floats = (cards == 100).sum(axis=0).reshape(-1, 1) * self.parts[100]
        for free in cards:
            broken = np.flatnonzero((free > 0) & (free < 100))
            copies[broken] += self.parts[free[broken]]
        copies *= self.cards
        np.minimum(copies, cpu.reshape(-1, 1) * self.cpu, out=copies)
        np.minimum(copies, memory.reshape(-1, 1) * self.memory, out=copies)
        copies += ALMOST
        np.floor(copies, out=copies)
        return copies


def mixed(cpu: Floats, memory: Floats, served: Floats, beside_cpu: Floats, beside_memory: Floats) -> Floats:
    """How many cards' worth of the mixture fit: the least of what cards, CPU and memory serve, with rounded corners."""
    tight = np.maximum(beside_cpu / np.maximum(cpu, 1.0), beside_memory / np.maximum(memory, 1.0))
    tight *= served
    for _ in range(CORNERS):
        tight *= tight
    tight += 1.0
    for _ in range(CORNERS):
        np.sqrt(tight, out=tight)
    return served / tight


class Left(NamedTuple):
    """What of nodes is left: the number of their class, CPU in milli-cores, memory in bytes, percent of every card (card by node)."""

    classes: Ints
    cpu: Ints
    memory: Ints
    cards: Ints

    def after(self, ask: Ask) -> "Left":
        """The same with one more pod, on the fullest cards that have what it asks of each."""
        cards = np.sort(self.cards, axis=0)
        if ask.cards:
            fits = cards >= ask.percent
            cards = cards - ask.percent * (fits & (fits.cumsum(axis=0) <= ask.cards))
        return Left(self.classes, np.maximum(self.cpu - ask.cpu, 0), np.maximum(self.memory - ask.memory, 0), cards)


@dataclass(slots=True)
class Prices:
    """What follows from a basis alone. Of each class of nodes, by its number, there is how the mixture fills its cards, and
    what a copy more of each kind is worth there."""

    basis: Basis
    compiled: Compiled | None = None

    kinds: Kinds = field(init=False)
    measures: Measures = field(init=False)
    classes: dict[int, int] = field(default_factory=dict)
    """The number of a class, by the bits of the rules that admit it."""

    per_copy: Floats = field(init=False)
    """Class by kind."""

    served: Floats = field(default_factory=lambda: np.zeros((0, 101)))
    """Cards' worth of the mixture that a card will still serve (class by free percent)."""

    beside: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    """CPU and memory beside a card (class by two)."""

    _demands: list[Demand] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = kinds_of(self.basis.asks, len(self.basis.rules))
        self._demands = demands_of(self.basis.asks, len(self.basis.rules))
        self.measures = Measures.of(self.kinds)
        self.per_copy = np.zeros((0, len(self.measures.cpu)))

    def at(self, basis: Basis) -> "Prices":
        """The same where ``basis`` says other prices of the same pods."""
        found = copy.copy(self)
        found.basis, found.classes = basis, dict(self.classes)
        found.per_copy = found._prices_of(self.classes)
        return found

    def classes_of(self, masks: Mask) -> Ints:
        """The number of the class of each node (``masks`` is rule by node)."""
        bits = (1 << np.arange(len(masks))) @ masks
        classes = sorted(set(bits.tolist()))
        if new := [one for one in classes if one not in self.classes]:
            fillings = [self._filling_of(one) for one in new]
            self.classes.update(zip(new, range(len(self.classes), len(self.classes) + len(new)), strict=True))
            self.per_copy = np.vstack([self.per_copy, self._prices_of(new)])
            self.served = np.vstack([self.served, *(filling.served for filling in fillings)])
            self.beside = np.vstack([self.beside, *((filling.cpu, filling.memory) for filling in fillings)])
        return np.array([self.classes[one] for one in classes], np.int64)[np.searchsorted(classes, bits)]

    def copies(self, cpu: Floats, memory: Floats, cards: Ints) -> Floats:
        """How many copies of each kind fit (node by kind). ``cards`` are free percents (card by node)."""
        if self.compiled is None:
            return self.measures.copies(cpu, memory, cards)
        return self.compiled.copies(cpu, memory, np.ascontiguousarray(cards), *self.measures)

    def worth(self, left: Left) -> Floats:
        """The worth of nodes with so much left, in worths of an average card."""
        cpu, memory = left.cpu.astype(np.float64), left.memory.astype(np.float64)
        copies = self.measures.copies(cpu, memory, left.cards)
        copies *= self.per_copy[left.classes]
        worth: Floats = copies.sum(axis=1) / PRICE
        served = self.served[left.classes, left.cards].sum(axis=0)
        worth += self.basis.mixed * mixed(cpu, memory, served, *self.beside[left.classes].T)
        return worth

    def scores(self, ask: Ask, left: Left) -> Ints:
        """BEST less what a pod that asks for ``ask``, and fits, would spoil on nodes with so much left."""
        loss = np.maximum(self.worth(left) - self.worth(left.after(ask)), -HALF / 2)
        scores: Ints = np.rint(BEST * HALF / (HALF + loss)).astype(np.int64)
        return scores

    def _filling_of(self, bits: int) -> Filling:
        return filling_of(
            [demand for rule, demand in enumerate(self._demands) if bits >> rule & 1],
            self.compiled and self.compiled.serve,
        )

    def _prices_of(self, classes: Iterable[int]) -> Floats:
        """What a copy is worth (class by kind): the sum over the rules that admit it, exact in any order."""
        by_rule = np.zeros((len(self.basis.rules), len(self.measures.cpu)))
        for rule, kind, worth in self.basis.prices:
            by_rule[rule, kind] += worth
        admits = np.array([[bits >> rule & 1 for rule in range(len(by_rule))] for bits in classes], np.float64)
        prices: Floats = admits.reshape(-1, len(by_rule)) @ by_rule
        return prices
