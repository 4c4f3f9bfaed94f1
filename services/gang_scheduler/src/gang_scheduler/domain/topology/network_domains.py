"""Network domains as vectors: which of them may hold a gang, in the order in which they are tried.

The plain rule is: of the domains allowed, the lowest tier first, in it the fullest, equal ones by name; the first in which
the gang can be placed is taken. Here those that cannot hold it are left out before anything is placed: the sum of what fits
on the nodes of a domain is a bound of what fits in it, shape by shape, and costs one pass over the nodes for all domains.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.nodes.node_table import NodeTable


class Domain(NamedTuple):
    """One domain with its nodes."""

    tier: int
    name: str
    nodes: Mask
    tier_name: str = ""


class Need(NamedTuple):
    """So many copies of a shape have to be inside; ``copies`` says how many fit on each node."""

    copies: Ints
    wanted: int


@dataclass(slots=True)
class DomainTable:
    """Domains by tier and name. A node may be in several."""

    domains: Sequence[Domain]
    _tiers: Ints = field(init=False)
    _members: Mask = field(init=False)
    _domain: Ints = field(init=False)
    _node: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.domains = sorted(self.domains, key=lambda domain: (domain.tier, domain.name))
        self._tiers = np.array([domain.tier for domain in self.domains], np.int64)
        masks = [domain.nodes for domain in self.domains]
        self._members = np.array(masks, np.bool_) if masks else np.zeros((0, 0), np.bool_)
        self._domain, self._node = np.nonzero(self._members)

    def tier_named(self, name: str) -> int:
        """The highest tier of that name, -1 for none."""
        return max((domain.tier for domain in self.domains if domain.tier_name == name), default=-1)

    def candidates(self, highest: int | None, held: Sequence[int], needs: Sequence[Need]) -> Ints:
        """The numbers of the domains up to a tier that have all nodes ``held``, and enough places for each of ``needs``."""
        good = np.ones(len(self.domains), np.bool_) if highest is None else self._tiers <= highest
        if held and len(self.domains):
            good &= self._members[:, list(held)].all(axis=1)
        for need in needs:
            good &= self._sums(need.copies) >= need.wanted
        return np.flatnonzero(good)

    def ordered(self, numbers: Ints, table: NodeTable, rows: list[int], *, fullest: bool) -> Iterator[Mask]:
        """The nodes of these domains: the lowest tier first, then the fullest (or emptiest) of ``rows``, then by name."""
        shares = np.zeros(len(self.domains))
        for row in rows:
            shares += self._sums(table.used[row]) / np.maximum(self._sums(table.allocatable[row]), 1)
        fill = np.round(shares, 9)[numbers] * (-1 if fullest else 1)
        for number in numbers[np.lexsort((numbers, fill, self._tiers[numbers]))].tolist():
            yield self.domains[number].nodes

    def unions(self, highest: int | None, held: Sequence[int], needs: Sequence[Need]) -> Iterator[Mask]:
        """Where no domain up to ``highest`` holds all ``needs``: few domains of the lowest tier that do so together.

        First such that lie in one wider domain, the lowest tier and the first by name before others; then any.
        """
        if not len(self.domains) or not needs:
            return
        fitting = self.candidates(None, held, needs)
        wider = [] if highest is None else [number for number in fitting.tolist() if self._tiers[number] > highest]
        for outer in [*(self._members[number] for number in wider), np.ones(self._members.shape[1], np.bool_)]:
            union = self._union(outer, held, needs)
            if union is not None:
                yield union & outer

    def _union(self, outer: Mask, held: Sequence[int], needs: Sequence[Need]) -> Mask | None:
        """The roomiest domains inside ``outer``, and for what is left over the smallest that holds it; those of ``held`` first."""
        lowest = np.flatnonzero(self._tiers == self._tiers.min())
        room = np.array([self._sums(np.where(outer, need.copies, 0))[lowest] for need in needs])
        left = np.array([need.wanted for need in needs])
        roomy = np.asarray((room > 0).any(axis=0))
        chosen: Mask = np.zeros(len(lowest), np.bool_)
        if held:
            chosen |= self._members[lowest][:, list(held)].any(axis=1)
        left = left - room[:, chosen].sum(axis=1)
        while (left > 0).any():
            usable = roomy & ~chosen
            enough = np.flatnonzero(usable & (room >= left.reshape(-1, 1)).all(axis=0))
            gains = np.where(usable, np.minimum(room, np.maximum(left, 0).reshape(-1, 1)).sum(axis=0), 0)
            best = int(enough[room[:, enough].sum(axis=0).argmin()]) if len(enough) else int(gains.argmax())
            if not gains[best]:
                return None
            chosen[best] = True
            left = left - room[:, best]
        union: Mask = np.asarray(self._members[lowest[chosen]].any(axis=0))
        return union

    def _sums(self, of_nodes: Ints) -> Ints:
        """What the nodes of each domain have together."""
        weights = of_nodes[self._node]
        sums: Ints = np.bincount(self._domain, weights=weights, minlength=len(self.domains)).astype(np.int64)
        return sums
