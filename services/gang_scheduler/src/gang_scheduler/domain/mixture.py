"""What kinds of pods run, and what a copy more or less of each is worth: learned from what has a place now.

A kind is all pods that ask for the same number of cards, about the same part of each, and about as much CPU beside whole
ones; they are counted apart by the rules that choose their nodes. Nodes that all the rules see alike are of one class.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gang_scheduler.domain.node_rules import NodeRules
from gang_scheduler.domain.pod_shape import PodShape
from gang_scheduler.domain.vectors import Ints, Mask

Floats = npt.NDArray[np.float64]

STEP = 5
"""Parts of cards are told apart in steps of so many percent."""

MOST_RULES = 60
"""So many different sets of rules are told apart, the most common ones."""

PATIENCE = 0.98
"""What a pod that comes one turn later counts: how long a rest of a card waits for the pod that fits it."""


class Ask(NamedTuple):
    """What of a pod matters here: so many ``cards``, ``percent`` of each, CPU in milli-cores, memory in bytes."""

    cards: int
    percent: int
    cpu: int
    memory: int


def ask_of(shape: PodShape, card_memory: int) -> Ask:
    """The ask of a shape where a card has ``card_memory`` bytes."""
    need, cpu, memory = shape.devices.cards, shape.requests.get("cpu", 0), shape.requests.get("memory", 0)
    if need is None:
        return Ask(0, 0, cpu, memory)
    percent = max(need.core, need.ratio, -(-100 * need.memory // max(1, card_memory)))
    return Ask(need.count, max(1, min(100, percent)), cpu, memory)


@dataclass(slots=True)
class Census:
    """How many pods of each shape have a place."""

    counts: dict[PodShape, int] = field(default_factory=dict)
    with_cards: int = 0

    def add(self, shape: PodShape, count: int) -> None:
        """So many came; a negative number went."""
        left = self.counts.get(shape, 0) + count
        if left:
            self.counts[shape] = left
        else:
            self.counts.pop(shape, None)
        if shape.devices.cards is not None:
            self.with_cards += count


class Kinds(NamedTuple):
    """Kinds as vectors. ``weight[rule, kind]`` is how many pods there are of a kind under each set of rules."""

    cpu: Floats
    memory: Floats
    cards: Floats
    percent: Ints
    weight: Floats
    rules: list[NodeRules]
    asks: list[tuple[int, Ask, int]]
    """Rule, ask and count of every shape."""


def kinds_of(census: Census, card_memory: int) -> Kinds:
    """The kinds of the pods that ask for cards, in an order that follows from what they are."""
    found = [
        (shape.rules, ask_of(shape, card_memory), count)
        for shape, count in census.counts.items()
        if shape.devices.cards is not None
    ]
    popular: dict[NodeRules, int] = {}
    for rules, _, count in found:
        popular[rules] = popular.get(rules, 0) + count
    names = sorted(popular, key=lambda rules: (-popular[rules], repr(rules)))[:MOST_RULES]
    place = {rules: at for at, rules in enumerate(names)}
    asks = sorted((place[rules], ask, count) for rules, ask, count in found if rules in place)
    sums: dict[tuple[int, int, int], list[int]] = {}
    for _, ask, count in asks:
        cell = sums.setdefault(_kind(ask), [0, 0, 0, 0])
        for at, amount in enumerate((1, ask.cpu, ask.memory, ask.percent)):
            cell[at] += count * amount
    order = sorted(sums)
    at_kind = {kind: at for at, kind in enumerate(order)}
    weight = np.zeros((len(names), len(order)))
    for rule, ask, count in asks:
        weight[rule, at_kind[_kind(ask)]] += count
    total = np.array([sums[kind] for kind in order], np.float64).reshape(-1, 4).T
    cards = np.array([kind[0] for kind in order], np.float64)
    percent = np.rint(total[3] / total[0]).astype(np.int64)
    return Kinds(total[1] / total[0], total[2] / total[0], cards, percent, weight, names, asks)


def _kind(ask: Ask) -> tuple[int, int, int]:
    """Number of cards, part of each in percent rounded up to a step, and for whole cards the binary magnitude of the CPUs."""
    return ask.cards, min(100, -(-ask.percent // STEP) * STEP), ask.cpu.bit_length() if ask.percent == 100 else 0


class Filling(NamedTuple):
    """For each class of nodes: ``served[class, free]``, the cards' worth that a card with so many percent free will
    still serve, and the CPU (milli-cores) and memory (bytes) that the mixture takes beside one whole card."""

    served: Floats
    cpu: Floats
    memory: Floats


def filling_of(kinds: Kinds, admits: Mask) -> Filling:
    """How a card is filled by pods that come in the proportions of ``kinds``; ``admits[class, rule]``.

    A card with ``free`` percent serves the next pod that fits, and then what the rest serves; each turn in which a pod
    comes that does not fit costs patience.
    """
    rule = np.array([rule for rule, _, _ in kinds.asks], np.intp)
    table = np.array([(ask.percent, ask.cards, ask.cpu, ask.memory, pods) for _, ask, pods in kinds.asks], np.float64)
    percent, cards, cpu, memory, count = table.T
    seen = np.where(admits[:, rule], count, 0.0)
    total = seen.sum(axis=1)
    share = np.zeros((len(admits), 101))
    for size in np.unique(percent):
        share[:, int(size)] = seen[:, percent == size].sum(axis=1) / np.maximum(total, 1)
    served = np.zeros((len(admits), 101))
    sizes, fitting = np.flatnonzero(share.any(axis=0)), np.cumsum(share, axis=1)
    for free in range(1, 101):
        some = sizes[sizes <= free]
        gain = (share[:, some] * (some / 100 + PATIENCE * served[:, free - some])).sum(axis=1)
        served[:, free] = gain / (1 - PATIENCE * (1 - fitting[:, free]))
    served[total == 0] = np.arange(101) / 100
    given = np.maximum((seen * cards * percent).sum(axis=1) / 100, 1e-9)
    beside = [np.where(total > 0, (seen * of).sum(axis=1) / given, 1.0) for of in (cpu, memory)]
    return Filling(served, np.maximum(beside[0], 1.0), np.maximum(beside[1], 1.0))
