"""What a placement takes from the pods to come, which are expected to be like those that have a place now.

A node's worth is the sum of

    MIXED * (cards' worth of the mixture of all pods that fit on it) / (those that fit on all nodes)
    + over kinds of pods: share of all pods * (copies that fit on it) / (those that fit on all nodes) * scarcity ** 2

where scarcity is how many cards' worth of the mixture fit for each that fits of the kind. The first part sees that cards need
CPUs and memory beside them, and which rests of cards nobody has a use for. The second one keeps what few nodes offer: whole
nodes for pods of many cards, models that some pods insist on. Whatever is the same for all nodes is computed at a look, so the
worth of a node follows from the node alone. Nothing is configured (docs/adr/0019-foresight.md).
"""

from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.filters import static_mask
from gang_scheduler.domain.mixture import Census, Filling, Floats, Kinds, ask_of, filling_of, kinds_of
from gang_scheduler.domain.node_table import NodeTable
from gang_scheduler.domain.pod_shape import PodShape
from gang_scheduler.domain.vectors import Ints, Mask

FIRST_LOOK = 16
"""So many pods with cards must have a place before anything is learned from them; until then nodes are just packed."""

GROWTH, LONGEST = 4, 200
"""In a long pass it looks again when the pods have become more, or fewer, by a quarter, at the latest by so many."""

MIXED = 40.0
"""How much the mixture counts against all single kinds together."""

BEST = 1_000_000
"""The score of a node that loses nothing."""

HALF = 8.0
"""The loss, in worths of an average card, at which half of that is left."""

_ALMOST = 1e-9
"""Keeps what fits exactly from being rounded to one less."""

_CORNERS = 4
"""How sharp the corner is between what cards and what CPU or memory serve: the norm with the exponent 2 ** _CORNERS."""

_WHOLE = np.array([100])


