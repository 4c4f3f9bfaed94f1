"""When a view can be brought up to date by compiled code, and what that is given (``shape_kernel.renew``)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.nodes.vectors import Ints, Mask
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.appraisal import Appraisal
from gang_scheduler.domain.score.scoring import RoomScore

Kernel = Callable[..., int]
"""``shape_kernel.renew``, compiled."""

Kernels = Callable[[], Kernel | None]
"""Gives the kernel, None as long as there is none: then vectors do the same."""

COPIES, KEYS, BOTH = 1, 2, 3
"""What is renewed: how many copies fit, the order of the nodes (for copies that are right), or both."""


def no_kernel() -> None:
    """Nothing is compiled."""


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


def fixed(shape: PodShape, score: RoomScore, table: NodeTable) -> Fixed:
    """What stays the same of a view."""
    cards = shape.devices.cards
    need = (cards.core, cards.memory, cards.ratio, int(cards.virtual)) if cards else (0, 0, 0, 0)
    rows, needs, weights = np.array(score.parts, np.int64).reshape(-1, 3).T.copy()
    each = np.array(need, np.int64)
    plain = np.array((table.row_of("cpu"), table.row_of("memory")), np.int64)
    return Fixed(
        rows, needs, weights, score.weight, cards.count if cards else 0, bool(cards and cards.whole), each, plain
    )


def compilable(shape: PodShape, table: NodeTable) -> bool:
    """Whether nothing but resources, cards and pods to come matters to the shape."""
    devices, need = table.devices, shape.devices
    if devices.kept or devices.honouring or devices.amplified or table.load.by_slot or not len(devices.have.memory):
        return False
    return not (need.cpus or need.policy or need.nics or need.apart or need.slices or (need.cards and need.cards.wish))


def renew(
    kernel: Kernel, slots: Ints, known: Fixed, table: NodeTable, appraisal: Appraisal, shape: PodShape,
    view: tuple[Mask, Ints, Ints, Ints], rank_bits: int, what: int,
) -> int:  # fmt: skip
    """Renew ``view`` (mask, base, copies, keys) at ``slots``, ``what`` of it; returns how many copies more there are."""
    appraisal.catch_up()
    have, free, prices, measures = table.devices.have, table.devices.free, appraisal.prices, appraisal.prices.measures
    rows, needs, weights, weight, cards, whole, need, plain = known
    return kernel(
        slots, *view, rows, needs, weights, weight, table.allocatable, table.used, cards, whole, need,
        have.memory, free.core, free.memory, free.slots, free.whole, appraisal.ask(shape), plain, appraisal.classes,
        prices.per_copy, measures.cpu, measures.memory, measures.cards, measures.parts,
        prices.served, prices.beside, appraisal.basis.mixed, rank_bits, what,
    )  # fmt: skip
