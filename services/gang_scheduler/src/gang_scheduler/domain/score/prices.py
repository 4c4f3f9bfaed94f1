"""What nodes with so much left are worth, and what pods would take from that.

Copies are whole numbers and so are their prices, cards serve multiples of a small fraction: sums do not depend on an order.
"""

import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import Ask, Floats, Kinds, filling_of, kinds_of

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
        cpu, memory, cards = (1 / np.maximum(of, 1.0) for of in (kinds.cpu, kinds.memory, kinds.cards))
        return cls(cpu, memory, cards, (np.arange(101).reshape(-1, 1) // kinds.percent).astype(np.float64))

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

    def __post_init__(self) -> None:
        self.kinds = kinds_of(self.basis.asks, len(self.basis.rules))
        self.measures = Measures.of(self.kinds)
        self.per_copy = np.zeros((0, len(self.measures.cpu)))

    def at(self, basis: Basis) -> "Prices":
        """The same where ``basis`` says other prices of the same pods."""
        found = copy.copy(self)
        found.basis, found.classes = basis, dict(self.classes)
        prices = [found._price_of(bits) for bits in self.classes]
        found.per_copy = np.array(prices).reshape(self.per_copy.shape)
        return found

    def class_of(self, bits: int) -> int:
        """The number of the class of nodes that the rules of ``bits`` admit."""
        number = self.classes.get(bits)
        if number is None:
            number = self.classes[bits] = len(self.per_copy)
            filling = filling_of(self.basis.asks, lambda rule: bool(bits >> rule & 1))
            self.per_copy = np.vstack([self.per_copy, self._price_of(bits)])
            self.served = np.vstack([self.served, filling.served])
            self.beside = np.vstack([self.beside, [filling.cpu, filling.memory]])
        return number

    def classes_of(self, masks: Mask) -> Ints:
        """The number of the class of each node (``masks`` is rule by node)."""
        bits = (masks.T * (1 << np.arange(len(masks), dtype=np.int64))).sum(axis=1)
        distinct, place = np.unique(bits, return_inverse=True)
        classes: Ints = np.array([self.class_of(one) for one in distinct.tolist()], np.int64)[place]
        return classes

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

    def _price_of(self, bits: int) -> Floats:
        price = np.zeros(len(self.measures.cpu))
        for rule, kind, worth in self.basis.prices:
            price[kind] += worth * (bits >> rule & 1)
        return price
