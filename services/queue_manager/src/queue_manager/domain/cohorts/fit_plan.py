"""The flavors that workloads of one shape try first in one ClusterQueue, so that it is plain to see whether they fit there.

What a shape asks for, which flavors suit it and in which order they are tried does not change while the objects stay as they
are; only what is free does. A plan answers where the first suitable flavor of every resource group has enough and ends the
search: exactly what ``choose`` would find then. It says nothing in all other cases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from queue_manager.domain.cohorts.cohort_tree import Node
from queue_manager.domain.cohorts.flavor_choice import Mode, Verdict, WaitReason
from queue_manager.domain.cohorts.flavor_match import unsuitable
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Flavor, Quotas
from queue_manager.domain.quotas.grant import SetGrant
from queue_manager.domain.workloads.workload import Constraints, Shape


@dataclass(frozen=True, slots=True)
class FitPlan:
    """``usage`` is what a workload of the shape takes, by flavor and resource; ``borrows`` whether it may borrow there."""

    flavors: dict[str, str]
    usage: Quotas
    sets: tuple[SetGrant, ...]
    borrows: bool
    _verdicts: dict[int, Verdict] = field(default_factory=dict)

    def verdict(self, node: Node) -> Verdict | None:
        """The verdict on a workload that fits; None where there is too little, or other flavors have to be looked at."""
        height = 0
        for place, amount in self.usage.items():
            if amount > node.available(place):
                return None
            if node.borrows(place, amount):
                height = max(height, node.borrow_height(place, amount))
        if height and not self.borrows:
            return None
        found = self._verdicts.get(height)
        if found is None:
            found = self._verdicts[height] = Verdict(Mode.FIT, self.flavors, height, WaitReason.WAITING, "", self.sets)
        return found


def plan_fit(shape: Shape, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> FitPlan | None:
    """The plan for a shape of one part that asks for no place in a topology; None where there is none to be made."""
    if shape.podsets or len(shape.sets) > 1:
        return None
    constraints = Constraints(shape.sets[0].constraints) if shape.sets else shape.constraints
    if not queue.quota.covered.issuperset(name for name, _ in shape.requests if name != "pods"):
        return None
    chosen: dict[str, str] = {}
    for group in queue.quota.groups:
        asked = [name for name, _ in shape.requests if name in group.resources]
        if not asked:
            continue
        first = next((name for name in group.flavors if not unsuitable(name, group, flavors, constraints)), None)
        if first is None:
            return None
        chosen |= dict.fromkeys(asked, first)
    chosen = dict(sorted(chosen.items())) if shape.sets else chosen
    amounts = tuple((name, amount) for name, amount in shape.requests if name in chosen)
    usage = {(chosen[name], name): amount for name, amount in amounts}
    sets = tuple(SetGrant(part.name, part.size, tuple(sorted(chosen.items())), amounts) for part in shape.sets)
    return FitPlan(chosen, usage, sets, queue.borrow_first)


@dataclass(slots=True)
class FitPlans:
    """The plans that were made for the objects as they are."""

    _known: dict[tuple[str, Shape], FitPlan | None] = field(default_factory=dict)

    def of(self, shape: Shape, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> FitPlan | None:
        """The plan for a shape in a queue; see ``plan_fit``."""
        kind = (queue.name, shape)
        if kind not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[kind] = plan_fit(shape, queue, flavors)
        return self._known[kind]


_KEPT = 4096
