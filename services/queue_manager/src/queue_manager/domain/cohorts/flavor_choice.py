"""The choice of a flavor for each resource of a workload: the first that fits, or the best of those that might.

All resources of one group come from one flavor. A flavor is tried when the workload may run on its nodes. What fits without
borrowing ends the search; whether borrowing, or sending others away, ends it too is the ClusterQueue's ``flavorFungibility``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

from queue_manager.domain.cohorts.cohort_tree import Node
from queue_manager.domain.cohorts.flavor_match import unsuitable
from queue_manager.domain.quotas.cluster_queue import ClusterQueue, Flavor, FlavorResource, Quotas, ResourceGroup
from queue_manager.domain.quotas.grant import Admission, SetGrant
from queue_manager.domain.workloads.podset import PodSet
from queue_manager.domain.workloads.workload import Constraints, Shape
from resources.amounts import format_amount


class WaitReason(StrEnum):
    """Why a workload holds no quota; Kueue's words."""

    NO_FLAVOR = "NoMatchingFlavor"
    WAITING = "WaitingForQuota"
    TOO_LARGE = "ExceedsMaxQuota"
    VICTIMS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    EVALUATING = "PendingEvaluation"
    BEHIND_HEAD = "BehindHeadOfQueue"
    INACTIVE = "Deactivated"
    BACKING_OFF = "BackingOff"
    PODS_NOT_READY = "WaitingForPodsReady"
    TOPOLOGY = "TopologyPlacementFailed"
    CHECKS = "UnsatisfiedAdmissionChecks"


class Mode(IntEnum):
    """How well a flavor suits, the worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """Others would have to go, and nobody may be sent away."""
    PREEMPT = 2
    """Others of its own queue have to go."""
    RECLAIM = 3
    """Only others who borrow have to go."""
    FIT = 4


class Prospect(NamedTuple):
    """What would become of those who are in the way of an amount, and how far up quota would be borrowed then."""

    mode: Mode
    height: int


Oracle = Callable[[FlavorResource, int], Prospect | None]
"""Who would have to go for an amount; None where that is found out only in the end, as there is nothing to choose."""


def _somebody(place: FlavorResource, amount: int) -> Prospect | None:
    return None


Obstacle = Callable[[str, Sequence[PodSet]], str]
"""Why pod sets find no place in the topology of a flavor's nodes; "" when they do."""


