"""How many pods of one set are in each domain of a node label, kept up to date node by node.

A domain is all nodes with one value of the label. Who asks again after a few pods have moved pays for those pods, not for
all nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import ChangeLog, Ints, Mask
from gang_scheduler.domain.nodes.node_table import NodeTable


@dataclass(slots=True)
class Census:
    """How many pods of one set are on each node. ``users`` are the pods that name the set."""

    number: int
    counts: Ints
    users: int = 0
    moves: ChangeLog = field(default_factory=lambda: ChangeLog(limit=4096))
    """The nodes at which pods came or went."""

    def move(self, slot: int, count: int) -> None:
        """``count`` pods come to the node at ``slot``, or leave it."""
        if slot >= len(self.counts):
            self.fit(slot + 1)
        self.counts[slot] += count
        self.moves.add(slot)

    def fit(self, size: int) -> Ints:
        """The counts of ``size`` nodes."""
        missing = size - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros(missing, np.int64)])
        return self.counts

    def clear(self) -> None:
        """There is no pod any more."""
        self.counts[:] = 0
        self.moves.forget()


@dataclass(slots=True)
class DomainCounts:
    """The sums of a census over the domains of ``topology_key``, of eligible nodes only where ``eligibility`` is given."""

    table: NodeTable
    census: Census
    topology_key: str
    eligibility: Callable[[], Mask] | None = None
    domains: np.ndarray[tuple[int], np.dtype[np.int32]] = field(init=False)
    """The number of each node's domain, 0 where it lacks the label."""
    sums: Ints = field(init=False)
    """By number of the domain; 0 at 0."""
    eligible: Mask = field(init=False)
    present: Mask = field(init=False)
    """By number of the domain: whether it has an eligible node."""
    _known: Ints = field(init=False)
    _occupied: Mask | None = None
    _moves_seen: int = -1
    _rules_seen: int = -1

    def sync(self) -> "DomainCounts":
        """Catch up with pods that moved and nodes that changed."""
        moves, rules = self.census.moves, self.table.rules.end
        if self._rules_seen != rules or len(self._known) != self.table.size:
            self._renew()
        elif self._moves_seen != moves.end:
            moved = moves.since(self._moves_seen)
            if moved is None:
                self._renew()
            else:
                for slot in moved:
                    self._recount(slot)
        self._moves_seen, self._rules_seen = moves.end, rules
        return self

    def on_nodes(self) -> Ints:
        """For each node the pods in its domain; 0 where it lacks the label."""
        return self.sums[self.domains]

    def occupied(self) -> Mask:
        """The nodes in whose domain there is a pod."""
        if self._occupied is None:
            self._occupied = (self.sums > 0)[self.domains]
        return self._occupied

    def _renew(self) -> None:
        table = self.table
        self.domains = table.labels.column(self.topology_key)
        self.eligible = self.eligibility() if self.eligibility is not None else table.exists
        counts = self.census.fit(table.size)
        self._known = counts.copy()
        number = len(table.labels.values_of(self.topology_key)) + 1
        weights = counts * self.eligible if self.eligibility is not None else counts
        self.sums = np.bincount(self.domains, weights=weights, minlength=number).astype(np.int64)
        self.present = np.bincount(self.domains, weights=self.eligible, minlength=number) > 0
        self.sums[0], self.present[0] = 0, False
        self._occupied = None

    def _recount(self, slot: int) -> None:
        count, domain = int(self.census.counts[slot]), int(self.domains[slot])
        change = count - int(self._known[slot])
        self._known[slot] = count
        if not change or not domain or (self.eligibility is not None and not self.eligible[slot]):
            return
        before = int(self.sums[domain])
        self.sums[domain] = before + change
        if not before or not before + change:
            self._occupied = None
