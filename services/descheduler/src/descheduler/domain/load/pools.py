"""Which nodes are hot and which are cool, by the thresholds of their pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from descheduler.domain.cluster.fitting import takes_pods
from descheduler.domain.load.usage import NodeUsage
from descheduler.domain.policy.arguments import FULL
from descheduler.domain.policy.load_args import NodePool
from kube import Object
from resources import Amounts


class Heat(StrEnum):
    """What a node is in its pool. ``PROD_HIGH``: not hot as a whole, while what is important uses too much of it."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    PROD_HIGH = "prod high"


@dataclass(frozen=True, slots=True)
class Limits:
    """Amounts of each resource of one node."""

    low: Amounts
    high: Amounts
    prod_low: Amounts
    prod_high: Amounts


@dataclass(slots=True)
class PoolNodes:
    """The nodes of one pool whose use is known, by name, each with its limits."""

    pool: NodePool
    usages: dict[str, NodeUsage]
    limits: dict[str, Limits]
    _loads: dict[str, int] = field(default_factory=dict)

    def put(self, name: str, pod: Object, used: Amounts) -> None:
        """A pod comes to a node, and uses so much."""
        self._loads.pop(name, None)
        self.usages[name].put(pod, used)

    def take(self, name: str, pod: Object) -> Amounts:
        """A pod leaves a node; what it used."""
        self._loads.pop(name, None)
        return self.usages[name].take(pod)

    def heat(self, name: str) -> Heat:
        """How hot a node is now."""
        usage, limits = self.usages[name], self.limits[name]
        if self.pool.high and over(usage.used, limits.high):
            return Heat.HIGH
        if self.pool.prod_high and over(usage.prod, limits.prod_high):
            return Heat.PROD_HIGH
        return Heat.LOW if self.is_low(name) else Heat.NORMAL

    def is_low(self, name: str) -> bool:
        """Whether it may take pods from nodes that are hot."""
        usage = self.usages[name]
        return bool(self.pool.low) and takes_pods(usage.node) and not over(usage.used, self.limits[name].low)

    def is_prod_low(self, name: str) -> bool:
        """Whether it may take important pods from nodes that have too many of them."""
        usage, limits = self.usages[name], self.limits[name]
        hot = bool(self.pool.high) and bool(over(usage.used, limits.high))
        return bool(self.pool.prod_low) and takes_pods(usage.node) and not hot and not over(usage.prod, limits.prod_low)

    def load(self, name: str) -> int:
        """How much of the node is used, by the weights of the resources, in thousandths of a percent."""
        found = self._loads.get(name)
        if found is None:
            usage, weights = self.usages[name], self.pool.weights
            total = sum(part(usage.used, usage.capacity, one) * weight for one, weight in weights.items())
            found = self._loads[name] = total // max(1, sum(weights.values()))
        return found


def over(used: Amounts, limit: Amounts) -> list[str]:
    """The resources of which more is used than the limit."""
    return [name for name, most in limit.items() if used.get(name, 0) > most]


def part(used: Amounts, capacity: Amounts, name: str) -> int:
    """How much of one resource is used, in thousandths of a percent."""
    whole = capacity.get(name, 0)
    return used.get(name, 0) * FULL // whole if whole else 0


def pool_nodes(pool: NodePool, usages: Mapping[str, NodeUsage]) -> PoolNodes:
    """The nodes of a pool with what their thresholds come to; with deviation these lie about the mean use of all of them."""
    nodes = [usages[name] for name in sorted(usages)]
    sides = {"low": pool.low, "high": pool.high, "prod_low": pool.prod_low, "prod_high": pool.prod_high}
    percents = {side: _percents(pool, side, given, nodes) for side, given in sides.items()}
    limits = {usage.name: Limits(**{side: _amounts(usage, percents[side]) for side in sides}) for usage in nodes}
    return PoolNodes(pool, {usage.name: usage for usage in nodes}, limits)


def _percents(pool: NodePool, side: str, given: Mapping[str, int], nodes: Sequence[NodeUsage]) -> Mapping[str, int]:
    if not pool.deviation or not nodes:
        return given
    found: dict[str, int] = {}
    for name, distance in given.items():
        parts = [part(node.prod if side.startswith("prod") else node.used, node.capacity, name) for node in nodes]
        mean = sum(parts) // len(parts)
        # A distance of nothing bounds nothing: all of the node may be used.
        wanted = FULL if not distance else mean - distance if side.endswith("low") else mean + distance
        found[name] = min(FULL, max(0, wanted))
    return found


def _amounts(usage: NodeUsage, percents: Mapping[str, int]) -> Amounts:
    return {name: usage.capacity.get(name, 0) * percent // FULL for name, percent in percents.items()}
