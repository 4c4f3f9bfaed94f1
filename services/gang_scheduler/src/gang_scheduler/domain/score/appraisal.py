"""What every node is worth at the prices of one look, and what a pod would take from that: from the books as they are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.filters import StaticMasks, static_mask
from gang_scheduler.domain.nodes.node_mirror import NodeMirror
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import Ask, Floats, ask_of
from gang_scheduler.domain.score.node_states import NodeStates
from gang_scheduler.domain.score.prices import Left, Prices


class Known(NamedTuple):
    """The class of every node, and what is known of classes and of kinds of pods (``Prices``, ``Measures``)."""

    classes: Ints
    per_copy: Floats
    cpu: Floats
    memory: Floats
    cards: Floats
    parts: Floats
    served: Floats
    beside: Floats
    mixed: float


@dataclass(slots=True)
class Appraisal:
    """``classes`` has the class of every node, in whose place prices are known."""

    table: NodeTable
    prices: Prices
    static: StaticMasks
    classes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    states: NodeStates = field(init=False)
    mirror: NodeMirror = field(init=False)
    """The nodes and their states for compiled code."""

    known: "Known" = field(init=False)
    """What compiled code needs to know of nodes' classes and prices."""

    _asks: dict[int, Ints] = field(default_factory=dict)
    _rules_seen: int = -1

    def __post_init__(self) -> None:
        self.states, self.mirror = NodeStates(self.table, len(self.prices.measures.cpu)), NodeMirror(self.table)

    @property
    def basis(self) -> Basis:
        """What the look found."""
        return self.prices.basis

    def renewed(self, prices: Prices) -> "Appraisal":
        """Another one at the prices of a newer look."""
        heir = Appraisal(self.table, prices, self.static)
        heir.mirror = self.mirror
        if prices.basis.card_memory == self.basis.card_memory:
            heir._asks = self._asks
        return heir

    def know(self, classes: Ints) -> None:
        """These are the classes of the nodes as they are."""
        self.classes, self._rules_seen = classes, self.table.rules.end
        prices = self.prices
        self.known = Known(classes, prices.per_copy, *prices.measures, prices.served, prices.beside, prices.basis.mixed)

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """For each of ``places`` BEST less what a pod of ``shape`` would spoil there; it fits there."""
        self.catch_up()
        return self.prices.scores(Ask(*self.ask(shape).tolist()), left_of(self.table, places, self.classes[places]))

    def ask(self, shape: PodShape) -> Ints:
        """What of a pod of ``shape`` matters here, as a vector."""
        ask = self._asks.get(shape.index)
        if ask is None:
            ask = self._asks[shape.index] = np.array(ask_of(shape, self.basis.card_memory), np.int64)
        return ask

    def catch_up(self) -> None:
        """Nodes that changed by themselves may be of another class."""
        rules = self.table.rules
        if self._rules_seen == rules.end:
            return
        changed = rules.since(self._rules_seen) if self._rules_seen >= 0 else None
        classes = self.classes
        if changed is None or len(classes) != self.table.size:
            classes = self._classes_of([self.static.of(rules) for rules in self.basis.rules])
        elif changed:
            slots = np.array(changed, np.intp)
            classes[slots] = self._classes_of([static_mask(item, self.table, slots) for item in self.basis.rules])
        self.know(classes)

    def _classes_of(self, masks: Sequence[Mask]) -> Ints:
        return self.prices.classes_of(np.array(masks, np.bool_))


def left_of(table: NodeTable, places: Ints, classes: Ints) -> Left:
    """What of nodes is left; ``classes`` are theirs."""
    devices = table.devices
    cpu, memory = (
        np.maximum(table.allocatable[row, places] - table.used[row, places], 0)
        for row in (table.row_of("cpu"), table.row_of("memory"))
    )
    free = np.where(devices.have.memory[:, places] > 0, devices.free.core[:, places], 0)
    return Left(classes, cpu, memory, np.minimum(np.maximum(free, 0), 100))
