"""The rules of the kinds of trees: Volcano's queues, Koordinator's elastic quotas."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kube import Manifest
from queue_manager.domain.policy import QueuePolicy
from queue_manager.domain.quotas.claims import CLAIMS, Matrix
from queue_manager.domain.quotas.cluster_queue import ClusterQueue
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree
from queue_manager.domain.shares.elastic_share import QuotaTerms, light_weights, runtime
from queue_manager.domain.shares.fair_share import Layout, deserved, lay_out
from queue_manager.domain.shares.max_min import LARGEST

OPEN_ENTRY: Manifest = {
    "parent": "",
    "weight": 1,
    "priority": 0,
    "reclaimable": False,
    "open": True,
    "deserved": {},
    "guarantee": {},
    "capability": {},
    "strict_fifo": False,
}
"""The words for a queue that limits nothing by itself."""


@dataclass(slots=True)
class QueueRule:
    """Volcano's queues deserve a share by the rule of the policy, and may use what their capability allows."""

    policy: QueuePolicy

    def lay_out(self, tree: QueueTree, resources: Sequence[str]) -> Layout:
        """The arrays of the tree."""
        return lay_out(tree, resources)

    def shares(self, layout: Layout, request: Matrix, supply: Sequence[int]) -> Matrix:
        """What each queue deserves."""
        return deserved(layout, request, supply, CLAIMS[self.policy.claim])

    def entry(self, tree: QueueTree, queue: Queue, amounts: list[int], resources: tuple[str, ...]) -> Manifest:
        """The words for one queue."""
        return {
            "parent": tree.parent_of(queue.name),
            "weight": queue.weight,
            "priority": queue.priority,
            "reclaimable": queue.reclaimable,
            "open": queue.is_open,
            "deserved": {name: amount for name, amount in zip(resources, amounts, strict=True) if amount},
            "guarantee": dict(queue.guarantee),
            "capability": dict(queue.capability),
            "strict_fifo": queue.fifo or self.policy.strict_fifo,
            **placement_entry(queue),
            **(
                {"node_groups": {name: list(groups) for name, groups in queue.node_groups}} if queue.node_groups else {}
            ),
        }


@dataclass(slots=True)
class QuotaRule:
    """A quota deserves its minimum and may use its runtime, of the resources that its maximum names.

    ``maximum`` is what it could have at best, so that a job beyond it is told that it can never start; ``fixed`` is what
    its pods that cannot be taken back may use, all together. Those of a minimum that is not lent are guaranteed.
    """

    strict_fifo: bool = False
    _terms: QuotaTerms | None = None

    def lay_out(self, tree: QueueTree, resources: Sequence[str]) -> Layout:
        """The arrays of the tree."""
        capped = {name for queue in tree.queues.values() for name in queue.capability}
        layout = lay_out(tree, sorted(capped.union(resources)))
        queues = [tree.queues[name] for name in layout.names]
        weights = [
            [min(max(queue.shared_weight.get(name, 1), 0), LARGEST) for name in layout.resources] for queue in queues
        ]
        self._terms = QuotaTerms(
            np.array([queue.lends for queue in queues], bool),
            light_weights(layout, np.array(weights, np.int64).reshape(layout.shape)),
        )
        return layout

    def shares(self, layout: Layout, request: Matrix, supply: Sequence[int]) -> Matrix:
        """Runtime and scaled minimum, side by side."""
        assert self._terms is not None, "a tree is laid out before it is shared"
        found = runtime(layout, self._terms, request, supply)
        return np.concatenate((found.amount, found.minimum), axis=1)

    def entry(self, tree: QueueTree, queue: Queue, amounts: list[int], resources: tuple[str, ...]) -> Manifest | None:
        """The words for one quota; none for the one that stands for all: the supply limits it already."""
        if queue.name == tree.root:
            return None
        usable, least = amounts[: len(resources)], amounts[len(resources) :]
        minimum = {name: amount for name, amount in zip(resources, least, strict=True) if amount}
        may_use = dict(zip(resources, usable, strict=True))
        parent = tree.parent_of(queue.name)
        return {
            "parent": "" if parent == tree.root else parent,
            "weight": 1,
            "priority": 0,
            "reclaimable": True,
            "open": True,
            "deserved": minimum,
            "guarantee": {} if queue.lends else minimum,
            "capability": {name: may_use[name] for name in queue.capability},
            "maximum": dict(queue.capability),
            "fixed": {name: queue.deserved.get(name, 0) for name in queue.capability},
            "strict_fifo": self.strict_fifo,
            **placement_entry(queue),
        }


def placement_entry(queue: Queue | ClusterQueue) -> Manifest:
    """The words for whether its work is packed or spread; none where it does not say."""
    return {"placement": queue.placement} if queue.placement else {}
