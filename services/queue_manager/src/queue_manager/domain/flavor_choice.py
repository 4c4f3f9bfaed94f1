"""The choice of a flavor for each resource of a workload: the first that fits, or the best of those that might.

All resources of one group come from one flavor. A flavor is tried when the workload may run on its nodes. What fits without
borrowing ends the search; whether borrowing, or sending others away, ends it too is the ClusterQueue's ``flavorFungibility``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum

from kube import Manifest
from kube.selectors import matches
from queue_manager.domain.cluster_queue import ClusterQueue, Flavor, Quotas, ResourceGroup
from queue_manager.domain.cohort_tree import Node
from queue_manager.domain.podset import PodSet
from queue_manager.domain.tolerations import tolerates
from queue_manager.domain.workload import Admission, Shape
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
    TOPOLOGY = "TopologyPlacementFailed"


class Mode(IntEnum):
    """How well a flavor suits, the worst first."""

    NO_FIT = 0
    PREEMPT = 1
    FIT = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the search: the flavors and how well they suit; for what does not fit, the reason and the sentence."""

    mode: Mode
    flavors: dict[str, str] = field(default_factory=dict)
    height: int = 0
    """How far up quota is borrowed: 0 for none."""
    reason: WaitReason = WaitReason.NO_FLAVOR
    message: str = ""

    def usage(self, shape: Shape) -> Quotas:
        """What a workload of ``shape`` takes, by flavor and resource."""
        return {(self.flavors[name], name): amount for name, amount in shape.requests if name in self.flavors}


Obstacle = Callable[[str, Sequence[PodSet]], str]
"""Why pod sets find no place in the topology of a flavor's nodes; "" when they do."""


def choose(shape: Shape, queue: ClusterQueue, node: Node, flavors: Mapping[str, Flavor], obstacle: Obstacle) -> Verdict:
    """The flavors for a workload of ``shape`` in ``queue``, whose quota ``node`` keeps."""
    for name, _ in shape.requests:
        if name not in queue.quota.covered and name != "pods":
            return Verdict(Mode.NO_FIT, message=f"resource {name} is not covered by ClusterQueue {queue.name}")
    chosen: dict[str, str] = {}
    mode, height, words, reason = Mode.FIT, 0, [], WaitReason.WAITING
    for group in queue.quota.groups:
        asked = [(name, amount) for name, amount in shape.requests if name in group.resources]
        if not asked:
            continue
        found = _choose_in(group, asked, shape, queue, node, flavors, obstacle)
        if found.mode < Mode.FIT:
            words.append(found.message)
            reason = found.reason
        if found.mode is Mode.NO_FIT:
            return found
        chosen |= found.flavors
        mode, height = min(mode, found.mode), max(height, found.height)
    return Verdict(mode, chosen, height, reason, "; ".join(words))


