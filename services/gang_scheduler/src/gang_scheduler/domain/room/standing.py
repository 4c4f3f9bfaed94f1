"""What of views changes with the nodes themselves only: shapes to which nodes are alike in that share it."""

from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Slots, parts
from gang_scheduler.domain.nodes.filters import StaticMasks
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.scoring import is_device, static_score
from gang_scheduler.domain.terms.node_rules import NodeTerm, Toleration

RANK_BITS = 20
_OFFSET = 1 << 40
"""Added to every key so that those of nodes that fit are above zero."""

_Alike = tuple[tuple[tuple[int, NodeTerm], ...], tuple[Toleration, ...], frozenset[str]]


def base_of(shape: PodShape, table: NodeTable, slots: Slots = ALL) -> Ints:
    """The part of the keys of ``slots`` that stays while pods come and go."""
    static: Ints = (static_score(shape, table, slots) + _OFFSET << RANK_BITS) - table.rank()[slots]
    return static


@dataclass(slots=True)
class Standing:
    """Masks by rules, and bases by what ``static_score`` looks at; kept until a node changes."""

    table: NodeTable
    masks: StaticMasks
    _bases: dict[_Alike, Ints] = field(default_factory=dict)
    _seen: int = -1

    def base(self, shape: PodShape) -> Ints:
        """``base_of`` all nodes, to be read only."""
        if self._seen != self.table.rules.end:
            self._bases, self._seen = {}, self.table.rules.end
        alike = shape.rules.preferred, shape.rules.tolerations, frozenset(filter(is_device, shape.requests))
        found = self._bases.get(alike)
        if found is None:
            found = self._bases[alike] = np.zeros(self.table.size, np.int64)
            for part in parts(self.table.size):
                found[part] = base_of(shape, self.table, part)
        return found