def _nothing(flavor: str, podsets: Sequence[PodSet]) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Supplier:
    """Where quota may come from for the workloads of one ClusterQueue."""

    queue: ClusterQueue
    node: Node
    flavors: Mapping[str, Flavor]
    fair: bool = False
    oracle: Oracle = _somebody
    obstacle: Obstacle = _nothing


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the search: the flavors and how well they suit; for what does not fit, the reason and the sentence."""

    mode: Mode
    flavors: dict[str, str] = field(default_factory=dict)
    height: int = 0
    """How far up quota is borrowed: 0 for none."""
    reason: WaitReason = WaitReason.NO_FLAVOR
    message: str = ""

    sets: tuple[SetGrant, ...] = ()
    """What each part gets, where the workload is judged part by part."""

    def podsets(self, shape: Shape) -> tuple[PodSet, ...]:
        """The pod sets that need a place, as large as their part of the quota."""
        return shape.podsets_of([item.size for item in self.sets])

    def usage(self, shape: Shape) -> Quotas:
        """What a workload of ``shape`` takes, by flavor and resource."""
        if not self.sets:
            return {(self.flavors[name], name): amount for name, amount in shape.requests if name in self.flavors}
        found: Quotas = {}
        for item in self.sets:
            _charge(found, item)
        return found


def choose(shape: Shape, supplier: Supplier, counts: Sequence[int] = ()) -> Verdict:
    """The flavors for a workload of ``shape``; ``counts`` are the sizes of its parts, where they are not the full ones."""
    if not shape.sets:
        return _choose(shape.requests, shape.constraints, shape.podsets, supplier, {})
    taken: Quotas = {}
    grants: list[SetGrant] = []
    mode, height, words, reason = Mode.FIT, 0, [], WaitReason.WAITING
    counts = counts or [item.size for item in shape.sets]
    podsets = shape.podsets_of(counts)
    for item, count in zip(shape.sets, counts, strict=True):
        asked = shape.requests if len(shape.sets) == 1 and count == item.size else item.asked(count)
        found = _choose(asked, Constraints(item.constraints), podsets, supplier, taken)
        if found.mode < Mode.FIT:
            words.append(found.message if len(shape.sets) == 1 else f"pod set {item.name}: {found.message}")
            reason = found.reason
        mode, height = min(mode, found.mode), max(height, found.height)
        if mode is Mode.NO_FIT:
            return Verdict(mode, reason=reason, message="; ".join(words))
        amounts = tuple((name, amount) for name, amount in asked if name in found.flavors)
        grants.append(SetGrant(item.name, count, tuple(sorted(found.flavors.items())), amounts))
        _charge(taken, grants[-1])
    flavors = dict(grants[0].flavors) if grants else {}
    return Verdict(mode, flavors, height, reason, "; ".join(words), tuple(grants))


def _charge(taken: Quotas, item: SetGrant) -> None:
    flavors = dict(item.flavors)
    for name, amount in item.amounts:
        place = (flavors[name], name)
        taken[place] = taken.get(place, 0) + amount


def _choose(
    requests: tuple[tuple[str, int], ...],
    constraints: Constraints,
    podsets: tuple[PodSet, ...],
    supplier: Supplier,
    taken: Quotas,
) -> Verdict:
    """The flavors for pods of one kind, beside what is ``taken`` by other parts of the same workload."""
    quota = supplier.queue.quota
    for name, _ in requests:
        if name not in quota.covered and name != "pods":
            return Verdict(Mode.NO_FIT, message=f"resource {name} is not covered by ClusterQueue {supplier.queue.name}")
    chosen: dict[str, str] = {}
    mode, height, words, reason = Mode.FIT, 0, [], WaitReason.WAITING
    for group in quota.groups:
        asked = [(name, amount) for name, amount in requests if name in group.resources]
        if not asked:
            continue
        found = _choose_in(group, asked, constraints, podsets, supplier, taken)
        if found.mode < Mode.FIT:
            words.append(found.message)
            reason = found.reason
        if found.mode is Mode.NO_FIT:
            return found
        chosen |= found.flavors
        mode, height = min(mode, found.mode), max(height, found.height)
    return Verdict(mode, chosen, height, reason, "; ".join(words))


def admission_of(verdict: Verdict, shape: Shape, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> Admission:
    """What a workload of ``shape`` is given by ``verdict``. Its nodes are those of its first part's flavors."""
    used = dict.fromkeys(verdict.flavors.values())
    labels = {name: value for flavor in used for name, value in flavors[flavor].labels.items()}
    tolerations = tuple(item for flavor in used for item in flavors[flavor].tolerations)
    amounts = {name: amount for name, amount in shape.requests if name in verdict.flavors}
    levels = next((flavors[flavor].levels or () for flavor in used if flavors[flavor].levels), ())
    return Admission(queue.name, dict(verdict.flavors), amounts, labels, tolerations, levels, verdict.sets)


def _choose_in(
    group: ResourceGroup,
    asked: list[tuple[str, int]],
    constraints: Constraints,
    podsets: tuple[PodSet, ...],
    supplier: Supplier,
    taken: Quotas,
) -> Verdict:
    queue = supplier.queue
    best: Verdict | None = None
    words: list[str] = []
    for name in group.flavors:
        objection = unsuitable(name, group, supplier.flavors, constraints, podsets)
        if objection:
            words.append(objection)
            continue
        found = _judge(name, asked, supplier, taken)
        if podsets and found.mode is not Mode.NO_FIT:
            found = _with_place(found, supplier.obstacle(name, podsets), queue)
        words += [found.message] if found.message else []
        if best is None or _suits(found, queue) > _suits(best, queue):
            best = found
        if _ends(found, queue):
            break
    if best is None:
        return Verdict(Mode.NO_FIT, message="; ".join(words) or f"ClusterQueue {queue.name} has no flavors")
    return Verdict(best.mode, best.flavors, best.height, best.reason, "; ".join(words))


