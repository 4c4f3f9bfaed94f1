"""A plan that a person can read before it happens: as data, and for each node in words."""

from collections.abc import Iterator

from descheduler.domain.cluster.pod_traits import node_of
from descheduler.domain.load.pools import PoolNodes, part
from descheduler.domain.plan import Plan
from kube import Manifest
from resources.amounts import format_amount


def plan_manifest(plan: Plan, pools: list[PoolNodes], next_round: int | None) -> Manifest:
    """The moves with their reasons, pods that would go and stay, and how hot every node is."""
    return {
        "now": plan.now,
        "nextRound": next_round,
        "moves": [
            {
                "namespace": move.pod.namespace,
                "pod": move.pod.name,
                "from": node_of(move.pod),
                "to": move.target,
                "strategy": move.strategy,
                "message": move.message,
            }
            for move in plan.moves
        ],
        "stays": [
            {"namespace": key.namespace, "pod": key.name, "message": why} for key, why in sorted(plan.skipped.items())
        ],
        "nodes": [node for pool in pools for node in _nodes(pool)],
        "notes": plan.notes,
    }


def _nodes(pool: PoolNodes) -> Iterator[Manifest]:
    for name, usage in pool.usages.items():
        limits = pool.limits[name].high or pool.limits[name].prod_high
        yield {
            "node": name,
            "pool": pool.pool.name,
            "heat": str(pool.heat(name)),
            "used": {one: _used(pool, name, one) for one in limits if usage.capacity.get(one)},
        }


def _used(pool: PoolNodes, name: str, resource: str) -> str:
    usage = pool.usages[name]
    percent = part(usage.used, usage.capacity, resource) // 1000
    return f"{format_amount(resource, usage.used.get(resource, 0))} ({percent} %)"
