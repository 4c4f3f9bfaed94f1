"""Topology spread: how evenly the pods of a set lie over the domains of a node label."""

from collections.abc import Iterator

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.near.domain_counts import DomainCounts
from gang_scheduler.domain.near.pod_affinity import NeighbourIndex
from gang_scheduler.domain.nodes.filters import affinity_mask, taints_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.score.scoring import FULL, SPREAD
from gang_scheduler.domain.terms.pod_terms import Spread


def spread_masks(record: PodRecord, index: NeighbourIndex) -> Iterator[tuple[str, Mask]]:
    """Every constraint that must hold, with the nodes on which the pod would keep it."""
    for number, constraint in enumerate(record.shape.terms.spread):
        if not constraint.hard:
            continue
        counts = _counts(record, number, index)
        own = int(constraint.term.matches(record.key.namespace, record.pod.labels, index.namespaces))
        evens = counts.sums + own - _least(constraint, counts) <= constraint.max_skew
        mask = counts.eligible & evens[counts.domains]
        yield f"would make the skew over {constraint.topology_key} larger than {constraint.max_skew}", mask


def spread_bonus(record: PodRecord, index: NeighbourIndex) -> Ints | int:
    """The score of the constraints that only should hold: more in a domain that has fewer."""
    total: Ints | int = 0
    for number, constraint in enumerate(record.shape.terms.spread):
        if constraint.hard:
            continue
        counts = _counts(record, number, index)
        most = int(counts.sums.max(initial=0))
        score = (most - counts.sums) * (SPREAD * FULL) // max(1, most)
        total = total + np.where(counts.eligible, score[counts.domains], -SPREAD * FULL)
    return total


def _counts(record: PodRecord, number: int, index: NeighbourIndex) -> DomainCounts:
    """The pods by domain for one constraint of a pod, on the nodes that take part."""
    shape = record.shape
    constraint = shape.terms.spread[number]
    return index.eligible_around(
        constraint.term,
        constraint.topology_key,
        (shape.index, number),
        lambda: _eligible(shape, constraint, index.table),
    )


def _eligible(shape: PodShape, constraint: Spread, table: NodeTable) -> Mask:
    """The nodes with all topology keys and, as asked, with fitting rules."""
    eligible = table.exists.copy()
    for other in shape.terms.spread:
        if other.hard == constraint.hard:
            eligible &= table.labels.column(other.topology_key) != 0
    if constraint.honors_affinity:
        eligible &= affinity_mask(shape.rules, table)
    if constraint.honors_taints:
        eligible &= taints_mask(shape.rules, table)
    return eligible


def _least(constraint: Spread, counts: DomainCounts) -> int:
    """The pods in the emptiest domain; 0 while there are fewer domains than asked for."""
    sums = counts.sums[counts.present]
    return 0 if len(sums) < max(1, constraint.min_domains) else int(sums.min())
