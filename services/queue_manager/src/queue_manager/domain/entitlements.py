"""What every queue may use and may reclaim, in the words that gang_scheduler hears, computed when it changes."""

from collections.abc import Iterable, Mapping

import numpy as np

from kube import Decision, Manifest
from queue_manager.domain.claims import CLAIMS, Matrix
from queue_manager.domain.demand import QueueTotals
from queue_manager.domain.fair_share import Layout, deserved, lay_out
from queue_manager.domain.max_min import LARGEST
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.queue_tree import ROOT, Queue, QueueTree, queue_key
from resources import Amounts

NAME = "EntitlementsComputed"
SUBJECT = queue_key(ROOT)
_NOT_SHARED = ("pods",)


class Entitlements:
    """The last computed shares, and whether they have to be computed or told again."""

    def __init__(self, policy: QueuePolicy) -> None:
        self._policy = policy
        self._layout: Layout | None = None
        self._names: dict[str, None] = {}
        self._request: Matrix = np.zeros((0, 0), np.int64)
        self._deserved: Matrix = np.zeros((0, 0), np.int64)
        self._entries: dict[str, Manifest] = {}
        self._stale = self._untold = True
        self._version = 0

    def tree_changed(self) -> None:
        """The tree has other queues, or a queue has another spec or state."""
        self._layout = None

    def supply_changed(self, supply: Amounts) -> None:
        """The cluster has another amount of something, or something new."""
        self._learn(supply)
        self._stale = True

    def forget_told(self) -> None:
        """What was told did not arrive: tell it again."""
        self._untold = True

    def demand_changed(self, queues: Iterable[str], totals: Mapping[str, QueueTotals]) -> None:
        """Queues ask for other amounts; only what differs after capping by the largest amount makes the shares stale."""
        for name in queues:
            request = totals[name].request
            if self._learn(request) or self._layout is None:
                continue
            row = self._layout.rows.get(name)
            if row is None:
                continue
            amounts = [min(request.get(resource, 0), LARGEST) for resource in self._layout.resources]
            if self._request[row].tolist() != amounts:
                self._request[row] = amounts
                self._stale = True

    def tell(self, tree: QueueTree, totals: Mapping[str, QueueTotals], supply: Amounts, now: int) -> Decision | None:
        """The decision that tells the present shares; None when they are those told last."""
        if self._layout is None:
            self._lay_out(tree, totals)
        if self._stale:
            self._compute(tree, supply)
        if not self._untold:
            return None
        self._untold = False
        # Greater than every version told before, by a predecessor too, as long as the clock has not gone back.
        self._version = max(self._version + 1, now)
        payload = {"version": self._version, "queues": dict(self._entries)}
        message = f"shares of {len(self._entries)} queues"
        return Decision(NAME, SUBJECT, tree.queues[ROOT].uid, "SharesChanged", message, payload=payload)

    def deserved_by(self, queue: str) -> Amounts:
        """What ``queue`` deserves by the last computation."""
        entry = self._entries.get(queue)
        return dict(entry["deserved"]) if entry else {}

    def _learn(self, amounts: Amounts) -> bool:
        """Add resources not seen before; returns whether there was one."""
        new = [name for name in amounts if name not in self._names and name not in _NOT_SHARED]
        if new:
            self._names.update(dict.fromkeys(new))
            self._layout = None
        return bool(new)

    def _lay_out(self, tree: QueueTree, totals: Mapping[str, QueueTotals]) -> None:
        for queue in tree.queues.values():
            for amounts in (queue.guarantee, queue.deserved):
                self._learn(amounts)
        layout = self._layout = lay_out(tree, sorted(self._names))
        self._request = np.zeros(layout.shape, np.int64)
        for name, total in totals.items():
            row = layout.rows.get(name)
            if row is not None:
                self._request[row] = [min(total.request.get(resource, 0), LARGEST) for resource in layout.resources]
        self._deserved = np.full(layout.shape, -1, np.int64)
        self._stale = True

    def _compute(self, tree: QueueTree, supply: Amounts) -> None:
        layout = self._layout
        assert layout is not None
        amounts = [supply.get(name, 0) for name in layout.resources]
        shares = deserved(layout, self._request, amounts, CLAIMS[self._policy.queueing])
        changed = (
            np.flatnonzero((shares != self._deserved).any(axis=1)) if shares.size else np.arange(len(layout.names))
        )
        self._deserved, self._stale = shares, False
        for row in changed.tolist():
            name = layout.names[row]
            entry = self._entry(tree, tree.queues[name], shares[row].tolist(), layout.resources)
            if self._entries.get(name) != entry:
                self._entries[name] = entry
                self._untold = True
        for name in [name for name in self._entries if name not in layout.rows]:
            del self._entries[name]
            self._untold = True

    def _entry(self, tree: QueueTree, queue: Queue, amounts: list[int], resources: tuple[str, ...]) -> Manifest:
        return {
            "parent": tree.parent_of(queue.name),
            "weight": queue.weight,
            "priority": queue.priority,
            "reclaimable": queue.reclaimable,
            "open": queue.is_open,
            "deserved": {name: amount for name, amount in zip(resources, amounts, strict=True) if amount},
            "guarantee": dict(queue.guarantee),
            "capability": dict(queue.capability),
            "strict_fifo": queue.fifo or self._policy.strict_fifo,
        }
