"""How good a node is for a pod, in millionths of a point; the weights are those of Kubernetes' default plugins.

The room score packs (or spreads) by the resources that the pod asks for. It looks at the node as it would be with the
pod on it, so under packing a node never becomes worse by taking a copy: many copies go node by node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Slots
from gang_scheduler.domain.nodes.filters import term_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.terms.node_rules import Taint
from gang_scheduler.domain.terms.pod_requests import PODS

POINT = 10_000
"""One point of a hundred."""

FULL = 100 * POINT
NODE_AFFINITY, TAINTS, NEIGHBOURS, SPREAD = 2, 3, 2, 2
SCARCE_RESOURCE = 5
"""How much more a device counts than cpu or memory; also keeps pods that need none off the nodes that have some."""

_ANY = 1 << 62
_PLAIN = (PODS, "cpu", "memory", "ephemeral-storage", "storage")


class Placement(StrEnum):
    """Which nodes come first: the fullest that fit, or the emptiest."""

    BINPACK = "binpack"
    SPREAD = "spread"


@dataclass(slots=True)
class RoomScore:
    """Scores nodes by how full they are with one more pod of ``shape``."""

    shape: PodShape
    placement: Placement
    rows: list[int]
    parts: list[tuple[int, int, int]]
    """For each resource its row, how much of it the pod needs, and how much it counts."""

    weight: int

    @classmethod
    def of(cls, shape: PodShape, placement: Placement, table: NodeTable) -> "RoomScore":
        """The score of ``shape``: of all that it asks for, except the one pod, if it asks for anything else."""
        rows = table.rows_for(shape)
        names = list(shape.requests)
        weights = [0 if name == PODS and len(names) > 1 else 1 if name in _PLAIN else SCARCE_RESOURCE for name in names]
        return cls(shape, placement, rows, list(zip(rows, shape.needs, weights, strict=True)), max(1, sum(weights)))

    def of_nodes(self, allocatable: Ints, used: Ints) -> Ints:
        """The score of nodes with these ``allocatable`` and ``used`` amounts of the shape's resources (resource by node)."""
        share = np.zeros(used.shape[1], np.float64)
        # Resource by resource: vectors of one row stay in the processor's cache where a matrix would not.
        for place, (_, need, weight) in enumerate(self.parts):
            if weight:
                share += (used[place] + need) / np.maximum(allocatable[place], 1) * weight
        share /= self.weight
        # Rounded, so that equal nodes score equal whatever the order of additions was.
        score: Ints = np.rint(np.clip(share, 0.0, 1.0) * FULL).astype(np.int64)
        return score if self.placement is Placement.BINPACK else FULL - score

    def of_node(self, allocatable: Sequence[int], used: Sequence[int]) -> tuple[int, int]:
        """For one node how many copies fit beside what is ``used``, and the score: the same as of_nodes, to the last bit.

        Both amounts are of all resources, in the rows of the node table.
        """
        copies, share = _ANY, 0.0
        for row, need, weight in self.parts:
            has, takes = allocatable[row], used[row]
            fits = (has - takes) // need
            if fits < copies:
                copies = fits
            share += (takes + need) / (has if has > 1 else 1) * weight
        score = round(min(1.0, max(0.0, share / self.weight)) * FULL)
        return max(0, copies), score if self.placement is Placement.BINPACK else FULL - score


def static_score(shape: PodShape, table: NodeTable, slots: Slots = ALL) -> Ints:
    """What does not change while pods come and go: preferred node affinity, taints, devices that the pod has no use for."""
    score = np.zeros(len(table.exists[slots]), np.int64)
    total = sum(abs(weight) for weight, _ in shape.rules.preferred)
    for weight, term in shape.rules.preferred:
        score += term_mask(term, table, slots) * (NODE_AFFINITY * FULL * weight // max(1, total))
    if len(table.taint_sets) > 1:
        penalties = [_soft_taints(shape, taints) for taints in table.taint_sets]
        score += np.array(penalties, np.int64)[table.taint_ids[slots]]
    asked = set(shape.requests)
    for name, row in table.resources.rows.items():
        if name not in asked and is_device(name) and row < len(table.allocatable):
            score -= (table.allocatable[row][slots] > 0) * FULL
    return score


def is_device(name: str) -> bool:
    """Whether the resource is a scarce device rather than something that every node has."""
    return ("gpu" in name.lower() or name.startswith("nvidia.com/mig-")) and not name.startswith("hugepages")


def _soft_taints(shape: PodShape, taints: tuple[Taint, ...]) -> int:
    soft = [taint for taint in shape.rules.untolerated(taints) if taint.effect == "PreferNoSchedule"]
    return TAINTS * FULL // (1 + len(soft)) - TAINTS * FULL
