"""What a placement takes from the pods to come, which are expected to be like those that have a place now.

A node's worth is the sum of

    MIXED * (cards' worth of the mixture of all pods that fit on it) / (those that fit on all nodes)
    + over kinds of pods: share of all pods * (copies that fit on it) / (those that fit on all nodes) * scarcity ** 2

where scarcity is how many cards' worth of the mixture fit for each that fits of the kind. The first part sees that cards need
CPUs and memory beside them, and which rests of cards nobody has a use for. The second one keeps what few nodes offer: whole
nodes for pods of many cards, models that some pods insist on. Whatever is the same for all nodes is computed at a look, seldom,
and remembered (``Basis``); so the worth of a node follows from that and the node alone. Nothing is configured
(docs/adr/0019-foresight.md).
"""

from dataclasses import dataclass, field
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from gang_scheduler.domain.columns.compiled import Compiled, Kernels, no_kernel
from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.filters import StaticMasks
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.appraisal import Appraisal, left_of
from gang_scheduler.domain.score.basis import Basis, read, written
from gang_scheduler.domain.score.mixture import Census, Floats, Kinds
from gang_scheduler.domain.score.prices import PRICE, Prices, mixed

FIRST_LOOK = 16
"""So many pods with cards must have a place before anything is learned from them; until then nodes are just packed."""

GROWTH, OFTEN, LONGEST = 4, 32, 200
"""It looks again when the pods have become more, or fewer, by a quarter of themselves or of the room that was left, the latter
not below one in OFTEN of themselves; at the latest by LONGEST. Prices that are old when little is left do much harm."""

MIXED = 80.0
"""How much the mixture counts against all single kinds together."""

_DEAREST = 1 << 36
"""No copy is worth more: keeps sums of prices exact."""

_ALMOST = 1e-9
_LEAST = 1.0
"""Less than one card's worth, in the whole cluster, says nothing of how scarce the mixture is; and large factors cost digits."""


