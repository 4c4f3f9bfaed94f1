"""FragmentationAware: nodes of which one resource is nearly all asked for while much of another lies idle.

How uneven a node is: the standard deviation of the shares that are asked for of its resources. From each that is too uneven goes
the one pod without which it is most even.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from descheduler.domain.cluster.pod_traits import requests_of
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.arguments import FULL
from descheduler.domain.policy.strategy_args import StrategyArgs
from kube import Object
from resources import Amounts, add, subtract

NAME = "FragmentationAware"
RESOURCES = ("cpu", "memory")
IMBALANCE, IMPROVEMENT = Fraction(1, 5), Fraction(1, 20)


def even_shares(args: StrategyArgs, plan: Plan) -> None:
    """One pod of a node in a round. Where it goes it leaves nothing as uneven as where it was."""
    names = args.words("resources") or RESOURCES
    most = int(args.get("imbalanceThreshold", IMBALANCE) * FULL)
    least = int(args.get("minImprovementThreshold", IMPROVEMENT) * FULL)
    for node in plan.view.nodes():
        if not args.takes(node) or (uneven := unevenness(plan, node, names)) <= most:
            continue
        gains = [
            (unevenness(plan, node, names, requests_of(pod)) - uneven, pod.key, pod)
            for pod in plan.view.pods_on(node.name)
            if pod.key not in plan.moving and not args.scope.obstacle(pod)
        ]
        for change, _, pod in sorted(gains, key=lambda one: one[:2]):
            if -change <= least or _moved(plan, pod, node, names, most, uneven):
                break


def _moved(plan: Plan, pod: Object, node: Object, names: Sequence[str], most: int, uneven: int) -> bool:
    if plan.stays(pod):
        return False
    asked = {name: -amount for name, amount in requests_of(pod).items()}
    after = {other.name: unevenness(plan, other, names, asked) for other in plan.destinations(pod)}
    target = min(after, key=lambda name: (after[name], name), default=None)
    if target is None or after[target] > most:
        plan.skipped[pod.key] = "no node would take it and stay even"
        return False
    why = (
        f"{', '.join(names)} of {node.name} are asked for unevenly, by {_percent(uneven)} where {_percent(most)} may be"
    )
    plan.add(Move(pod, NAME, why, target))
    return True


def unevenness(plan: Plan, node: Object, names: Sequence[str], without: Amounts | None = None) -> int:
    """The standard deviation of the shares, in thousandths of a percent, once the amounts of ``without`` have left."""
    whole, free = plan.fitting.whole(node), add(plan.fitting.free(node), without or {})
    taken = subtract(whole, free)
    shares = [taken.get(name, 0) * FULL // whole[name] for name in names if whole.get(name)]
    mean = Fraction(sum(shares), len(shares) or 1)
    return isqrt(int(sum((share - mean) ** 2 for share in shares) / (len(shares) or 1)))


def _percent(amount: int) -> str:
    return f"{amount / 1000:.1f} %"
