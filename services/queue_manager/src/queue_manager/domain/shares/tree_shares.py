"""The last computed shares of one tree of queues, and whether they have to be computed again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from kube import Manifest
from queue_manager.domain.members.demand import QueueTotals
from queue_manager.domain.quotas.claims import Matrix
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree
from queue_manager.domain.shares.fair_share import Layout
from queue_manager.domain.shares.max_min import LARGEST
from resources import Amounts

_NOT_SHARED = ("pods",)


class ShareRule(Protocol):
    """How the queues of a tree share, and in which words gang_scheduler hears of it."""

    def lay_out(self, tree: QueueTree, resources: Sequence[str]) -> Layout:
        """The arrays of the tree."""

    def shares(self, layout: Layout, request: Matrix, supply: Sequence[int]) -> Matrix:
        """What each queue has of ``supply``: one row for each queue, as many columns as the rule needs to tell it."""

    def entry(self, tree: QueueTree, queue: Queue, amounts: list[int], resources: tuple[str, ...]) -> Manifest | None:
        """The words for ``queue``, whose row of the shares is ``amounts``; None for one that is nobody's business."""


class TreeShares:
    """Shares of one tree. ``entries`` are the words by queue."""

    def __init__(self, tree: QueueTree, rule: ShareRule) -> None:
        self.tree = tree
        self.entries: dict[str, Manifest] = {}
        self._rule = rule
        self._layout: Layout | None = None
        self._names: dict[str, None] = {}
        self._request: Matrix = np.zeros((0, 0), np.int64)
        self._shares: Matrix = np.zeros((0, 0), np.int64)
        self._supply: list[int] = []
        self._stale = True

    def tree_changed(self) -> None:
        """The tree has other queues, or a queue has another spec or state."""
        self._layout = None

    def demand_changed(self, queues: Iterable[str], totals: Mapping[str, QueueTotals]) -> None:
        """Queues ask for other amounts; only what differs after capping by the largest amount makes the shares stale."""
        for name in queues:
            if name not in self.tree.queues:
                continue
            request = totals[name].request
            if self._learn(request) or self._layout is None:
                continue
            row = self._layout.rows[name]
            amounts = [min(request.get(resource, 0), LARGEST) for resource in self._layout.resources]
            if self._request[row].tolist() != amounts:
                self._request[row] = amounts
                self._stale = True

    def renew(self, totals: Mapping[str, QueueTotals], supply: Amounts) -> dict[str, None]:
        """Bring ``entries`` up to date; returns the queues whose entries changed."""
        self._learn(supply)
        if self._layout is None:
            self._lay_out(totals)
        layout = self._layout
        assert layout is not None
        amounts = [max(0, supply.get(name, 0)) for name in layout.resources]
        if not self._stale and amounts == self._supply:
            return {}
        return self._compute(layout, amounts)

    def _learn(self, amounts: Amounts) -> bool:
        """Add resources not seen before; returns whether there was one."""
        new = [name for name in amounts if name not in self._names and name not in _NOT_SHARED]
        if new:
            self._names.update(dict.fromkeys(new))
            self._layout = None
        return bool(new)

    def _lay_out(self, totals: Mapping[str, QueueTotals]) -> None:
        for queue in self.tree.queues.values():
            for amounts in (queue.guarantee, queue.deserved):
                self._learn(amounts)
        layout = self._layout = self._rule.lay_out(self.tree, sorted(self._names))
        self._request = np.zeros(layout.shape, np.int64)
        for name, row in layout.rows.items():
            if name in totals:
                request = totals[name].request
                self._request[row] = [min(request.get(resource, 0), LARGEST) for resource in layout.resources]
        self._shares = np.zeros((0, 0), np.int64)
        self._stale = True

    def _compute(self, layout: Layout, supply: list[int]) -> dict[str, None]:
        shares = self._rule.shares(layout, self._request, supply)
        known = shares.shape == self._shares.shape and shares.size
        changed = np.flatnonzero((shares != self._shares).any(axis=1)) if known else np.arange(len(layout.names))
        self._shares, self._supply, self._stale = shares, supply, False
        news: dict[str, None] = {}
        for row in changed.tolist():
            name = layout.names[row]
            entry = self._rule.entry(self.tree, self.tree.queues[name], shares[row].tolist(), layout.resources)
            if entry is not None and self.entries.get(name) != entry:
                self.entries[name] = entry
                news[name] = None
        for name in [name for name in self.entries if name not in layout.rows]:
            del self.entries[name]
            news[name] = None
        return news
