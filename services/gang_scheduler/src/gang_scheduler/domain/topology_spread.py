"""Topology spread: how evenly the pods of a set lie over the domains of a node label."""

from collections.abc import Iterator

import numpy as np

from gang_scheduler.domain.filters import affinity_mask, taints_mask
from gang_scheduler.domain.pod_affinity import NeighbourIndex
from gang_scheduler.domain.pod_record import PodRecord
from gang_scheduler.domain.pod_terms import Spread
from gang_scheduler.domain.scoring import FULL, SPREAD
from gang_scheduler.domain.vectors import Ints, Mask


def spread_masks(record: PodRecord, index: NeighbourIndex) -> Iterator[tuple[str, Mask]]:
    """Every constraint that must hold, with the nodes on which the pod would keep it."""
    for constraint in record.shape.terms.spread:
        if not constraint.hard:
            continue
        counts, eligible = domain_counts(record, constraint, index)
        own = int(constraint.term.matches(record.key.namespace, record.pod.labels, index.namespaces))
        least = _least(constraint, index, counts, eligible)
        mask = eligible & (counts + own - least <= constraint.max_skew)
        yield f"would make the skew over {constraint.topology_key} larger than {constraint.max_skew}", mask


def spread_bonus(record: PodRecord, index: NeighbourIndex) -> Ints | int:
    """The score of the constraints that only should hold: more in a domain that has fewer."""
    total: Ints | int = 0
    for constraint in record.shape.terms.spread:
        if constraint.hard:
            continue
        counts, eligible = domain_counts(record, constraint, index)
        most = int(counts.max(initial=0))
        total = total + np.where(eligible, (most - counts) * (SPREAD * FULL) // max(1, most), -SPREAD * FULL)
    return total


def domain_counts(record: PodRecord, constraint: Spread, index: NeighbourIndex) -> tuple[Ints, Mask]:
    """The pods in each node's domain, and which nodes take part: with all topology keys and, as asked, fitting rules."""
    table = index.table
    eligible = table.exists.copy()
    for other in record.shape.terms.spread:
        if other.hard == constraint.hard:
            eligible &= table.labels.column(other.topology_key) != 0
    if constraint.honors_affinity:
        eligible &= affinity_mask(record.shape.rules, table)
    if constraint.honors_taints:
        eligible &= taints_mask(record.shape.rules, table)
    counts = index.on_nodes(constraint.term) * eligible
    return index.in_domains(counts, constraint.topology_key), eligible


def _least(constraint: Spread, index: NeighbourIndex, counts: Ints, eligible: Mask) -> int:
    """The pods in the emptiest domain; 0 while there are fewer domains than asked for."""
    if not eligible.any():
        return 0
    domains = np.unique(index.table.labels.column(constraint.topology_key)[eligible])
    return 0 if len(domains) < constraint.min_domains else int(counts[eligible].min())
