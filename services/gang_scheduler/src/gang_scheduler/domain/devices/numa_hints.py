"""On which NUMA nodes a pod may be, as the kubelet's topology manager finds it.

For each thing that the pod asks for (cpu, memory, cards) those sets of NUMA nodes are preferred that are as small as they
could be on the empty node, and have enough free now. The pod may be where one preferred set of each thing overlaps; the
smaller the overlap, the better. Under ``single-numa-node`` only sets of one count.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from gang_scheduler.domain.devices.device_needs import NumaPolicy

Places = frozenset[int]
WIDEST = 8
"""Of larger machines only sets of one NUMA node and the set of all are looked at: there are too many in between."""


class Asked(NamedTuple):
    """One thing that the pod asks for: how much, and how much each NUMA node has, and has free."""

    amount: int
    have: Sequence[int]
    free: Sequence[int]

    def width(self) -> int:
        """How many NUMA nodes it takes where nothing is used; more than there are where they are too few."""
        total, most = 0, sorted(self.have, reverse=True)
        for width, amount in enumerate(most, 1):
            total += amount
            if total >= self.amount:
                return width
        return len(most) + 1

    def preferred(self) -> Iterator[Places]:
        """The smallest possible sets that have enough free."""
        width = self.width()
        if 1 < width < len(self.have) and len(self.have) > WIDEST:
            width = len(self.have)
        for places in combinations(range(len(self.have)), width):
            if sum(max(0, self.free[at]) for at in places) >= self.amount:
                yield frozenset(places)


def overlaps(asked: Iterable[Asked], policy: NumaPolicy) -> list[Places]:
    """Where the pod may be, in no order; the set of nobody's choice does not occur."""
    merged: dict[Places, None] | None = None
    for one in asked:
        if policy is NumaPolicy.SINGLE and one.width() > 1:
            return []
        mine = list(one.preferred())
        found = [places & own for places in merged for own in mine] if merged is not None else mine
        merged = dict.fromkeys(places for places in found if places)
    return list(merged or ())