@dataclass(slots=True)
class Foresight:
    """Scores nodes by what a pod would spoil there. ``version`` is 0 as long as too little is known for that."""

    table: NodeTable
    static: StaticMasks
    kernels: Kernels = no_kernel
    census: Census = field(default_factory=Census)
    version: int = 0
    basis: Basis | None = None
    _looks: int = 0
    _patience: int = 0
    """By so many pods they have to become more or fewer before it looks again."""

    _written: bytes | None = None
    """What there is to remember, once somebody has asked for it."""

    appraisal: Appraisal | None = None
    """The nodes at the prices of the last look; None as long as too little is known."""

    _supply: "Supply" = field(default_factory=lambda: Supply(-1, np.zeros(0, np.int64), 0, 0))

    def renew(self) -> None:
        """Look at what runs, if that, or what there is for it, has become another: at the start of a pass.

        What was found stays until then, so that all that is kept follows single nodes that change; and it is remembered, so that
        a core that was just started decides like one that has been there for long.
        """
        cards = self._find_supply().cards
        if self._due() or (self.basis and abs(cards - self.basis.cards) * GROWTH > self.basis.cards):
            self._look()

    def keep_up(self) -> None:
        """Look again in the midst of a pass that has placed much."""
        if self.census.with_cards > (self.basis.pods if self.basis else 0) and self._due():
            self._look()

    def scores(self, shape: PodShape, places: Ints) -> Ints:
        """For each of ``places`` BEST less what a pod of ``shape`` would spoil there; it fits there."""
        assert self.appraisal is not None, "asked for only when something is known"
        return self.appraisal.scores(shape, places)

    def remember(self) -> bytes:
        """What the last look found, as JSON; nothing when nothing is known."""
        if self._written is None:
            self._written = written(self.basis) if self.basis else b""
        return self._written

    def restore(self, data: Any) -> None:
        """Go on with what a predecessor found. What cannot be read is dropped, and looked for anew."""
        basis = read(data)
        self._know(Prices(basis, self.kernels()) if basis else None)

    def _due(self) -> bool:
        pods = self.census.with_cards
        return pods >= FIRST_LOOK if self.basis is None else abs(pods - self.basis.pods) >= self._patience

    def _find_supply(self) -> "Supply":
        if self._supply.seen != self.table.rules.end:
            self._supply = Supply.of(self.table)
        return self._supply

    def _look(self) -> None:
        supply = self._find_supply()
        if self.census.with_cards >= FIRST_LOOK and supply.cards:
            self._know(*look(self.census, self.table, self.static, supply, self.kernels()))
        else:
            self._know(None)

    def _know(self, prices: Prices | None, classes: Ints | None = None) -> None:
        self._written = None
        if prices is None:
            self.basis, self.appraisal, self.version = None, None, 0
            return
        self.basis, seen = prices.basis, prices.basis.pods
        room = int(MIXED * prices.basis.cards / prices.basis.mixed)
        self._patience = max(1, min(LONGEST, seen // GROWTH, max(seen // OFTEN, room // GROWTH)))
        self._looks += 1
        self.version = self._looks
        known = self.appraisal
        self.appraisal = known.renewed(prices) if known else Appraisal(self.table, prices, self.static)
        if classes is not None:
            self.appraisal.know(classes)


class Supply(NamedTuple):
    """What cards there are, as far as the log of nodes was ``seen``."""

    seen: int
    nodes: Ints
    """Those that have some."""

    cards: int
    card_memory: int
    """Bytes of an average one."""

    @classmethod
    def of(cls, table: NodeTable) -> "Supply":
        """The cards of all nodes."""
        memory = table.devices.have.memory
        nodes, cards = np.flatnonzero(memory[:1].any(axis=0)), int((memory > 0).sum())
        return cls(table.rules.end, nodes, cards, int(memory[:, nodes].sum()) // max(1, cards))


def look(
    census: Census, table: NodeTable, static: StaticMasks, supply: Supply, compiled: Compiled | None
) -> tuple[Prices, Ints]:
    """What there is to find now, and the class of every node.

    All sums are exact: the order of the nodes, which a restart changes, must not show.
    """
    nodes, cards = supply.nodes, supply.cards
    rules, asks = census.asked(supply.card_memory)
    bare = Prices(Basis(census.with_cards, supply.card_memory, cards, rules, asks, (), 0.0), compiled)
    masks = np.array([static.of(item) for item in rules], np.bool_)
    classes = bare.classes_of(masks)
    left = left_of(table, nodes, classes[nodes])
    cpu, memory = left.cpu.astype(np.float64), left.memory.astype(np.float64)
    served = bare.served[left.classes, left.cards].sum(axis=0)
    mixture = fsum(mixed(cpu, memory, served, *bare.beside[left.classes].T).tolist())
    copies = bare.copies(cpu, memory, left.cards).T[: len(bare.kinds.cards)]
    scarcity = _scarcity(bare.kinds, masks[:, nodes], copies, mixture)
    worths = np.rint(np.minimum(cards * PRICE * scarcity, _DEAREST)).astype(np.int64).T
    rule, kind = np.nonzero(worths > 0)
    found = zip(rule.tolist(), kind.tolist(), worths[rule, kind].tolist(), strict=True)
    basis = bare.basis._replace(prices=tuple(found), mixed=MIXED * cards / max(mixture, _LEAST))
    return bare.at(basis), classes


def _scarcity(kinds: Kinds, masks: Mask, copies: Floats, mixture: float) -> Floats:
    """What a copy of each kind under each set of rules is worth (kind by rules).

    Its share of all pods over how many more of it fit, times the square of how much scarcer it is than the mixture.
    """
    fit = copies @ masks.T.astype(np.float64) + 1.0
    size = np.maximum(kinds.cards * kinds.percent / 100, _ALMOST).reshape(-1, 1)
    scarcity: Floats = kinds.weight.T / kinds.weight.sum() / fit * (mixture / (fit * size)) ** 2
    return scarcity
