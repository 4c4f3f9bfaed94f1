"""What kinds of pods run, and how they fill cards: learned from what has a place now.

A kind is all pods that ask for the same number of cards, about the same part of each, and about as much CPU beside whole
ones; they are counted apart by the rules that choose their nodes. Nodes that all the rules see alike are of one class.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.terms.node_rules import NodeRules

Floats = npt.NDArray[np.float64]

STEP = 5
"""Parts of cards are told apart in steps of so many percent."""

MOST_RULES = 60
"""So many different sets of rules are told apart, the most common ones."""

PATIENCE = 0.98
"""What a pod that comes one turn later counts: how long a rest of a card waits for the pod that fits it."""

_GRAIN = float(1 << 40)
"""What a card serves is a multiple of the inverse, so that sums over cards are exact in any order."""


_NOBODY = (0, 0, 0, 0)


class Ask(NamedTuple):
    """What of a pod matters here: so many ``cards``, ``percent`` of each, CPU in milli-cores, memory in bytes."""

    cards: int
    percent: int
    cpu: int
    memory: int


Asked = tuple[int, Ask, int]
"""The number of a set of rules, what is asked for under it, and by how many pods."""


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
    _wishes: dict[PodShape, tuple[int, NodeRules, Ask]] = field(default_factory=dict)
    """For shapes with a place: the rules without preferences, and the ask where a card has so much memory, which goes first."""

    def add(self, shape: PodShape, count: int) -> None:
        """So many came; a negative number went."""
        left = self.counts.get(shape, 0) + count
        if left:
            self.counts[shape] = left
        else:
            self.counts.pop(shape, None)
            self._wishes.pop(shape, None)
        if shape.devices.cards is not None:
            self.with_cards += count

    def asked(self, card_memory: int) -> tuple[tuple[NodeRules, ...], tuple[Asked, ...]]:
        """The most common sets of rules, and what is asked for under each; in an order that follows from what they are.

        Preferences are no rules: what a pod can use decides, not what it would like.
        """
        wishes = [
            (*self._wish(shape, card_memory), count)
            for shape, count in self.counts.items()
            if shape.devices.cards is not None
        ]
        popular: dict[NodeRules, int] = {}
        for rules, _, count in wishes:
            popular[rules] = popular.get(rules, 0) + count
        names = sorted(popular, key=lambda rules: (-popular[rules], repr(rules)))[:MOST_RULES]
        place = {rules: at for at, rules in enumerate(names)}
        found: dict[tuple[int, Ask], int] = {}
        for rules, ask, count in wishes:
            if (at := place.get(rules)) is not None:
                found[at, ask] = found.get((at, ask), 0) + count
        return tuple(names), tuple(sorted((at, ask, count) for (at, ask), count in found.items()))

    def _wish(self, shape: PodShape, card_memory: int) -> tuple[NodeRules, Ask]:
        known = self._wishes.get(shape)
        if known is None or known[0] != card_memory:
            rules = replace(shape.rules, preferred=()) if shape.rules.preferred else shape.rules
            known = self._wishes[shape] = card_memory, rules, ask_of(shape, card_memory)
        return known[1:]


class Kinds(NamedTuple):
    """Kinds as vectors. ``weight[rule, kind]`` is how many pods there are of a kind under each set of rules."""

    cpu: Floats
    memory: Floats
    cards: Floats
    percent: Ints
    weight: Floats


def kinds_of(asks: Sequence[Asked], rules: int) -> Kinds:
    """The kinds of what is asked for under so many sets of ``rules``."""
    sums: dict[tuple[int, int, int], tuple[int, int, int, int]] = {}
    counts = []
    for rule, ask, count in asks:
        kind = _kind(ask)
        pods, cpu, memory, percent = sums.get(kind, _NOBODY)
        sums[kind] = pods + count, cpu + count * ask.cpu, memory + count * ask.memory, percent + count * ask.percent
        counts.append((rule, kind, count))
    order = sorted(sums)
    place = {kind: at for at, kind in enumerate(order)}
    weight = np.zeros((rules, len(order)))
    for rule, kind, count in counts:
        weight[rule, place[kind]] += count
    total = np.array([sums[kind] for kind in order], np.float64).reshape(-1, 4).T
    cards = np.array([kind[0] for kind in order], np.float64)
    percent = np.rint(total[3] / total[0]).astype(np.int64)
    return Kinds(total[1] / total[0], total[2] / total[0], cards, percent, weight)


def _kind(ask: Ask) -> tuple[int, int, int]:
    """Number of cards, part of each in percent rounded up to a step, and for whole cards the binary magnitude of the CPUs."""
    return ask.cards, min(100, -(-ask.percent // STEP) * STEP), ask.cpu.bit_length() if ask.percent == 100 else 0


class Filling(NamedTuple):
    """Of nodes of one class: ``served[free]``, the cards' worth that a card with so many percent free will still serve,
    and the CPU (milli-cores) and memory (bytes) that the mixture takes beside one whole card."""

    served: list[float]
    cpu: float
    memory: float


def filling_of(asks: Sequence[Asked], admits: Callable[[int], bool]) -> Filling:
    """How a card is filled by pods that come in the proportions of ``asks``, of those rules that ``admits`` is true of.

    A card with ``free`` percent serves the next pod that fits, and then what the rest serves; each turn in which a pod
    comes that does not fit costs patience.
    """
    pods: dict[int, int] = {}
    given = cpu = memory = 0
    for rule, ask, count in asks:
        if admits(rule):
            pods[ask.percent] = pods.get(ask.percent, 0) + count
            given += ask.cards * ask.percent * count
            cpu += ask.cpu * count
            memory += ask.memory * count
    if not pods:
        return Filling([_grained(free / 100) for free in range(101)], 1.0, 1.0)
    total = sum(pods.values())
    parts = [(size, size / 100, pods[size] / total) for size in sorted(pods)]
    served = [0.0]
    for free in range(1, 101):
        gain = fits = 0.0
        for size, part, share in parts:
            if size > free:
                break
            gain += share * (part + PATIENCE * served[free - size])
            fits += share
        served.append(_grained(gain / (1 - PATIENCE * (1 - fits))))
    return Filling(served, max(100 * cpu / given, 1.0), max(100 * memory / given, 1.0))


def _grained(served: float) -> float:
    return round(served * _GRAIN) / _GRAIN