def admission_of(verdict: Verdict, shape: Shape, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> Admission:
    """What a workload of ``shape`` is given by ``verdict``."""
    used = dict.fromkeys(verdict.flavors.values())
    labels = {name: value for flavor in used for name, value in flavors[flavor].labels.items()}
    tolerations = tuple(item for flavor in used for item in flavors[flavor].tolerations)
    amounts = {name: amount for name, amount in shape.requests if name in verdict.flavors}
    levels = next((flavors[flavor].levels or () for flavor in used if flavors[flavor].levels), ())
    return Admission(queue.name, dict(verdict.flavors), amounts, labels, tolerations, levels)


def _choose_in(
    group: ResourceGroup,
    asked: list[tuple[str, int]],
    shape: Shape,
    queue: ClusterQueue,
    node: Node,
    flavors: Mapping[str, Flavor],
    obstacle: Obstacle,
) -> Verdict:
    best: Verdict | None = None
    words: list[str] = []
    for name in group.flavors:
        unsuitable = _unsuitable(name, group, flavors, shape)
        if unsuitable:
            words.append(unsuitable)
            continue
        found = _judge(name, asked, queue, node)
        if shape.podsets and found.mode is not Mode.NO_FIT:
            found = _with_place(found, obstacle(name, shape.podsets), queue)
        words += [found.message] if found.message else []
        if best is None or _suits(found, queue) > _suits(best, queue):
            best = found
        if _ends(found, queue):
            break
    if best is None:
        return Verdict(Mode.NO_FIT, message="; ".join(words) or f"ClusterQueue {queue.name} has no flavors")
    return Verdict(best.mode, best.flavors, best.height, best.reason, "; ".join(words))


def _judge(flavor: str, asked: list[tuple[str, int]], queue: ClusterQueue, node: Node) -> Verdict:
    """How the flavor suits; the resource that suits least decides."""
    mode, height, reason, words = Mode.FIT, 0, WaitReason.WAITING, []
    for name, amount in asked:
        place = (flavor, name)
        most = node.potential(place)
        if amount > most:
            text = f"insufficient quota for {name} in flavor {flavor}: needs {format_amount(name, amount)}, "
            text += f"ClusterQueue {queue.name} can have {format_amount(name, max(0, most))} at the most"
            return Verdict(Mode.NO_FIT, reason=WaitReason.TOO_LARGE, message=text)
        free = node.available(place)
        own_height = node.borrow_height(place, amount)
        height = max(height, own_height)
        if amount > free:
            more = format_amount(name, amount - free)
            text = f"insufficient unused quota for {name} in flavor {flavor}: needs {format_amount(name, amount)}, "
            words.append(
                text + f"ClusterQueue {queue.name} may take {format_amount(name, max(0, free))}, {more} more needed"
            )
            mode = min(mode, Mode.PREEMPT if preempts(queue) else Mode.NO_FIT)
    found = {name: flavor for name, _ in asked}
    return Verdict(mode, found, height, reason, "; ".join(words))


def preempts(queue: ClusterQueue) -> bool:
    """Whether the queue ever sends others away."""
    return queue.within_queue != "Never" or queue.reclaim != "Never"


def _suits(found: Verdict, queue: ClusterQueue) -> tuple[int, int]:
    if found.mode is Mode.NO_FIT or queue.prefer_borrowing:
        return found.mode, -found.height
    return Mode.FIT if found.mode is Mode.FIT else Mode.PREEMPT, -found.height


def _ends(found: Verdict, queue: ClusterQueue) -> bool:
    if found.mode is Mode.NO_FIT:
        return False
    if found.height and not queue.borrow_first:
        return False
    return found.mode is Mode.FIT or queue.preempt_first


def _with_place(found: Verdict, words: str, queue: ClusterQueue) -> Verdict:
    """The verdict of a flavor where there is quota, given what keeps the pods from a place in its topology."""
    if not words:
        return found
    mode = Mode.PREEMPT if preempts(queue) else Mode.NO_FIT
    told = "; ".join(item for item in (found.message, words) if item)
    return replace(found, mode=mode, reason=WaitReason.TOPOLOGY, message=told)


def _unsuitable(name: str, group: ResourceGroup, flavors: Mapping[str, Flavor], shape: Shape) -> str:
    """Why a workload cannot run on the nodes of the flavor; "" when it can."""
    flavor = flavors.get(name)
    if flavor is None:
        return f"flavor {name} does not exist"
    if flavor.topology and flavor.levels is None:
        return f"flavor {name} names the topology {flavor.topology}, which does not exist"
    if shape.podsets and not flavor.levels:
        return f"flavor {name} has no topology, which the pods ask for"
    missing = [level for podset in shape.podsets for level in podset.ask.levels if level not in (flavor.levels or ())]
    if missing:
        return f"the topology {flavor.topology} of flavor {name} has no level {missing[0]}, which the pods ask for"
    constraints = shape.constraints
    if not (flavor.taints or constraints.text):
        return ""
    selector, terms, tolerations = constraints.parts
    for taint in flavor.taints:
        if taint.get("effect") != "PreferNoSchedule" and not any(
            tolerates(item, taint) for item in (*tolerations, *flavor.tolerations)
        ):
            return f"flavor {name} has the taint {taint.get('key')}={taint.get('value', '')} that is not tolerated"
    allowed = {label for each in group.flavors if each in flavors for label in flavors[each].labels}
    wanted = {label: value for label, value in selector.items() if label in allowed}
    if any(flavor.labels.get(label) != value for label, value in wanted.items()) or not _meets(terms, flavor, allowed):
        return f"flavor {name} does not match the node selector or affinity"
    return ""


def _meets(terms: list[Manifest] | None, flavor: Flavor, allowed: set[str]) -> bool:
    """Whether one of the terms holds, of which only what is about labels that flavors have is looked at."""
    if terms is None:
        return True
    for term in terms:
        listed = [item for item in term.get("matchExpressions") or () if item.get("key") in allowed]
        known = [item for item in listed if item.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")]
        if matches({"matchExpressions": known}, flavor.labels):
            return True
    return False
