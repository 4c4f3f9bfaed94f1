"""What all nodes use, pool by pool, as a plan changes it: the one book for every strategy that moves pods."""

from dataclasses import dataclass, field

from descheduler.domain.cluster.pod_traits import is_prod, node_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.load.pools import PoolNodes, pool_nodes
from descheduler.domain.load.usage import METRIC, NodeUsage, estimate, read_report, usage_of
from descheduler.domain.migration.successors import Successors
from descheduler.domain.policy.load_args import LoadArgs, NodePool
from kube import Key, Object
from kube.selectors import matches
from resources import Amounts


@dataclass(slots=True)
class NodeLoads:
    """Nodes with a report that is fresh; of the others nothing is known. A node is in the first pool that takes it."""

    view: ClusterView
    args: LoadArgs
    now: int
    successors: Successors = field(default_factory=Successors)
    pools: list[PoolNodes] = field(init=False)
    _of: dict[str, PoolNodes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        left, self.pools = self._known(), []
        for pool in self.args.pools:
            taken = {name: usage for name, usage in left.items() if _is_in(pool, usage.node)}
            left = {name: usage for name, usage in left.items() if name not in taken}
            if pool.has_thresholds and taken:
                nodes = pool_nodes(pool, taken)
                self.pools.append(nodes)
                self._of.update(dict.fromkeys(taken, nodes))
        for node, pod, uses in self.successors.awaited:
            if node in self._of:
                self._of[node].put(node, pod, uses)

    def heats(self, pod: Object, node: str) -> bool:
        """Whether ``node`` would be above a mark with the pod on it; of a node that nothing is known of it is not said."""
        nodes = self._of.get(node)
        if nodes is None:
            return False
        usage, limits, used = nodes.usages[node], nodes.limits[node], self._used(pod)
        if nodes.pool.high and _is_over(usage.used, used, limits.high):
            return True
        return is_prod(pod) and bool(nodes.pool.prod_high) and _is_over(usage.prod, used, limits.prod_high)

    def move(self, pod: Object, target: str) -> None:
        """The pod goes to ``target``; with none it is only gone from where it was."""
        used, origin = self._used(pod), self._of.get(node_of(pod))
        if origin is not None:
            origin.take(node_of(pod), pod)
        if target in self._of:
            self._of[target].put(target, pod, used)

    def measured(self, pod: Object) -> Amounts:
        """What it uses where it is; nothing where nobody knows."""
        origin = self._of.get(node_of(pod))
        return origin.usages[node_of(pod)].of(pod) if origin is not None else {}

    def _used(self, pod: Object) -> Amounts:
        """What it uses where it is; where nobody knows, what it is thought to."""
        origin = self._of.get(node_of(pod))
        known = origin.usages[node_of(pod)].pods.get(pod.key) if origin is not None else None
        return estimate(pod) if known is None else known

    def _known(self) -> dict[str, NodeUsage]:
        found: dict[str, NodeUsage] = {}
        parts_prod = any(pool.prod_high for pool in self.args.pools)
        if not any(pool.has_thresholds for pool in self.args.pools):
            return found
        for node in self.view.nodes():
            if self.args.selector is not None and not matches(self.args.selector, node.labels):
                continue
            report = read_report(self.view.store.get(Key(METRIC, "", node.name)))
            if report is not None and self.now - report.at < self.args.expiry_ms:
                found[node.name] = usage_of(
                    node, report, self.view.pods_on(node.name), parts_prod=parts_prod, inherited=self.successors.uses
                )
        return found


def _is_in(pool: NodePool, node: Object) -> bool:
    return pool.selector is None or matches(pool.selector, node.labels)


def _is_over(used: Amounts, more: Amounts, limits: Amounts) -> bool:
    return any(used.get(name, 0) + more.get(name, 0) > most for name, most in limits.items())
