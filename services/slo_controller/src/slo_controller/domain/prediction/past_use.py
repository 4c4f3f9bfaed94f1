"""What was used, by workload and by node: trained once a minute, remembered with the decisions that rest on it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kube import Key, Manifest, Object
from kube.pods import container_request
from resources import Amounts, QuantityError
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.tenants import PROD, Tenant
from slo_controller.domain.lending.terms import COUNTED, NOTHING, Use
from slo_controller.domain.prediction.container_use import DAY_MS, ContainerUse
from slo_controller.domain.prediction.histogram import HOUR_MS
from slo_controller.domain.prediction.kills import Kill
from slo_controller.domain.prediction.node_use import NodeUse
from slo_controller.domain.prediction.workloads import Workload

SKEW_MS = 15 * 60_000
"""How far ahead the clock of a node may be."""
COLD_MS = DAY_MS
"""Nothing is expected of what was not seen for so long."""
KEPT_MS, FORGOTTEN_MS = HOUR_MS, 8 * DAY_MS
"""A workload without samples is remembered for as long as it was seen, but so long at least, and so long at most: batch pods that
nobody made are a workload each, and come by the thousand.
"""


@dataclass(slots=True)
class PastUse:
    """``containers`` by workload and name, ``nodes`` by name."""

    containers: dict[Workload, dict[str, ContainerUse]] = field(default_factory=dict)
    nodes: dict[str, NodeUse] = field(default_factory=dict)

    def is_new(self, node: str, seen: Measured, now: int) -> bool:
        """Whether what was ``seen`` of ``node`` has not been taken in yet. What claims to be of much later never is."""
        known = self.nodes.get(node)
        return seen.at - now <= SKEW_MS and (known is None or seen.at > known.trained)

    def train(self, node: str, seen: Measured, tenants: Mapping[Key, tuple[Tenant, Workload, Object]]) -> None:
        """Take in one sample of a node and of the pods on it."""
        known = self.nodes.setdefault(node, NodeUse(seen.at))
        prod = [seen.pods.get(key, NOTHING) for key, (tenant, _, _) in tenants.items() if tenant.band == PROD]
        known.add(sum(prod, NOTHING), seen.system, seen.at)
        for key, (_, workload, pod) in tenants.items():
            for name, used in by_container(pod, seen, key).items():
                self.of(workload, name, seen.at).add(used, seen.at)

    def of(self, workload: Workload, container: str, at: int) -> ContainerUse:
        """What is known of a container, from ``at`` on where nothing is."""
        return self.containers.setdefault(workload, {}).setdefault(container, ContainerUse(at, at))

    def is_new_kill(self, workload: Workload, kill: Kill, now: int) -> bool:
        """Whether nothing was learnt from ``kill`` yet, and is worth learning still."""
        if now - kill.at > FORGOTTEN_MS:
            return False
        known = self.containers.get(workload, {}).get(kill.container)
        return known is None or kill.at > known.killed_at

    def learn_kill(self, workload: Workload, kill: Kill) -> None:
        """A container was killed for want of memory: it wanted more than anybody saw it use."""
        known = self.of(workload, kill.container, kill.at)
        if kill.at > known.killed_at:
            known.killed_at, known.last = kill.at, max(known.last, kill.at)
            known.peak(kill.wanted(known.day_peak), kill.at)

    def forget(self, now: int, nodes: Iterable[str]) -> None:
        """Let go of workloads that have been gone for long, and of all nodes but those that are there."""
        for workload in [one for one, parts in self.containers.items() if _is_old(parts, now)]:
            del self.containers[workload]
        for node in self.nodes.keys() - set(nodes):
            del self.nodes[node]

    def expected(self, workload: Workload) -> Use | None:
        """The most that a pod of ``workload`` is expected to use; None where it is not known for long enough."""
        parts = self.containers.get(workload)
        if not parts or min(part.age_ms for part in parts.values()) < COLD_MS:
            return None
        return sum((part.expected for part in parts.values()), NOTHING)

    def reclaimable(self, node: str, allocatable: Use, tenants: Iterable[tuple[Tenant, Workload]]) -> Use:
        """What prod pods on ``node`` ask for and are not expected to use, by Koordinator's formula.

        That of each pod by itself, or of all together where that is less: pods do not peak at one moment, but what they ask for
        is theirs. Nothing of a node, or of a pod, that has not been seen for a day.
        """
        known = self.nodes.get(node)
        if known is None or known.age_ms < COLD_MS:
            return NOTHING
        singly = requested = expected = NOTHING
        for tenant, workload in tenants:
            if tenant.band != PROD:
                continue
            requested += tenant.request
            most = self.expected(workload)
            if most is not None:
                singly, expected = singly + tenant.request.over(most), expected + most
        together = requested.over(known.expected).at_most(allocatable.over(known.expected))
        return singly.at_most(allocatable.over(expected)).at_most(together)

    def dump(self) -> Manifest:
        """As JSON takes it."""
        workloads = {
            workload.text(): {name: part.dump() for name, part in sorted(parts.items())}
            for workload, parts in sorted(self.containers.items())
        }
        return {"workloads": workloads, "nodes": {name: one.dump() for name, one in sorted(self.nodes.items())}}

    @classmethod
    def load(cls, content: Manifest) -> "PastUse":
        """What was dumped."""
        containers = {
            Workload.of(text): {name: ContainerUse.load(part) for name, part in parts.items()}
            for text, parts in content["workloads"].items()
        }
        return cls(containers, {name: NodeUse.load(one) for name, one in content["nodes"].items()})


def _is_old(parts: Mapping[str, ContainerUse], now: int) -> bool:
    return all(now - part.last > _kept_ms(part) for part in parts.values())


def _kept_ms(part: ContainerUse) -> int:
    """What was learnt of a kill is kept as long as that is worth learning."""
    return FORGOTTEN_MS if part.killed_at else min(max(part.age_ms, KEPT_MS), FORGOTTEN_MS)


def by_container(pod: Object, seen: Measured, key: Key) -> dict[str, Use]:
    """What each container of ``pod`` used: as measured, else the pod's use, shared by what they ask for."""
    if key in seen.containers:
        return dict(seen.containers[key])
    used = seen.pods.get(key)
    if used is None:
        return {}
    requests = {str(one.get("name")): _request(one) for one in pod.spec.get("containers") or ()}
    shares = {name: _shares(used.of(name), requests, name) for name in COUNTED}
    return {one: Use(shares["cpu"][one], shares["memory"][one]) for one in requests}


def _shares(amount: int, requests: Mapping[str, Amounts], resource: str) -> dict[str, int]:
    total = sum(request.get(resource, 0) for request in requests.values())
    return {
        name: amount * request.get(resource, 0) // total if total else amount // len(requests)
        for name, request in requests.items()
    }


def _request(container: Manifest) -> Amounts:
    try:
        return container_request(container)
    except (QuantityError, AttributeError, TypeError):
        return {}
