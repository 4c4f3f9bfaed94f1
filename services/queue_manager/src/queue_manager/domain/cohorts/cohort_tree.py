"""Quota in a tree of cohorts: what each ClusterQueue uses, what it may still take, and what of that it borrows.

A queue's own quota is used first; what it keeps from lending (its *local* quota) is nobody else's business, and what it uses
beyond that counts at its cohort, and so on upwards. All amounts are exact; limits that are not given do not bind.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Cohort, FlavorResource, Quotas, QuotaSpec

UNLIMITED = 1 << 62
PER_MILLE = 1_000_000_000
"""Shares are counted in billionths of a thousandth."""


@dataclass(slots=True, eq=False)
class Node:
    """A ClusterQueue or a cohort. ``subtree`` is the quota of it and all below that reaches this level."""

    name: str
    quota: QuotaSpec
    is_queue: bool
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    subtree: Quotas = field(default_factory=dict)
    usage: Quotas = field(default_factory=dict)
    height: int = 0
    over: dict[FlavorResource, dict["Node", None]] = field(default_factory=dict)
    """The children that use more than their subtree has."""
    kept: Quotas = field(default_factory=dict)
    """What of its subtree is never lent, where a limit says so."""
    _potential: Quotas = field(default_factory=dict)

    @property
    def root(self) -> "Node":
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def path(self) -> Iterator["Node"]:
        """The node and those above it."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def local(self, place: FlavorResource) -> int:
        """What is never lent."""
        return self.kept.get(place, 0)

    def available(self, place: FlavorResource) -> int:
        """What may be taken in addition to what is used; below 0 where more is used than there is."""
        subtree, usage = self.subtree.get(place, 0), self.usage.get(place, 0)
        if self.parent is None:
            return subtree - usage
        limit = self.quota.borrowing.get(place, UNLIMITED)
        if place not in self.kept:
            return min(self.parent.available(place), subtree - max(0, usage) + limit) - min(0, usage)
        local = self.kept[place]
        from_above = subtree - local - max(0, usage - local) + limit
        return max(0, local - usage) + min(self.parent.available(place), from_above)

    def potential(self, place: FlavorResource) -> int:
        """What could be taken if nobody used anything."""
        known = self._potential.get(place)
        if known is None:
            subtree = self.subtree.get(place, 0)
            known = subtree
            if self.parent is not None:
                local = self.local(place)
                limit = self.quota.borrowing.get(place, UNLIMITED)
                known = local + min(self.parent.potential(place), subtree - local + limit)
            self._potential[place] = known
        return known

    def borrows(self, place: FlavorResource, amount: int = 0) -> bool:
        """Whether it uses more than its subtree has, with ``amount`` in addition."""
        return self.parent is not None and self.usage.get(place, 0) + amount > self.subtree.get(place, 0)

    @property
    def any_borrows(self) -> bool:
        """Whether it, or a cohort that it is in, uses more of anything than its subtree has."""
        return any(node.borrows(place) for node in self.path() for place in node.usage)

    def borrowed(self, place: FlavorResource) -> int:
        """How much of what it uses is others'."""
        return 0 if self.parent is None else max(0, self.usage.get(place, 0) - self.subtree.get(place, 0))

    def borrow_height(self, place: FlavorResource, amount: int) -> int:
        """How far up one has to go for ``amount``: the height of the lowest subtree that has it; 0 for its own quota."""
        if not self.borrows(place, amount):
            return 0
        left = amount - max(0, self.local(place) - self.usage.get(place, 0))
        node = self
        for node in self.path():
            if node is self:
                continue
            if not node.borrows(place, left):
                return node.height
            left -= max(0, node.local(place) - node.usage.get(place, 0))
        return node.height

    def fits_below_root(self, place: FlavorResource, amount: int) -> bool:
        """Whether a subtree that is not the whole tree has ``amount`` as its own, so that it may be reclaimed from the rest."""
        if not self.borrows(place, amount):
            return self.parent is not None
        left = amount - max(0, self.local(place) - self.usage.get(place, 0))
        for node in self.path():
            if node is self:
                continue
            if not node.borrows(place, left):
                return node.parent is not None
            left -= max(0, node.local(place) - node.usage.get(place, 0))
        return False

    def take(self, place: FlavorResource, amount: int) -> None:
        """``amount`` more is used."""
        usage = self.usage.get(place, 0)
        self._use(place, usage + amount)
        beyond = amount - max(0, self.kept[place] - usage) if place in self.kept else amount
        if self.parent is not None and beyond > 0:
            self.parent.take(place, beyond)

    def give(self, place: FlavorResource, amount: int) -> None:
        """``amount`` less is used."""
        usage = self.usage.get(place, 0)
        above = max(0, usage - self.kept.get(place, 0))
        self._use(place, usage - amount)
        if self.parent is not None and above > 0:
            self.parent.give(place, min(amount, above))

    def _use(self, place: FlavorResource, amount: int) -> None:
        before = self.usage.get(place, 0)
        self.usage[place] = amount
        if self.parent is None:
            return
        quota = self.subtree.get(place, 0)
        if amount > quota >= before:
            self.parent.over.setdefault(place, {})[self] = None
        elif before > quota >= amount:
            self.parent.over[place].pop(self, None)

    def move(self, usage: Quotas, sign: int) -> None:
        """``usage`` more (``sign`` 1) or less (-1) is used."""
        for place, amount in usage.items():
            (self.take if sign > 0 else self.give)(place, amount)

    def share(self, extra: Quotas | None = None) -> int:
        """The dominant resource share: the largest part of what its parent could give that is borrowed, by weight.

        ``extra`` counts as if it were used, too.
        """
        if self.parent is None:
            return 0
        extra = extra or {}
        borrowed: dict[str, int] = {}
        for place in {**self.usage, **extra}:
            over = self.usage.get(place, 0) + extra.get(place, 0) - self.subtree.get(place, 0)
            if over > 0:
                borrowed[place[1]] = borrowed.get(place[1], 0) + over
        if not borrowed:
            return 0
        lendable = dict.fromkeys(borrowed, 0)
        # Of any flavor of the tree: what comes from further up counts as what the parent could give.
        for place in self.root.known():
            if place[1] in lendable:
                lendable[place[1]] += self.parent.potential(place)
        share = max(over * 1000 * PER_MILLE // max(1, lendable[name]) for name, over in borrowed.items())
        weight = self.quota.weight_milli
        return share * 1000 // weight if weight else UNLIMITED + share

    def beyond(self, extra: Quotas) -> Quotas:
        """What of ``extra`` would count at the parent."""
        found = {p: amount - max(0, self.local(p) - self.usage.get(p, 0)) for p, amount in extra.items()}
        return {place: amount for place, amount in found.items() if amount > 0}

    def known(self) -> Iterable[FlavorResource]:
        """The flavors and resources of which there is any quota at this node."""
        return self.subtree


@dataclass(slots=True)
class CohortTree:
    """The trees of all cohorts. A cohort that is only named exists, without quota of its own."""

    queues: dict[str, Node] = field(default_factory=dict)
    cohorts: dict[str, Node] = field(default_factory=dict)


def grow(queues: Mapping[str, ClusterQueue], cohorts: Mapping[str, Cohort]) -> CohortTree:
    """The trees of these objects, with nothing used. A cohort that is its own ancestor becomes a root."""
    named = {queue.cohort for queue in queues.values()} | {cohort.parent for cohort in cohorts.values()}
    names = sorted((named | cohorts.keys()) - {""})
    nodes = {name: Node(name, cohorts[name].quota if name in cohorts else QuotaSpec(), False) for name in names}
    for name in names:
        parent = cohorts[name].parent if name in cohorts else ""
        if parent and all(above is not nodes[name] for above in nodes[parent].path()):
            _hang(nodes[name], nodes[parent])
    tree = CohortTree(cohorts=nodes)
    for name, queue in sorted(queues.items()):
        node = tree.queues[name] = Node(name, queue.quota, True)
        if queue.cohort:
            _hang(node, nodes[queue.cohort])
    for node in [*tree.queues.values(), *nodes.values()]:
        if node.parent is None:
            _sum_up(node)
    return tree


def touched_trees(tree: CohortTree, touched: Mapping[str, bool]) -> Iterator[tuple[list[str], bool]]:
    """The ClusterQueues of every tree in which one was touched, by name, and whether any touch says True."""
    roots: dict[Node, bool] = {}
    for name, flag in touched.items():
        node = tree.queues.get(name)
        if node is not None:
            roots[node.root] = flag or roots.get(node.root, False)
    for root, flag in roots.items():
        below = [root]
        for node in below:
            below.extend(node.children)
        yield sorted(node.name for node in below if node.is_queue), flag


def _hang(node: Node, parent: Node) -> None:
    node.parent = parent
    parent.children.append(node)


def _sum_up(node: Node) -> None:
    node.subtree = dict(node.quota.nominal)
    for child in node.children:
        _sum_up(child)
        node.height = max(node.height, child.height + 1)
        for place, amount in child.subtree.items():
            node.subtree[place] = node.subtree.get(place, 0) + amount - child.local(place)
    for place, limit in node.quota.lending.items():
        node.kept[place] = max(0, node.subtree.get(place, 0) - limit)


def copy_tree(root: Node) -> dict[str, Node]:
    """The ClusterQueues of a copy of the tree below ``root``, by name: something can be tried there."""
    queues: dict[str, Node] = {}
    _copy(root, None, queues)
    return queues


def _copy(node: Node, parent: Node | None, queues: dict[str, Node]) -> Node:
    made = replace(node, parent=parent, children=[], usage=dict(node.usage), over={})
    made.children = [_copy(child, made, queues) for child in node.children]
    copies = dict(zip(node.children, made.children, strict=True))
    made.over = {place: {copies[child]: None for child in over} for place, over in node.over.items()}
    if node.is_queue:
        queues[node.name] = made
    return made
