"""Those who may have to give their quota back, and where they stand in the tree as seen from the one who wants it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from queue_manager.domain.cohorts.cohort_tree import Node
from queue_manager.domain.quotas.cluster_queue import FlavorResource, Quotas
from queue_manager.domain.workloads.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One who may have to go. ``top`` is where its path meets the preemptor's; None for one of the same queue."""

    workload: Workload
    node: Node
    usage: Quotas
    reason: str
    top: Node | None = None
    advantage: bool = False
    """Whether the preemptor's side of the tree has the quota for it, so that it reclaims what is its own."""
    leaving: bool = False
    """Whether it has to go anyway."""

    @property
    def order(self) -> tuple[bool, bool, bool, int]:
        """Those who go anyway first; then those against whom the preemptor's side is in the right, other queues, low priority."""
        return not self.leaving, not self.advantage, self.top is None, self.workload.shape.priority

    def remove(self) -> None:
        self.node.move(self.usage, -1)

    def put_back(self) -> None:
        self.node.move(self.usage, 1)


def below(node: Node, top: Node) -> Iterator[Node]:
    """The node and those above it, without ``top``."""
    for each in node.path():
        if each is top:
            return
        yield each


def child_of(top: Node, node: Node) -> Node:
    """The child of ``top`` in which ``node`` is."""
    return list(below(node, top))[-1]


def over_below(top: Node, without: Node, places: Iterable[FlavorResource]) -> Iterator[Node]:
    """The ClusterQueues below ``top`` that use more of any of the places than they have, as do all between; not in ``without``."""
    children = {child: None for place in places for child in top.over.get(place, ())}
    for child in children:
        if child is without:
            continue
        if child.is_queue:
            yield child
        else:
            yield from over_below(child, without, places)


def left_over(node: Node, usage: Quotas) -> tuple[Quotas, bool]:
    """What of ``usage`` counts above the node, and whether the node's own subtree has all of it."""
    has_all = all(node.usage.get(place, 0) + amount <= node.subtree.get(place, 0) for place, amount in usage.items())
    return node.beyond(usage), has_all
