"""What every node is worth at the prices of one look, and what a pod would take from that.

Both follow from what of a node is free and from its class alone. Nodes with the same are in one state, which is valued once.
"""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.devices.card_states import CardStates, free_cards
from gang_scheduler.domain.nodes.filters import static_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.vectors import ALL, Ints, Slots
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import Ask, Floats, ask_of
from gang_scheduler.domain.score.prices import Prices

BEST = 1_000_000
"""The score of a node that loses nothing."""

HALF = 8.0
"""The loss, in worths of an average card, at which half of that is left."""

FEW = 6
"""Up to so many states are valued faster one by one."""

MOST_STATES = 20_000
"""So many states, and four for each node, are remembered before it starts anew."""

State = tuple[int, int, int, int]
"""The class of a node, its free CPU in milli-cores and memory in bytes, and the state of its cards."""

_UNKNOWN = -1


@dataclass(slots=True)
class Memo:
    """What is known of one ask: the score of each state, by number."""

    ask: Ask
    scores: Ints


@dataclass(slots=True)
class Appraisal:
    """``of_node`` is the number of the state that every node is in."""

    table: NodeTable
    basis: Basis
    prices: Prices = field(init=False)
    cards: CardStates = field(init=False)
    classes: Ints = field(init=False)
    of_node: Ints = field(init=False)
    states: list[State] = field(default_factory=list)
    _numbers: dict[State, int] = field(default_factory=dict)
    _vectors: Ints = field(default_factory=lambda: np.zeros((4, 256), np.int64))
    """The states as columns, so far as they were needed as such."""

    _filled: int = 0
    _worths: Floats = field(default_factory=lambda: np.full(256, np.nan))
    _memos: dict[Ask, Memo] = field(default_factory=dict)
    _by_shape: dict[int, Memo] = field(default_factory=dict)
    _room_seen: int = -1
    _rules_seen: int = -1

    def __post_init__(self) -> None:
        self.prices = Prices(self.basis)
        self.cards = CardStates(self.prices)

    def renewed(self, basis: Basis) -> "Appraisal":
        """Another one at the prices of a newer look; the states of nodes are the same where their rules are."""
        heir = Appraisal(self.table, basis)
        if basis.rules != self.basis.rules or self._rules_seen < 0:
            return heir
        for bits in self.prices.classes:
            heir.prices.class_of(bits)
        heir.cards.take_over(self.cards)
        heir.classes, heir.of_node, heir.states, heir._numbers = self.classes, self.of_node, self.states, self._numbers
        heir._vectors, heir._filled, heir._worths = self._vectors, self._filled, np.full(len(self._worths), np.nan)
        heir._room_seen, heir._rules_seen = self._room_seen, self._rules_seen
        return heir

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """For each of ``places`` BEST less what a pod of ``shape`` would spoil there; it fits there."""
        self._catch_up()
        memo = self._memo(shape)
        numbers = self.of_node[places]
        scores = memo.scores[numbers]
        if scores.min(initial=0) == _UNKNOWN:
            self._value(memo, np.unique(numbers[scores == _UNKNOWN]))
            scores = memo.scores[numbers]
        return scores

    def score_of(self, shape: PodShape, slot: int) -> int:
        """The same for one node."""
        self._catch_up()
        memo = self._memo(shape)
        number = int(self.of_node[slot])
        score = int(memo.scores[number])
        if score == _UNKNOWN:
            memo.scores[number] = score = self._score(memo.ask, number)
        return score

    def _memo(self, shape: PodShape) -> Memo:
        memo = self._by_shape.get(shape.index)
        if memo is None:
            ask = ask_of(shape, self.basis.card_memory)
            memo = self._memos.get(ask)
            if memo is None:
                memo = self._memos[ask] = Memo(ask, np.full(0, _UNKNOWN, np.int64))
            self._by_shape[shape.index] = memo
        missing = len(self.states) - len(memo.scores)
        if missing > 0:
            more = np.full(max(missing, len(self.states) // 2, 64), _UNKNOWN, np.int64)
            memo.scores = np.concatenate([memo.scores, more])
        return memo

    def _value(self, memo: Memo, numbers: Ints) -> None:
        if len(numbers) <= FEW:
            for number in numbers.tolist():
                memo.scores[number] = self._score(memo.ask, number)
            return
        ask, (node_class, cpu, memory, cards) = memo.ask, self._columns()[:, numbers]
        if ask.cards:
            before, place = np.unique(cards, return_inverse=True)
            after = [self.cards.after(number, ask.cards, ask.percent) for number in before.tolist()]
            cards = np.array(after, np.intp)[place]
        left = np.maximum(cpu - ask.cpu, 0), np.maximum(memory - ask.memory, 0)
        loss = np.maximum(self._known_worths(numbers) - self._worths_of(node_class, *left, cards), -HALF / 2)
        memo.scores[numbers] = np.rint(BEST * HALF / (HALF + loss)).astype(np.int64)

    def _columns(self) -> Ints:
        """All states as columns: class, CPU, memory, cards."""
        count = len(self.states)
        if count > self._filled:
            if count > self._vectors.shape[1]:
                self._vectors = np.hstack([self._vectors, np.zeros((4, count), np.int64)])
            self._vectors[:, self._filled : count] = np.array(self.states[self._filled :], np.int64).T
            self._filled = count
        return self._vectors

    def _known_worths(self, numbers: Ints) -> Floats:
        missing = numbers[np.isnan(self._worths[numbers])]
        if len(missing):
            self._worths[missing] = self._worths_of(*self._columns()[:, missing])
        return self._worths[numbers]

    def _worths_of(self, node_class: Ints, cpu: Ints, memory: Ints, cards: Ints) -> Floats:
        served = self.cards.served_all(cards, node_class)
        return self.prices.worth(
            cpu.astype(np.float64), memory.astype(np.float64), self.cards.parts[:, cards], served, node_class
        )

    def _score(self, ask: Ask, number: int) -> int:
        node_class, cpu, memory, cards = self.states[number]
        if ask.cards:
            cards = self.cards.after(cards, ask.cards, ask.percent)
        left = node_class, max(0, cpu - ask.cpu), max(0, memory - ask.memory), cards
        loss = self._worth(number) - self._worth_of(left)
        return round(BEST * HALF / (HALF + max(loss, -HALF / 2)))

    def _worth(self, number: int) -> float:
        worth = float(self._worths[number])
        if worth != worth:
            worth = self._worths[number] = self._worth_of(self.states[number])
        return worth

    def _worth_of(self, state: State) -> float:
        node_class, cpu, memory, number = state
        served = self.cards.served(number, node_class)
        return self.prices.worth_of(cpu, memory, self.cards.parts_of[number], served, node_class)

    def _catch_up(self) -> None:
        """States follow the books; those of nodes that changed are looked up anew."""
        room, rules = self.table.room, self.table.rules
        if self._room_seen == room.end and self._rules_seen == rules.end:
            return
        changed = rules.since(self._rules_seen) if self._rules_seen >= 0 else None
        touched = room.since(self._room_seen) if self._room_seen >= 0 else None
        if changed is None or len(self.states) > MOST_STATES + 4 * self.table.size:
            self._start_anew()
        elif changed:
            self._classify(np.array(changed, np.intp))
            self._assign(np.array(changed, np.intp))
        if changed is not None and touched is None:
            self._assign(np.arange(self.table.size))
        elif touched:
            self._assign(np.array(touched, np.intp))
        self._room_seen, self._rules_seen = room.end, rules.end

    def _start_anew(self) -> None:
        for known in (self.states, self._numbers, self._memos, self._by_shape):
            known.clear()
        self._worths[:], self._filled = np.nan, 0
        self.classes = np.zeros(self.table.size, np.int64)
        self.of_node = np.zeros(self.table.size, np.int64)
        self._classify(ALL)
        self._assign(np.arange(self.table.size))

    def _classify(self, slots: Slots) -> None:
        masks = np.array([static_mask(rules, self.table, slots) for rules in self.basis.rules], np.bool_)
        self.classes[slots] = self.prices.classes_of(masks)

    def _assign(self, slots: Ints) -> None:
        table, devices = self.table, self.table.devices
        if not len(devices.have.memory):
            return
        slots = slots[devices.have.memory[0, slots] > 0]
        cpu, memory = (
            np.maximum(table.allocatable[row, slots] - table.used[row, slots], 0).tolist()
            for row in (table.row_of("cpu"), table.row_of("memory"))
        )
        cards = map(self.cards.number, free_cards(devices, slots))
        states = zip(self.classes[slots].tolist(), cpu, memory, cards, strict=True)
        self.of_node[slots] = [self._number(state) for state in states]

    def _number(self, state: State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
            if number >= len(self._worths):
                self._worths = np.concatenate([self._worths, np.full(number, np.nan)])
        return number
