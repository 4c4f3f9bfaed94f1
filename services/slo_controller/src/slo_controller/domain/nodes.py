"""What the facts say of each node, read once: what was measured on it, and which pods hold something of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kube import Event, Key, Object, Store
from slo_controller.domain.lending.measured import Measured, measured
from slo_controller.domain.lending.tenants import Tenant, Tenants, may_move
from slo_controller.domain.names import METRIC, NODE, POD, TOPOLOGY
from slo_controller.domain.prediction.kills import Kill, kills_of
from slo_controller.domain.prediction.workloads import REPLICA_SET, Workload, workload_of


@dataclass(slots=True)
class Nodes:
    """Over the fold of the facts in ``store``."""

    store: Store
    _tenants: Tenants = field(default_factory=Tenants)
    _measured: dict[str, Measured | None] = field(default_factory=dict)
    _workloads: dict[str, dict[Key, tuple[Tenant, Workload, Object]]] = field(default_factory=dict)
    kills: dict[Key, tuple[Kill, ...]] = field(default_factory=dict)
    """By pod, of those whose containers were killed for want of memory."""

    def fold(self, run: Sequence[Event]) -> Iterable[str]:
        """Take in changes that are alike; the nodes of which something changed by that."""
        first = run[0]
        kind = first.key.kind
        if kind == POD:
            yield from self._fold_pods(run)
        elif kind == METRIC:
            for event in run:
                self._measured[event.key.name] = measured(event.new)
                if event.new is None:
                    del self._measured[event.key.name]
                yield event.key.name
        elif kind in (NODE, TOPOLOGY):
            yield from (event.key.name for event in run)
        elif kind == REPLICA_SET:
            self._workloads.clear()

    def _fold_pods(self, run: Sequence[Event]) -> Iterable[str]:
        first = run[0]
        if may_move(first.old, first.new):
            for event in run:
                for node in self._tenants.fold(event.old, event.new):
                    self._workloads.pop(node, None)
                    yield node
        if first.new is None or first.old is None or first.old.status is not first.new.status:
            killed = first.new is not None and bool(kills_of(first.new))
            for event in run if killed or self.kills else ():
                self.kills.pop(event.key, None)
                if killed:
                    self.kills[event.key] = kills_of(event.object)

    def names(self) -> list[str]:
        """Of all nodes, sorted."""
        return sorted(key.name for key in self.store.of_kind(NODE))

    def get(self, name: str) -> Object | None:
        """A node that is there to stay."""
        node = self.store.get(Key(NODE, "", name))
        return None if node is None or node.deleting else node

    def topology(self, name: str) -> Object | None:
        """What somebody says of the CPUs of a node."""
        return self.store.get(Key(TOPOLOGY, "", name))

    def seen(self, name: str) -> Measured | None:
        """What was measured of a node last."""
        return self._measured.get(name)

    def tenants(self, name: str) -> list[Tenant]:
        """The pods that hold something of a node."""
        return list(self._tenants.on.get(name, {}).values())

    def workloads(self, name: str) -> dict[Key, tuple[Tenant, Workload, Object]]:
        """The pods of a node, each with what made it."""
        known = self._workloads.get(name)
        if known is None:
            found = ((tenant, self.store.get(tenant.key)) for tenant in self.tenants(name))
            known = {one.key: (one, workload_of(pod, self.store), pod) for one, pod in found if pod is not None}
            self._workloads[name] = known
        return known
