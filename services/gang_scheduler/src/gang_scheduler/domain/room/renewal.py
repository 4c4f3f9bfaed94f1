"""When a view can be brought up to date by compiled code, and what that is given (``shape_kernel.renew``)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.compiled import Renew
from gang_scheduler.domain.columns.vectors import Ids, Ints, Mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.appraisal import Appraisal
from gang_scheduler.domain.score.node_states import Known
from gang_scheduler.domain.score.scoring import RoomScore


class Fixed(NamedTuple):
    """What of a shape the kernel needs: rows of resources, how much of each, how much each counts, and of cards."""

    rows: Ints
    needs: Ints
    weights: Ints
    weight: int
    cards: int
    whole: bool
    need: Ints
    """Of each card: percent of the cores, bytes, percent of the memory, virtual GPUs."""

    plain: Ints
    """The rows of CPU and memory."""


View = tuple[Mask, Ints, Ints, Ints]
"""Of a view its mask and base, and by these the copies and keys that the kernel changes."""


@dataclass(slots=True)
class Renewal:
    """What is kept of a shape for compiled code, which brings its view up to date."""

    shape: PodShape
    table: NodeTable
    fixed: Fixed
    _scores: Ids = field(default_factory=lambda: np.zeros(0, np.int32))
    """Of the states of nodes, -1 where not known yet."""

    _ask: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """What of a pod matters at the prices of that look."""

    _known: Known | None = None
    """What these states are."""

    @classmethod
    def of(cls, shape: PodShape, score: RoomScore, table: NodeTable) -> "Renewal":
        """Nothing is known of states yet."""
        cards = shape.devices.cards
        need = (cards.core, cards.memory, cards.ratio, int(cards.virtual)) if cards else (0, 0, 0, 0)
        rows, needs, weights = np.array(score.parts, np.int64).reshape(-1, 3).T.copy()
        each = np.array(need, np.int64)
        plain = np.array((table.row_of("cpu"), table.row_of("memory")), np.int64)
        whole = bool(cards and cards.whole)
        found = Fixed(rows, needs, weights, score.weight, cards.count if cards else 0, whole, each, plain)
        return cls(shape, table, found)

    def run(
        self, kernel: Renew, slots: Ints, view: View, appraisal: Appraisal, rank_bits: int, *, everywhere: bool
    ) -> tuple[int, int]:
        """Renew ``view`` at ``slots``, some maybe named twice, and the keys of all copies if ``everywhere``.

        Returns how many more copies there are, and the best node, -1 where there is none.
        """
        appraisal.catch_up()
        table, mirror, states = self.table, appraisal.mirror, appraisal.states
        before = mirror.seen
        unmirrored = mirror.stale()
        unnumbered = states.stale(unmirrored, before, mirror.seen)
        if self._known is not states.known:
            self._known = states.known
            self._ask = appraisal.ask(self.shape)
            self._scores = states.scores(self._ask)
        have, free = table.devices.have, table.devices.free
        return kernel(
            slots, everywhere, *view, self._scores, *self.fixed, self._ask,
            unmirrored, mirror.rows, table.allocatable, table.used,
            have.memory, free.core, free.memory, free.slots, free.whole,
            unnumbered, *states.known, *appraisal.known, rank_bits,
        )  # fmt: skip


def compilable(shape: PodShape) -> bool:
    """Whether nothing but resources, cards and pods to come matters to the shape."""
    need = shape.devices
    return not (need.cpus or need.policy or need.nics or need.apart or need.slices or (need.cards and need.cards.wish))


def plain(table: NodeTable) -> bool:
    """Whether nothing but these matters to the nodes."""
    devices = table.devices
    special = devices.kept or devices.honouring or devices.amplified or table.load.by_slot
    return not special and len(devices.have.memory) > 0
