"""What each queue of a tree deserves: claims go up from the leaves, shares come down from the root.

Queues are rows, sorted by depth and then by parent, so that each depth is one slice in which siblings stand together;
resources are columns. One pass works on all queues of a depth and all resources at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from queue_manager.domain.quotas.claims import Claim, Matrix, Terms
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree
from queue_manager.domain.shares.max_min import HEAVIEST, LARGEST, Claimants, max_min, saturating_sums
from resources import Amounts


@dataclass(frozen=True, slots=True)
class Layout:
    """The tree as arrays: what changes only when a queue's spec does."""

    names: tuple[str, ...]
    rows: Mapping[str, int]
    resources: tuple[str, ...]
    depths: tuple[slice, ...]
    parent: NDArray[np.int64]
    weight: NDArray[np.int64]
    guarantee: Matrix
    given: Matrix
    is_given: NDArray[np.bool_]
    capability: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.names), len(self.resources)


def lay_out(tree: QueueTree, resources: Sequence[str]) -> Layout:
    """The arrays of ``tree`` for ``resources``."""
    by_depth = tree.by_depth()
    names = [name for depth in by_depth for name in depth]
    rows = {name: row for row, name in enumerate(names)}
    queues = [tree.queues[name] for name in names]
    bounds = np.cumsum([0, *map(len, by_depth)])
    return Layout(
        tuple(names),
        rows,
        tuple(resources),
        tuple(slice(int(start), int(end)) for start, end in pairwise(bounds)),
        np.array([rows.get(tree.parent_of(name), 0) for name in names], np.int64),
        _weights(queues),
        _matrix(queues, "guarantee", resources, 0),
        _matrix(queues, "deserved", resources, 0),
        np.array([[name in queue.deserved for name in resources] for queue in queues], bool).reshape(len(names), -1),
        _matrix(queues, "capability", resources, LARGEST),
    )


def _weights(queues: Sequence[Queue]) -> NDArray[np.int64]:
    """The weights as whole numbers: in thousandths where one of them is a fraction, divided by what they have in common."""
    milli = np.array([queue.weight_milli or 1000 * queue.weight for queue in queues], np.int64)
    fractions = bool((milli % 1000).any())
    whole = milli // (np.gcd.reduce(milli) if fractions else 1000)
    clipped: NDArray[np.int64] = np.clip(whole, 1, HEAVIEST)
    return clipped


def deserved(layout: Layout, request: Matrix, supply: Sequence[int], claim: Claim) -> Matrix:
    """What every queue deserves of ``supply`` when its own pods ask for ``request``.

    The root deserves the supply, or its capability if that is less.
    """
    result = np.zeros(layout.shape, np.int64)
    if not layout.resources:
        return result
    least, most = _claims(layout, request, claim)
    result[0] = np.minimum(np.array([min(amount, LARGEST) for amount in supply], np.int64), layout.capability[0])
    columns = len(layout.resources)
    for above, rows in pairwise(layout.depths):
        parents = above.stop - above.start
        group = groups_of(layout, above, rows, columns)
        claimants = Claimants(group, least[rows].T.ravel(), most[rows].T.ravel(), np.tile(layout.weight[rows], columns))
        shares = max_min(result[above].T.reshape(parents * columns), claimants)
        result[rows] = shares.reshape(columns, -1).T
    return result


def _claims(layout: Layout, request: Matrix, claim: Claim) -> tuple[Matrix, Matrix]:
    """The least and the most that each queue may deserve, from the leaves up."""
    promised, wanted = layout.guarantee.copy(), request.copy()
    least, most = np.zeros(layout.shape, np.int64), np.zeros(layout.shape, np.int64)
    for depth in range(len(layout.depths) - 1, -1, -1):
        rows = layout.depths[depth]
        terms = Terms(promised[rows], layout.given[rows], layout.is_given[rows], layout.capability[rows], wanted[rows])
        least[rows], most[rows] = claim(terms)
        if depth:
            above = layout.depths[depth - 1]
            hand_up(layout, least, above, rows, promised, np.maximum)
            hand_up(layout, most, above, rows, wanted, np.add)
    return least, most


def hand_up(layout: Layout, source: Matrix, above: slice, rows: slice, target: Matrix, join: np.ufunc) -> None:
    """Join the sums over the children ``rows`` into their parents ``above``."""
    columns = len(layout.resources)
    group = groups_of(layout, above, rows, columns)
    sums = saturating_sums(group, source[rows].T.ravel(), (above.stop - above.start) * columns)
    target[above] = np.minimum(join(target[above], sums.reshape(columns, -1).T), LARGEST)


def groups_of(layout: Layout, above: slice, rows: slice, columns: int) -> NDArray[np.int64]:
    """One group for every resource and parent, resource by resource."""
    siblings = layout.parent[rows] - above.start
    steps = np.arange(columns, dtype=np.int64)[:, None] * (above.stop - above.start)
    result: NDArray[np.int64] = (steps + siblings).ravel()
    return result


def _matrix(queues: Sequence[Queue], field: str, resources: Sequence[str], missing: int) -> Matrix:
    rows: list[Amounts] = [getattr(queue, field) for queue in queues]
    values = [[min(max(row.get(name, missing), 0), LARGEST) for name in resources] for row in rows]
    return np.array(values, np.int64).reshape(len(queues), len(resources))
