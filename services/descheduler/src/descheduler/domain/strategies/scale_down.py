"""ScaleDownBinPack: which nodes can be emptied of some pods with the least of others left on them.

Nodes are ranked by how much others ask for there beside the pods that are meant. By default the rank is only written, as the cost
of deleting a pod: a workload that shrinks gives up those of nodes that are nearly free first. Else the pods are moved.
"""

from dataclasses import dataclass
from fractions import Fraction

from descheduler.domain.cluster.pod_traits import began_at, requests_of
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.strategy_args import CALCULATE, StrategyArgs
from kube import Key, Object

NAME = "ScaleDownBinPack"
RESOURCES = ("cpu", "memory")
LAST = (1 << 31) - 1
"""The cost of those that are not to go at all."""

Weights = dict[str, Fraction]
NO_WEIGHTS: Weights = {}


@dataclass(frozen=True, slots=True)
class _Candidate:
    node: Object
    pods: tuple[Object, ...]
    rank: tuple[Fraction, int, str]


def scale_down(args: StrategyArgs, plan: Plan) -> None:
    """Write the costs, or move pods of the first nodes in rank to the last, as many as may go."""
    ranked = sorted(_candidates(args, plan), key=lambda one: one.rank)
    if ranked:
        named = ", ".join(candidate.node.name for candidate in ranked)
        plan.notes.append(f"{NAME}: nodes in the order in which they would be emptied: {named}")
    if args.get("strategy", CALCULATE) == CALCULATE:
        for number, candidate in enumerate(ranked):
            for pod in candidate.pods:
                plan.costs[pod.key] = LAST if plan.arbiter.refusal(pod) else number
        return
    left = args.whole("maxPodsToEvict", len(plan.view.store.objects))
    order = {candidate.node.name: number for number, candidate in enumerate(ranked)}
    for number, candidate in enumerate(ranked):
        for pod in candidate.pods:
            if not left:
                return
            if pod.key in plan.moving or plan.stays(pod):
                continue
            fits = [node for node in plan.destinations(pod) if order.get(node.name, -1) > number]
            target = max(fits, key=lambda node: (order[node.name], node.name), default=None)
            if target is not None:
                why = f"{candidate.node.name} is number {number + 1} of {len(ranked)} to be emptied"
                plan.add(Move(pod, NAME, why, target.name))
                left -= 1


def _candidates(args: StrategyArgs, plan: Plan) -> list[_Candidate]:
    """The nodes that have pods that are meant; these the largest first, then the newest."""
    weights = _weights(args)
    found = []
    for node in plan.view.nodes():
        pods = plan.view.pods_on(node.name) if args.takes(node) else []
        meant = {pod.key: pod for pod in pods if not args.scope.obstacle(pod)}
        if not meant:
            continue
        whole = plan.fitting.whole(node)
        sizes = {pod.key: _size(pod, whole, weights) for pod in pods}
        targets = sum((sizes[key] for key in meant), Fraction(0))
        others = sum((size for key, size in sizes.items() if key not in meant), Fraction(0))
        share = others / targets if targets else others
        ordered = sorted(meant.values(), key=lambda pod: _first(pod, sizes))
        found.append(_Candidate(node, tuple(ordered), (share, len(ordered), node.name)))
    return found


def _weights(args: StrategyArgs) -> Weights:
    given = args.get("resourceWeights", NO_WEIGHTS)
    return {name: given.get(name, Fraction(1)) for name in args.words("resources") or RESOURCES}


def _size(pod: Object, whole: dict[str, int], weights: Weights) -> Fraction:
    asked = requests_of(pod)
    parts = (weight * Fraction(asked.get(name, 0), whole[name]) for name, weight in weights.items() if whole.get(name))
    return sum(parts, Fraction(0))


def _first(pod: Object, sizes: dict[Key, Fraction]) -> tuple[Fraction, int, Key]:
    return -sizes[pod.key], -began_at(pod), pod.key