def _judge(flavor: str, asked: list[tuple[str, int]], supplier: Supplier, taken: Quotas) -> Verdict:
    """How the flavor suits; the resource that suits least decides."""
    queue, node = supplier.queue, supplier.node
    mode, height, words = Mode.FIT, 0, list[str]()
    for name, need in asked:
        place = (flavor, name)
        amount = need + taken.get(place, 0)
        most = node.potential(place)
        if amount > most:
            text = f"insufficient quota for {name} in flavor {flavor}: needs {format_amount(name, amount)}, "
            text += f"ClusterQueue {queue.name} can have {format_amount(name, max(0, most))} at the most"
            return Verdict(Mode.NO_FIT, reason=WaitReason.TOO_LARGE, message=text)
        free, borrowed = node.available(place), node.borrow_height(place, amount)
        if amount > free:
            words.append(_shortage(place, amount, free, queue.name))
            without = _without_room(place, amount, supplier)
            mode, borrowed = min(mode, without.mode), without.height
        height = max(height, borrowed)
    found = {name: flavor for name, _ in asked}
    return Verdict(mode, found, height, WaitReason.WAITING, "; ".join(words))


def _shortage(place: FlavorResource, amount: int, free: int, queue: str) -> str:
    flavor, name = place
    text = f"insufficient unused quota for {name} in flavor {flavor}: needs {format_amount(name, amount)}, "
    more = format_amount(name, amount - free)
    return text + f"ClusterQueue {queue} may take {format_amount(name, max(0, free))}, {more} more needed"


def _without_room(place: FlavorResource, amount: int, supplier: Supplier) -> Prospect:
    """What may be done where there is too little: nothing, unless the quota is the queue's own or it may reclaim it.

    A queue that never sends anybody away has no candidates, which still makes this flavor better than one without quota.
    """
    queue, height = supplier.queue, supplier.node.borrow_height(place, amount)
    own = queue.quota.nominal.get(place, 0) >= amount
    borrowing = queue.borrow_policy != "Never" or (supplier.fair and queue.reclaim != "Never")
    if not (own or borrowing or supplier.node.fits_below_root(place, amount)):
        return Prospect(Mode.NO_FIT, height)
    if not preempts(queue):
        return Prospect(Mode.NO_CANDIDATES, height)
    return supplier.oracle(place, amount) or Prospect(Mode.PREEMPT, height)


def _with_place(found: Verdict, words: str, queue: ClusterQueue) -> Verdict:
    """The verdict of a flavor where there is quota, given what keeps the pods from a place in its topology."""
    if not words:
        return found
    mode = Mode.PREEMPT if preempts(queue) else Mode.NO_FIT
    told = "; ".join(item for item in (found.message, words) if item)
    return replace(found, mode=mode, reason=WaitReason.TOPOLOGY, message=told)


def preempts(queue: ClusterQueue) -> bool:
    """Whether the queue ever sends others away."""
    return queue.within_queue != "Never" or queue.reclaim != "Never"


def _suits(found: Verdict, queue: ClusterQueue) -> tuple[int, int]:
    if found.mode <= Mode.NO_CANDIDATES or queue.prefer_borrowing:
        return found.mode, -found.height
    return Mode.FIT, -found.height


def _ends(found: Verdict, queue: ClusterQueue) -> bool:
    if found.mode <= Mode.NO_CANDIDATES:
        return False
    if found.height and not queue.borrow_first:
        return False
    return found.mode is Mode.FIT or queue.preempt_first
