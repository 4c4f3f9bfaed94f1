"""LowNodeLoad: pods leave nodes that have been hot for long, for nodes that are cool, until the hot ones are below their mark.

Koordinator's plug-in, with its known defects mended: a pool takes only nodes that no pool before it has, what a move takes of
the room of a cool node is spent once, and a pod goes only where it fits and where it makes no node hot.
"""

from dataclasses import dataclass

from descheduler.domain.cluster.pod_traits import is_prod, node_of
from descheduler.domain.load.anomaly import AnomalyRecords
from descheduler.domain.load.node_loads import NodeLoads
from descheduler.domain.load.pools import Heat, PoolNodes, over, part
from descheduler.domain.load.victim_order import rank
from descheduler.domain.move import Move
from descheduler.domain.plan import Plan
from descheduler.domain.policy.load_args import LoadArgs, NodePool
from kube import Key, Object
from kube.words import counted, verb
from resources import Amounts
from resources.amounts import format_amount

NAME = "LowNodeLoad"


@dataclass(slots=True)
class LowNodeLoad:
    """One round of it over ``plan``. ``records`` are changed, unless it is only a ``rehearsal``."""

    args: LoadArgs
    loads: NodeLoads
    plan: Plan
    records: AnomalyRecords
    rehearsal: bool = False

    def run(self) -> None:
        """Add the moves of every pool to the plan."""
        for nodes in self.loads.pools:
            self._balance(nodes)
        if not self.rehearsal:
            self.records.forget_before(self.plan.now - max(self.args.cache_ms, self.plan.policy.interval_ms))

    def _balance(self, nodes: PoolNodes) -> None:
        pool = nodes.pool
        heats = {name: nodes.heat(name) for name in nodes.usages}
        hot = [name for name, heat in heats.items() if heat in (Heat.HIGH, Heat.PROD_HIGH)]
        sources = [name for name in heats if self._is_long(pool, name, name in hot)]
        low = [name for name in heats if nodes.is_low(name)]
        prod_low = [name for name in heats if nodes.is_prod_low(name)]
        self._note(nodes, hot, sources, low)
        for heat, cool in ((Heat.HIGH, low), (Heat.PROD_HIGH, prod_low)):
            if len(cool) <= self.args.spare_nodes or len(cool) == len(heats):
                continue
            ranked = sorted(
                (name for name in sources if heats[name] is heat), key=lambda name: (-nodes.load(name), name)
            )
            for name in ranked:
                if self._relieve(nodes, name, heat, [other for other in cool if other != name]):
                    self._relieved(pool, name)

    def _is_long(self, pool: NodePool, name: str, hot: bool) -> bool:
        records = AnomalyRecords(dict(self.records.records)) if self.rehearsal else self.records
        return records.mark(f"{pool.name}/{name}", hot, pool.anomaly, self.plan.now)

    def _relieved(self, pool: NodePool, name: str) -> None:
        plans_only = self.rehearsal or self.args.dry_run or self.plan.policy.only_plans
        if not plans_only:
            self.records.reset(f"{pool.name}/{name}")

    def _relieve(self, nodes: PoolNodes, name: str, heat: Heat, cool: list[str]) -> bool:
        """Move pods off one node while it is above its mark; whether any moves."""
        movable, moved = self._movable(nodes, name, heat), False
        while excess := _excess(nodes, name, heat):
            found = self._next_move(nodes, name, heat, excess, cool, movable)
            if found is None:
                break
            self.plan.add(found)
            moved = True
        return moved

    def _next_move(
        self, nodes: PoolNodes, name: str, heat: Heat, excess: Amounts, cool: list[str], movable: dict[Key, Object]
    ) -> Move | None:
        """The first in order, of those that use anything of what is used too much, that may go and has a place.

        Who may not go is not asked again in this round: ``movable`` are those that are left.
        """
        usage = nodes.usages[name]
        useful = [pod for pod in movable.values() if any(usage.of(pod).get(one, 0) > 0 for one in excess)]
        for pod in sorted(useful, key=lambda pod: rank(pod, usage.of(pod), excess, nodes.pool.weights)):
            del movable[pod.key]
            if self.args.scope.obstacle(pod) or self.plan.stays(pod):
                continue
            target = self._target(nodes, pod, name, cool)
            if target is not None:
                return Move(pod, NAME, _why(nodes, name, heat, excess), target)
            self.plan.skipped[pod.key] = "no cool node would take it and stay below its mark"
        return None

    def _movable(self, nodes: PoolNodes, name: str, heat: Heat) -> dict[Key, Object]:
        there = (self.plan.view.store.get(key) for key in nodes.usages[name].pods)
        return {
            pod.key: pod
            for pod in there
            if pod is not None and node_of(pod) == name and (heat is Heat.HIGH or is_prod(pod))
        }

    def _target(self, nodes: PoolNodes, pod: Object, origin: str, cool: list[str]) -> str | None:
        """The coolest node that would take the pod and be no hotter than it may; None where there is none."""
        for name in sorted(cool, key=lambda name: (nodes.load(name), name)):
            if not self.loads.heats(pod, name) and not (
                self.args.node_fit and self.plan.fitting.obstacle(pod, nodes.usages[name].node)
            ):
                return name
        return None

    def _note(self, nodes: PoolNodes, hot: list[str], sources: list[str], low: list[str]) -> None:
        if hot:
            new = len(hot) - len(sources)
            since = f", {counted(new, 'of them', 'of them')} not for long" if new else ""
            self.plan.notes.append(
                f"pool {nodes.pool.name}: {counted(len(hot), 'node')} {verb(len(hot))} hot{since}; "
                f"{counted(len(low), 'node')} of {len(nodes.usages)} {verb(len(low))} cool"
            )


def _excess(nodes: PoolNodes, name: str, heat: Heat) -> Amounts:
    """What the node uses above its mark, of resources of which it does."""
    usage, limits = nodes.usages[name], nodes.limits[name]
    used, limit = (usage.used, limits.high) if heat is Heat.HIGH else (usage.prod, limits.prod_high)
    return {resource: used.get(resource, 0) - limit[resource] for resource in over(used, limit)}


def _why(nodes: PoolNodes, name: str, heat: Heat, excess: Amounts) -> str:
    usage, limits = nodes.usages[name], nodes.limits[name]
    used, limit = (usage.used, limits.high) if heat is Heat.HIGH else (usage.prod, limits.prod_high)
    told = [
        f"{format_amount(one, used[one])} of {format_amount(one, usage.capacity.get(one, 0))} {one} "
        f"({part(used, usage.capacity, one) // 1000} %) {'are used' if heat is Heat.HIGH else 'are used by important pods'}, "
        f"and {format_amount(one, limit[one])} may be"
        for one in excess
    ]
    return f"{name} is hot: {'; '.join(told)}"
