"""How little nodes use, as a score: what Koordinator's LoadAwareScheduling prefers.

The plain rule, for each of cpu and memory: the part of allocatable that is not used, measured use and estimates of pods
not seen yet counted as for the thresholds, and the pod to be placed with its own estimate. These parts are averaged by
weight, the smaller of both once more with a weight of its own. A node without a fresh measurement scores nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask, Slots
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.terms.load_estimate import Load
from gang_scheduler.domain.terms.load_policy import LoadRanking


def _nothing() -> Ints:
    return np.zeros((2, 0), np.int64)


@dataclass(slots=True)
class LoadScore:
    """Row 0 is cpu in milli-cores, row 1 memory in bytes; ``prod`` is what prod pods use of ``used``."""

    ranking: LoadRanking
    capacity: Ints = field(default_factory=_nothing)
    used: Ints = field(default_factory=_nothing)
    prod: Ints = field(default_factory=_nothing)

    def measure(self, slot: int, capacity: Load, used: Load, prod: Load) -> None:
        """A node was measured anew."""
        more = slot + 1 - self.used.shape[1]
        if more > 0:
            nothing = np.zeros((2, max(more, self.used.shape[1])), np.int64)
            for name in ("capacity", "used", "prod"):
                setattr(self, name, np.concatenate([getattr(self, name), nothing], axis=1))
        self.capacity[:, slot], self.used[:, slot], self.prod[:, slot] = capacity, used, prod

    def add(self, slot: int, pods: Sequence[tuple[Load, bool]], sign: int) -> None:
        """Pods of which so much is not seen yet come to a node (1), or leave it (-1)."""
        for load, is_prod in pods:
            for matrix in (self.used, self.prod) if is_prod else (self.used,):
                matrix[0, slot] += sign * load.cpu
                matrix[1, slot] += sign * load.memory

    def of(self, shape: PodShape, slots: Slots, fresh: Mask, full: int) -> Ints:
        """The score of nodes for one more pod of ``shape``; ``full`` for a node of which nothing would be used."""
        known = self.used.shape[1]
        score = np.zeros(len(fresh), np.int64)
        places = np.arange(len(score)) if isinstance(slots, slice) else slots
        fresh = fresh & (places < known)
        places = places[fresh]
        used = (self.prod if shape.prod and self.ranking.by_prod else self.used)[:, places]
        have = np.maximum(self.capacity[:, places], 1)
        # Below 2**53, as amounts and points are, a quotient of floats rounds the same everywhere.
        free = np.maximum(have - used - np.array(shape.load, np.int64).reshape(-1, 1), 0)
        parts = np.floor(free / have * full).astype(np.int64)
        weights, dominant = self.ranking.resources, self.ranking.dominant
        total = parts[0] * weights[0] + parts[1] * weights[1] + parts.min(axis=0) * dominant
        score[fresh] = self.ranking.weight * total // max(1, sum(weights) + dominant)
        return score
