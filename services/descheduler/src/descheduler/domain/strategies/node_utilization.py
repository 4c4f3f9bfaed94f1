"""LowNodeUtilization and HighNodeUtilization: by what pods ask for of their nodes, where LowNodeLoad goes by what they use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.cluster.pod_traits import importance, requests_of
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.arguments import FULL
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Object

LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
Shares = Mapping[str, int]


def spread_requests(args: StrategyArgs, plan: Plan) -> None:
    """LowNodeUtilization: from nodes of which more is asked for than the target to those that are asked for little."""
    low, high = _marks(args, plan)
    if not low or not high:
        return
    nodes = _Nodes(plan, [node for node in plan.view.nodes() if args.takes(node)])
    idle = [node for node in nodes.all if takes_pods(node) and not nodes.above(node, low)]
    if len(idle) <= args.whole("numberOfNodes", 0) or len(idle) == len(nodes.all):
        return
    limit = args.get("evictionLimits", len(plan.view.store.objects))
    for source in sorted(nodes.all, key=lambda node: (-nodes.load(node, high), node.name)):
        left = limit
        for pod in _movable(args, plan, source):
            above = nodes.above(source, high)
            if not above or not left:
                break
            if any(requests_of(pod).get(name) for name in above) and not plan.stays(pod):
                fits = [node for node in plan.destinations(pod, idle) if not nodes.above(node, high, pod)]
                target = min(fits, key=lambda node: (nodes.load(node, high), node.name), default=None)
                why = f"{_told(nodes, source, above[0])} are asked for, and {high[above[0]] / 1000:g} % may be"
                left -= _moved(plan, pod, LOW, why, target)


def gather_requests(args: StrategyArgs, plan: Plan) -> None:
    """HighNodeUtilization: off nodes of which little is asked for, to the fullest of the others: such nodes can then be given back."""
    most: Shares = args.get("thresholds", {})
    nodes = _Nodes(plan, [node for node in plan.view.nodes() if args.takes(node)])
    idle = [node for node in nodes.all if not nodes.above(node, most)] if most else []
    if len(idle) <= args.whole("numberOfNodes", 0) or len(idle) == len(nodes.all):
        return
    names = {node.name for node in idle}
    busy = [node for node in nodes.all if node.name not in names]
    for source in sorted(idle, key=lambda node: (nodes.load(node, most), node.name)):
        for pod in _movable(args, plan, source):
            if not plan.stays(pod):
                target = min(
                    plan.destinations(pod, busy), key=lambda node: (-nodes.load(node, most), node.name), default=None
                )
                why = f"only {_told(nodes, source, min(most))} are asked for, and others have room"
                _moved(plan, pod, HIGH, why, target)


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Shares of nodes as the plan has them, in thousandths of a percent."""

    plan: Plan
    all: Sequence[Object]

    def share(self, node: Object, name: str) -> int:
        return self.plan.fitting.asked(node, name)

    def above(self, node: Object, most: Shares, pod: Object | None = None) -> list[str]:
        """The resources of which more is asked for, with ``pod`` on it, than ``most``."""
        more = requests_of(pod) if pod is not None else {}
        return [name for name, limit in most.items() if self.share(node, name) + self._part(node, name, more) > limit]

    def load(self, node: Object, names: Shares) -> int:
        return sum(self.share(node, name) for name in names)

    def _part(self, node: Object, name: str, more: Mapping[str, int]) -> int:
        whole = self.plan.fitting.whole(node).get(name, 0)
        return more.get(name, 0) * FULL // whole if whole else 0


def _marks(args: StrategyArgs, plan: Plan) -> tuple[Shares, Shares]:
    """The thresholds; with deviation they lie about the mean of the nodes that are looked at."""
    low: Shares = args.get("thresholds", {})
    high: Shares = args.get("targetThresholds", {})
    nodes = [node for node in plan.view.nodes() if args.takes(node)]
    if not args.truth("useDeviationThresholds") or not nodes:
        return low, high
    mean = {name: sum(plan.fitting.asked(node, name) for node in nodes) // len(nodes) for name in {*low, *high}}
    return (
        {name: max(0, mean[name] - distance) for name, distance in low.items()},
        {name: min(FULL, mean[name] + distance) for name, distance in high.items()},
    )


def _movable(args: StrategyArgs, plan: Plan, node: Object) -> Iterator[Object]:
    """The pods of a node that are looked at, the least important first."""
    pods = [pod for pod in plan.view.pods_on(node.name) if pod.key not in plan.moving and not args.scope.obstacle(pod)]
    yield from sorted(pods, key=lambda pod: (importance(pod), pod.key))


def _moved(plan: Plan, pod: Object, strategy: str, why: str, target: Object | None) -> bool:
    if target is None:
        plan.skipped[pod.key] = "none of the nodes that may take it has room"
        return False
    plan.add(Move(pod, strategy, why, target.name))
    return True


def _told(nodes: _Nodes, node: Object, name: str) -> str:
    return f"{nodes.share(node, name) // 1000} % of the {name} of {node.name}"
