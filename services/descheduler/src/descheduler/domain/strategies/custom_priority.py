"""CustomPriority: off expensive nodes, to cheaper ones that have room.

Groups of nodes are given from expensive to cheap. In the mode DrainNode pods leave a node only if all that could leave it have
a place, so that none is emptied by half for nothing.
"""

from collections.abc import Sequence

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.cluster.pod_traits import importance
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.argument_forms import NodeGroup
from descheduler.domain.policy.strategy_args import BEST_EFFORT, DRAIN, StrategyArgs
from kube import Object
from kube.selectors import matches

NAME = "CustomPriority"
NO_GROUPS: tuple[NodeGroup, ...] = ()


def prefer_cheaper(args: StrategyArgs, plan: Plan) -> None:
    """From each group to the cheapest of those behind it that would take the pod."""
    groups = args.get("evictionOrder", NO_GROUPS)
    members = _members(groups, [node for node in plan.view.nodes() if args.takes(node)])
    for number, group in enumerate(groups):
        cheaper = [(groups[at], members[at]) for at in reversed(range(number + 1, len(groups)))]
        for node in members[number]:
            if group.keep and all(plan.fitting.asked(node, name) < least for name, least in group.keep.items()):
                continue
            pods = _movable(args, plan, node)
            if args.get("mode", BEST_EFFORT) == DRAIN and not _can_be_drained(plan, node, pods, cheaper):
                continue
            for pod in pods:
                _move(plan, pod, group, cheaper)


def _members(groups: Sequence[NodeGroup], nodes: Sequence[Object]) -> list[list[Object]]:
    """A node is in the first group that takes it."""
    found: list[list[Object]] = [[] for _ in groups]
    for node in nodes:
        for number, group in enumerate(groups):
            if group.selector is None or matches(group.selector, node.labels):
                found[number].append(node)
                break
    return found


def _movable(args: StrategyArgs, plan: Plan, node: Object) -> list[Object]:
    """Those that could leave at some time, the least important first."""
    pods = [
        pod
        for pod in plan.view.pods_on(node.name)
        if pod.key not in plan.moving and not args.scope.obstacle(pod) and not plan.arbiter.refusal(pod)
    ]
    return sorted(pods, key=lambda pod: (importance(pod), pod.key))


def _can_be_drained(
    plan: Plan, node: Object, pods: Sequence[Object], cheaper: Sequence[tuple[NodeGroup, list[Object]]]
) -> bool:
    """Whether every pod has a place, each counted before the next: limits in time only say when."""
    placed: list[Object] = []
    for pod in pods:
        target = _target(plan, pod, cheaper)
        if target is None:
            plan.notes.append(f"{node.name} is not drained: {pod.name} has no place on a cheaper node")
            break
        plan.fitting.move(pod, target.name)
        placed.append(pod)
    for pod in reversed(placed):
        plan.fitting.move(pod, node.name)
    return len(placed) == len(pods)


def _move(plan: Plan, pod: Object, group: NodeGroup, cheaper: Sequence[tuple[NodeGroup, list[Object]]]) -> None:
    target = None if not cheaper or plan.stays(pod) else _target(plan, pod, cheaper)
    if target is None:
        return
    plan.add(Move(pod, NAME, f"{target.name} is cheaper than the nodes of {group.name or 'its group'}", target.name))


def _target(plan: Plan, pod: Object, cheaper: Sequence[tuple[NodeGroup, list[Object]]]) -> Object | None:
    """The fullest node of the cheapest group that would take the pod."""
    for group, nodes in cheaper:
        fits = [node for node in plan.destinations(pod, nodes) if _accepts(plan, group, node)]
        found = min(fits, key=lambda node: (plan.room(node), node.name), default=None)
        if found is not None:
            return found
    return None


def _accepts(plan: Plan, group: NodeGroup, node: Object) -> bool:
    return takes_pods(node) and all(plan.fitting.asked(node, name) <= most for name, most in group.reject.items())