class Prices(NamedTuple):
    """What was learned at a look. Vectors over kinds stand upright, so that they meet those over nodes."""

    per_copy: Floats
    """Of one more copy (kind by node)."""

    per_card: float
    """Of one more card's worth of the mixture."""

    cpu: Floats
    memory: Floats
    cards: Floats
    """The inverse of what one copy of a kind takes (kind by one)."""

    parts: Floats
    """Into how many parts for each kind a card can be divided (kind by free percent)."""

    filling: Filling
    node_class: Ints
    scale: float
    """How many cards there are: makes losses comparable between clusters."""

    @classmethod
    def of(cls, kinds: Kinds, filling: Filling, node_class: Ints, cards: float) -> "Prices":
        """What is known before there are any prices."""
        cpu, memory, count = (1 / np.maximum(of, 1.0).reshape(-1, 1) for of in (kinds.cpu, kinds.memory, kinds.cards))
        parts = (np.arange(101) // kinds.percent.reshape(-1, 1)).astype(np.float64)
        return cls(np.zeros((len(cpu), len(node_class))), 0.0, cpu, memory, count, parts, filling, node_class, cards)

    def worth(self, cpu: Floats, memory: Floats, parts: Floats, served: Floats, places: Ints) -> Floats:
        """The worth of nodes with so much left."""
        copies = self.copies(cpu, memory, parts)
        copies *= self.per_copy[:, places]
        mixed = self.mixed(cpu, memory, served, self.node_class[places])
        worth: Floats = copies.sum(axis=0) + self.per_card * mixed
        return worth

    def copies(self, cpu: Floats, memory: Floats, parts: Floats) -> Floats:
        """How many copies of each kind fit (kind by node)."""
        copies = cpu * self.cpu
        np.minimum(copies, memory * self.memory, out=copies)
        np.minimum(copies, parts * self.cards, out=copies)
        copies += _ALMOST
        return np.floor(copies, out=copies)

    def mixed(self, cpu: Floats, memory: Floats, served: Floats, classes: Ints) -> Floats:
        """How many cards' worth of the mixture fit: the least of what cards, CPU and memory serve, with rounded corners."""
        tight = np.maximum(
            self.filling.cpu[classes] / np.maximum(cpu, 1.0), self.filling.memory[classes] / np.maximum(memory, 1.0)
        )
        tight *= served
        for _ in range(_CORNERS):
            tight *= tight
        tight += 1.0
        for _ in range(_CORNERS):
            np.sqrt(tight, out=tight)
        return served / tight


@dataclass(slots=True)
class NodeStates:
    """What of each node is free: percent of each card, parts for each kind, what the cards will still serve; and its worth."""

    free: Ints
    parts: Floats
    served: Floats
    worth: Floats


@dataclass(slots=True)
class Foresight:
    """Scores nodes by what a pod would spoil there. ``version`` is 0 as long as too little is known for that."""

    table: NodeTable
    census: Census = field(default_factory=Census)
    version: int = 0
    _looks: int = 0
    _books: tuple[int, ...] = ()
    _pods_seen: int = 0
    _card_memory: int = 1
    _prices: Prices | None = None
    _states: NodeStates | None = None
    _rows: tuple[int, int] = (0, 0)
    _room_seen: int = 0
    _rules_seen: int = 0

    def renew(self) -> None:
        """Look at what runs, if anything has changed: at the start of a pass, while nothing is on trial.

        Prices follow from the books at that moment, and from what the pass has placed since, alone; so a core that was just
        started decides like one that has been there for long.
        """
        books = (self.table.room.end, self.table.rules.end, len(self.table.devices.free.core))
        if books != self._books:
            self._books = books
            self._look_again()

    def keep_up(self) -> None:
        """Look again in the midst of a pass that has placed much."""
        pods, seen = self.census.with_cards, self._pods_seen
        if pods >= FIRST_LOOK and abs(pods - seen) >= max(1, min(LONGEST, seen // GROWTH)):
            self._look_again()

    def _look_again(self) -> None:
        self._pods_seen = self.census.with_cards
        if self._pods_seen < FIRST_LOOK or not len(self.table.devices.free.core):
            self._prices, self.version = None, 0
            return
        self._looks += 1
        self.version = self._looks
        self._look()

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """For each of ``places`` BEST less what a pod of ``shape`` would spoil there; it fits there."""
        prices, states = self._prices, self._states
        assert prices is not None and states is not None
        self._catch_up(prices, states)
        ask = ask_of(shape, self._card_memory)
        cpu, memory = self._unused(places)
        parts, served = states.parts[:, places], states.served[places]
        if ask.cards:
            # Shares come from the fullest card that has them.
            free = states.free[:, places]
            card = np.where(free >= ask.percent, free, 100).min(axis=0) if ask.percent < 100 else _WHOLE
            rest, filled, classes = card - ask.percent, prices.filling.served, prices.node_class[places]
            parts = parts - ask.cards * (prices.parts[:, card] - prices.parts[:, rest])
            served = served - ask.cards * (filled[classes, card] - filled[classes, rest])
        worth = prices.worth(cpu - ask.cpu, memory - ask.memory, parts, served, places)
        loss = (states.worth[places] - worth) * prices.scale
        scores: Ints = np.rint(BEST * HALF / (HALF + np.maximum(loss, -HALF / 2))).astype(np.int64)
        return scores

    def _catch_up(self, prices: Prices, states: NodeStates) -> None:
        """Look at the nodes that changed since the last time."""
        room, rules = self.table.room, self.table.rules
        if self._room_seen == room.end and self._rules_seen == rules.end:
            return
        touched, changed = room.since(self._room_seen), rules.since(self._rules_seen)
        everything = touched is None or changed is None
        places = np.arange(self.table.size) if everything else np.array([*touched, *changed], np.intp)  # type: ignore[misc]
        self._room_seen, self._rules_seen = room.end, rules.end
        self._survey(prices, states, places)

    def _survey(self, prices: Prices, states: NodeStates, places: Ints) -> None:
        devices = self.table.devices
        free = np.where(devices.have.memory[:, places] > 0, devices.free.core[:, places], 0)
        states.free[:, places] = free = np.minimum(np.maximum(free, 0), 100)
        states.parts[:, places] = parts = prices.parts[:, free].sum(axis=1)
        states.served[places] = served = prices.filling.served[prices.node_class[places], free].sum(axis=0)
        states.worth[places] = prices.worth(*self._unused(places), parts, served, places)

    def _unused(self, places: Ints) -> tuple[Floats, Floats]:
        """CPU in milli-cores and memory in bytes that nobody has asked for."""
        has, used = self.table.allocatable, self.table.used
        cpu, memory = ((has[row][places] - used[row][places]).astype(np.float64) for row in self._rows)
        return cpu, memory

    def _look(self) -> None:
        table, have = self.table, self.table.devices.have.memory
        self._card_memory = int(have.sum()) // max(1, int((have > 0).sum()))
        self._rows = table.row_of("cpu"), table.row_of("memory")
        kinds = kinds_of(self.census, self._card_memory)
        masks = np.array([static_mask(rules, table) for rules in kinds.rules], np.bool_)
        bits = (masks.T * (1 << np.arange(len(masks), dtype=np.int64))).sum(axis=1)
        _, first, node_class = np.unique(bits, return_index=True, return_inverse=True)
        admits, places = masks[:, first].T, np.arange(table.size)
        prices = Prices.of(kinds, filling_of(kinds, admits), node_class, float((have > 0).sum()))
        states = NodeStates(
            np.zeros_like(have), np.zeros((len(kinds.cpu), table.size)), np.zeros(table.size), np.zeros(table.size)
        )
        self._survey(prices, states, places)
        cpu, memory = self._unused(places)
        # Exact sums: the order of the nodes, which a restart changes, must not show.
        mixture = fsum(prices.mixed(cpu, memory, states.served, node_class).tolist())
        price = _scarcity(kinds, masks, prices.copies(cpu, memory, states.parts), mixture) @ admits.T
        prices = prices._replace(per_copy=price[:, node_class], per_card=MIXED / max(mixture, _ALMOST))
        states.worth = prices.worth(cpu, memory, states.parts, states.served, places)
        self._prices, self._states = prices, states
        self._room_seen, self._rules_seen = table.room.end, table.rules.end


def _scarcity(kinds: Kinds, masks: Mask, copies: Floats, mixture: float) -> Floats:
    """What a copy of each kind under each set of rules is worth (kind by rules).

    Its share of all pods over how many more of it fit, times the square of how much scarcer it is than the mixture.
    """
    fit = copies @ masks.T.astype(np.float64) + 1.0
    size = np.maximum(kinds.cards * kinds.percent / 100, _ALMOST).reshape(-1, 1)
    scarcity: Floats = kinds.weight.T / kinds.weight.sum() / fit * (mixture / (fit * size)) ** 2
    return scarcity
