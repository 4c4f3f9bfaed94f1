"""What kinds of pods run, and how they fill cards: learned from what has a place now.

A kind is all pods that ask for the same number of cards, about the same part of each, and about as much CPU beside whole
ones; they are counted apart by the rules that choose their nodes. Nodes that all the rules see alike are of one class.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gang_scheduler.domain.columns.compiled import Serve
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

GRAIN = float(1 << 40)
"""What a card serves is a multiple of the inverse, so that sums over cards are exact in any order."""


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
    _wishes: list["_Wish"] = field(default_factory=list)
    """Of shapes that ask for cards, in order; those that had a place when somebody asked last."""

    _card_memory: int = -1
    """The bytes of a card for which these are."""

    def add(self, shape: PodShape, count: int) -> None:
        """So many came; a negative number went."""
        left = self.counts.get(shape, 0) + count
        if left:
            self.counts[shape] = left
        else:
            self.counts.pop(shape, None)
        if shape.devices.cards is not None:
            self.with_cards += count

    def asked(self, card_memory: int) -> tuple[tuple[NodeRules, ...], tuple[Asked, ...]]:
        """The most common sets of rules, and what is asked for under each; in an order that follows from what they are.

        Preferences are no rules: what a pod can use decides, not what it would like.
        """
        self._renew_wishes(card_memory)
        found: list[_Found] = []
        here, counts = _Found("", NodeRules()), self.counts
        for name, ask, _, rules, shape in self._wishes:
            if name != here.name:
                here = _Found(name, rules)
                found.append(here)
            here.pods += counts[shape]
            here.asks[ask] = here.asks.get(ask, 0) + counts[shape]
        popular = sorted(found, key=lambda here: (-here.pods, here.name))[:MOST_RULES]
        asks = [(at, ask, count) for at, here in enumerate(popular) for ask, count in here.asks.items()]
        return tuple(here.rules for here in popular), tuple(asks)

    def _renew_wishes(self, card_memory: int) -> None:
        """Leave out who has no place any more and insert who has one now: few, compared with those that stay."""
        if card_memory != self._card_memory:
            self._wishes, self._card_memory = [], card_memory
        self._wishes = [wish for wish in self._wishes if wish.shape in self.counts]
        known = {wish.shape for wish in self._wishes}
        for shape in self.counts:
            if shape not in known and shape.devices.cards is not None:
                rules = replace(shape.rules, preferred=()) if shape.rules.preferred else shape.rules
                insort(self._wishes, _Wish(repr(rules), ask_of(shape, card_memory), shape.index, rules, shape))


class _Wish(NamedTuple):
    """What a shape asks for, under its rules without preferences, whose ``name`` says what these are; ordered by the first three."""

    name: str
    ask: Ask
    number: int
    """The index of the shape: no two are equal."""

    rules: NodeRules
    shape: PodShape


@dataclass(slots=True)
class _Found:
    """By how many pods something is asked for under one set of rules, and what by how many, in order."""

    name: str
    rules: NodeRules
    pods: int = 0
    asks: dict[Ask, int] = field(default_factory=dict)


class Kinds(NamedTuple):
    """Kinds as vectors. ``weight[rule, kind]`` is how many pods there are of a kind under each set of rules."""

    cpu: Floats
    memory: Floats
    cards: Floats
    percent: Ints
    weight: Floats


def kinds_of(asks: Sequence[Asked], rules: int) -> Kinds:
    """The kinds of what is asked for under so many sets of ``rules``."""
    found: dict[tuple[int, int, int], _Kind] = {}
    for rule, ask, count in asks:
        kind = _kind(ask)
        here = found.get(kind)
        if here is None:
            here = found[kind] = _Kind()
        here.pods[rule] = here.pods.get(rule, 0) + count
        here.cpu += count * ask.cpu
        here.memory += count * ask.memory
        here.percent += count * ask.percent
    order = sorted(found)
    weight = np.zeros((rules, len(order)))
    for place, kind in enumerate(order):
        for rule, count in found[kind].pods.items():
            weight[rule, place] = count
    sums = [(sum(here.pods.values()), here.cpu, here.memory, here.percent) for here in map(found.__getitem__, order)]
    total = np.array(sums, np.float64).reshape(-1, 4).T
    cards = np.array([kind[0] for kind in order], np.float64)
    percent = np.rint(total[3] / total[0]).astype(np.int64)
    return Kinds(total[1] / total[0], total[2] / total[0], cards, percent, weight)


@dataclass(slots=True)
class _Kind:
    """The pods of a kind by their rules, and what they ask for together."""

    pods: dict[int, int] = field(default_factory=dict)
    cpu: int = 0
    memory: int = 0
    percent: int = 0


def _kind(ask: Ask) -> tuple[int, int, int]:
    """Number of cards, part of each in percent rounded up to a step, and for whole cards the binary magnitude of the CPUs."""
    return ask.cards, min(100, -(-ask.percent // STEP) * STEP), ask.cpu.bit_length() if ask.percent == 100 else 0


class Filling(NamedTuple):
    """Of nodes of one class: ``served[free]``, the cards' worth that a card with so many percent free will still serve,
    and the CPU (milli-cores) and memory (bytes) that the mixture takes beside one whole card."""

    served: list[float]
    cpu: float
    memory: float


@dataclass(slots=True)
class Demand:
    """What is asked for under one set of rules, by all pods together: ``pods`` by the percent of each card, percent of
    cards in all, CPU in milli-cores, memory in bytes."""

    pods: dict[int, int] = field(default_factory=dict)
    given: int = 0
    cpu: int = 0
    memory: int = 0


def demands_of(asks: Iterable[Asked], rules: int) -> list[Demand]:
    """The demand under each of so many sets of ``rules``."""
    demands = [Demand() for _ in range(rules)]
    for rule, ask, count in asks:
        here = demands[rule]
        here.pods[ask.percent] = here.pods.get(ask.percent, 0) + count
        here.given += ask.cards * ask.percent * count
        here.cpu += ask.cpu * count
        here.memory += ask.memory * count
    return demands


def filling_of(demands: Sequence[Demand], serve: Serve | None = None) -> Filling:
    """How a card is filled by pods that come in the proportions of ``demands``."""
    pods: dict[int, int] = {}
    for demand in demands:
        for size, count in demand.pods.items():
            pods[size] = pods.get(size, 0) + count
    if not pods:
        return Filling([_grained(free / 100) for free in range(101)], 1.0, 1.0)
    total, sizes = sum(pods.values()), sorted(pods)
    shares = [pods[size] / total for size in sizes]
    served = serve(np.array(sizes, np.int64), np.array(shares)).tolist() if serve else served_of(sizes, shares)
    given, cpu = sum(demand.given for demand in demands), sum(demand.cpu for demand in demands)
    memory = sum(demand.memory for demand in demands)
    return Filling(served, max(100 * cpu / given, 1.0), max(100 * memory / given, 1.0))


def served_of(sizes: Sequence[int], shares: Sequence[float]) -> list[float]:
    """What a card serves, by free percent, of pods that ask for ``sizes`` of it in such ``shares``; the least size first.

    It serves the next pod that fits, and then what the rest serves; each turn in which a pod comes that does not fit costs
    patience.
    """
    served, later = [0.0], [0.0]
    fitting: list[tuple[int, float, float]] = []
    share_of = dict(zip(sizes, shares, strict=True))
    fits, turns = 0.0, 1 - PATIENCE
    for free in range(1, 101):
        if free in share_of:
            share = share_of[free]
            fitting.append((-free, free / 100, share))
            fits += share
            turns = 1 - PATIENCE * (1 - fits)
        gain = 0.0
        for back, part, share in fitting:
            gain += share * (part + later[back])
        served.append(_grained(gain / turns))
        later.append(PATIENCE * served[free])
    return served


def _grained(served: float) -> float:
    return round(served * GRAIN) / GRAIN
