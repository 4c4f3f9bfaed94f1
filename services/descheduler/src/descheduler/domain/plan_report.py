"""A plan that a person can read before it happens: as data, and for each node in words."""

from collections.abc import Iterator, Sequence

from descheduler.domain.cluster.pod_traits import node_of
from descheduler.domain.load.pools import PoolNodes, part
from descheduler.domain.plan import Plan
from kube import Manifest
from resources.amounts import format_amount, format_amounts


def plan_manifest(
    plan: Plan, before: Sequence[PoolNodes], after: Sequence[PoolNodes], next_round: int | None, idle: str
) -> Manifest:
    """The moves with their reasons, pods that would go and stay, and how hot every node is, now and then. Times are in ms.

    ``idle`` says why nothing is done where there is no next round.
    """
    return {
        "now": plan.now,
        "nextRound": next_round,
        "idle": "" if next_round else idle,
        "moves": [
            {
                "namespace": move.pod.namespace,
                "pod": move.pod.name,
                "from": node_of(move.pod),
                "to": move.target,
                "strategy": move.strategy,
                "message": move.message,
                "uses": format_amounts(move.uses),
            }
            for move in plan.moves
        ],
        "stays": [
            {"namespace": key.namespace, "pod": key.name, "message": why} for key, why in sorted(plan.skipped.items())
        ],
        "nodes": [node for was, will in zip(before, after, strict=True) for node in _nodes(was, will)],
        "notes": plan.notes,
    }


def _nodes(was: PoolNodes, will: PoolNodes) -> Iterator[Manifest]:
    for name, usage in was.usages.items():
        resources = [one for one in was.limits[name].high or was.limits[name].prod_high if usage.capacity.get(one)]
        yield {
            "node": name,
            "pool": was.pool.name,
            "heat": str(was.heat(name)),
            "used": {one: _used(was, name, one) for one in resources},
            "then": {one: _used(will, name, one) for one in resources},
        }


def _used(pool: PoolNodes, name: str, resource: str) -> str:
    usage = pool.usages[name]
    percent = part(usage.used, usage.capacity, resource) // 1000
    return f"{format_amount(resource, usage.used.get(resource, 0))} ({percent} %)"
