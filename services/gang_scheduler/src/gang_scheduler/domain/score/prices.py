"""What nodes with so much left are worth: for one node in plain numbers and for many as vectors, the same to the last bit.

Copies are whole numbers and so are their prices, cards serve multiples of a small fraction: sums do not depend on an order.
"""

from dataclasses import dataclass, field
from math import floor, sqrt
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.nodes.vectors import Ints, Mask
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import Filling, Floats, Kinds, filling_of, kinds_of

PRICE = 1 << 20
"""The unit of prices is the average worth of a card through this."""

_ALMOST = 1e-9
"""Keeps what fits exactly from being rounded to one less."""

_CORNERS = 4
"""How sharp the corner is between what cards and what CPU or memory serve: the norm with the exponent 2 ** _CORNERS."""


class Measures(NamedTuple):
    """What copies of kinds take. Vectors over kinds stand upright, so that they meet those over nodes."""

    cpu: Floats
    memory: Floats
    cards: Floats
    """The inverse of what one copy of a kind takes (kind by one)."""

    parts: Floats
    """Into how many parts for each kind a card can be divided (kind by free percent)."""

    @classmethod
    def of(cls, kinds: Kinds) -> "Measures":
        """The measures of ``kinds``."""
        cpu, memory, cards = (1 / np.maximum(of, 1.0).reshape(-1, 1) for of in (kinds.cpu, kinds.memory, kinds.cards))
        return cls(cpu, memory, cards, (np.arange(101) // kinds.percent.reshape(-1, 1)).astype(np.float64))

    def copies(self, cpu: Floats, memory: Floats, parts: Floats) -> Floats:
        """How many copies of each kind fit (kind by node)."""
        copies = cpu * self.cpu
        np.minimum(copies, memory * self.memory, out=copies)
        np.minimum(copies, parts * self.cards, out=copies)
        copies += _ALMOST
        return np.floor(copies, out=copies)


def mixed(cpu: Floats, memory: Floats, served: Floats, beside_cpu: Floats, beside_memory: Floats) -> Floats:
    """How many cards' worth of the mixture fit: the least of what cards, CPU and memory serve, with rounded corners."""
    tight = np.maximum(beside_cpu / np.maximum(cpu, 1.0), beside_memory / np.maximum(memory, 1.0))
    tight *= served
    for _ in range(_CORNERS):
        tight *= tight
    tight += 1.0
    for _ in range(_CORNERS):
        np.sqrt(tight, out=tight)
    return served / tight


@dataclass(slots=True)
class Prices:
    """What follows from a basis alone. Of each class of nodes, by its number, there is how the mixture fills its cards, and
    what a copy more of each kind is worth there."""

    basis: Basis
    measures: Measures = field(init=False)
    fillings: list[Filling] = field(default_factory=list)
    classes: dict[int, int] = field(default_factory=dict)
    """The number of a class, by the bits of the rules that admit it."""

    per_copy: Floats = field(init=False)
    """Kind by class."""

    beside: Floats = field(init=False)
    """CPU and memory beside a card (two by class)."""

    _rows: list[list[tuple[int, float, float, float, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.measures = Measures.of(kinds_of(self.basis.asks, len(self.basis.rules)))
        self.per_copy, self.beside = np.zeros((len(self.measures.cpu), 0)), np.zeros((2, 0))

    def class_of(self, bits: int) -> int:
        """The number of the class of nodes that the rules of ``bits`` admit."""
        number = self.classes.get(bits)
        if number is None:
            number = self.classes[bits] = len(self.fillings)
            filling = filling_of(self.basis.asks, lambda rule: bool(bits >> rule & 1))
            self.fillings.append(filling)
            price = np.zeros((len(self.per_copy), 1))
            for rule, kind, worth in self.basis.prices:
                price[kind] += worth * (bits >> rule & 1)
            self.per_copy = np.hstack([self.per_copy, price])
            self.beside = np.hstack([self.beside, [[filling.cpu], [filling.memory]]])
            cpu, memory, cards = (of[:, 0].tolist() for of in self.measures[:3])
            worths = price[:, 0].tolist()
            self._rows.append([(k, cpu[k], memory[k], cards[k], worths[k]) for k in range(len(worths)) if worths[k]])
        return number

    def classes_of(self, masks: Mask) -> Ints:
        """The number of the class of each node (``masks`` is rule by node)."""
        bits = (masks.T * (1 << np.arange(len(masks), dtype=np.int64))).sum(axis=1)
        distinct, place = np.unique(bits, return_inverse=True)
        classes: Ints = np.array([self.class_of(one) for one in distinct.tolist()], np.int64)[place]
        return classes

    def worth(self, cpu: Floats, memory: Floats, parts: Floats, served: Floats, classes: Ints) -> Floats:
        """The worth of nodes with so much left, in worths of an average card."""
        copies = self.measures.copies(cpu, memory, parts)
        copies *= self.per_copy[:, classes]
        worth: Floats = copies.sum(axis=0) / PRICE
        worth += self.basis.mixed * mixed(cpu, memory, served, self.beside[0, classes], self.beside[1, classes])
        return worth

    def worth_of(self, cpu: int, memory: int, parts: list[float], served: float, number: int) -> float:
        """The same for one node, of the class ``number``."""
        worth = 0.0
        for kind, by_cpu, by_memory, by_cards, price in self._rows[number]:
            copies = parts[kind] * by_cards
            if copies:
                fits = floor(min(cpu * by_cpu, memory * by_memory, copies) + _ALMOST)
                if fits:
                    worth += fits * price
        filling = self.fillings[number]
        tight = max(filling.cpu / max(cpu, 1.0), filling.memory / max(memory, 1.0)) * served
        for _ in range(_CORNERS):
            tight *= tight
        tight += 1.0
        for _ in range(_CORNERS):
            tight = sqrt(tight)
        return worth / PRICE + self.basis.mixed * (served / tight)
