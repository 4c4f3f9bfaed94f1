"""Whether a node would take a pod now, after all that a plan has moved already."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from descheduler.domain.cluster.neighbours import Neighbours
from descheduler.domain.cluster.pod_traits import node_of, requests_of
from descheduler.domain.cluster.view import ClusterView
from descheduler.domain.policy.arguments import FULL
from kube import Object
from kube.lent_resources import current
from kube.node_choice import may_run
from resources import Amounts, QuantityError, add, parse_amounts, subtract
from resources.amounts import format_amount

RESERVATION = "Reservation.scheduling.koordinator.sh"
_HOLDING = ("Available", "Waiting")


@dataclass(slots=True)
class Fitting:
    """Rooms of nodes as they will be: what is planned to move is counted where it goes, and no longer where it was."""

    view: ClusterView
    neighbours: Neighbours = field(init=False)
    _free: dict[str, Amounts] = field(default_factory=dict)
    _whole: dict[str, Amounts] = field(default_factory=dict)
    _ports: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    _held: dict[str, Amounts] | None = None

    def __post_init__(self) -> None:
        places = {pod.key: node_of(pod) for pod in self.view.placed()}
        self.neighbours = Neighbours(self.view.store, places)

    def obstacle(self, pod: Object, node: Object) -> str:
        """Why ``node`` would not take ``pod``, in words; empty when it would."""
        if not takes_pods(node):
            return f"{node.name} takes no pods"
        if not may_run(pod.spec, node):
            return f"the pod's selector, affinity or tolerations keep it off {node.name}"
        free = self.free(node)
        for name, amount in requests_of(pod).items():
            if amount > free.get(name, 0):
                return f"{node.name} has {_said(name, free)} of {name} free, {format_amount(name, amount)} is asked for"
        wanted = set(_host_ports(pod))
        if taken := wanted & self._host_ports(node) if wanted else wanted:
            return f"port {min(taken)[1]} of {node.name} is taken"
        why = self.neighbours.obstacle(pod, node)
        return f"{node.name}: {why}" if why else ""

    def free(self, node: Object) -> Amounts:
        """What nobody has asked for, and no reservation holds."""
        found = self._free.get(node.name)
        if found is None:
            found = subtract(self.whole(node), self._reserved().get(node.name, {}))
            for pod in self.view.pods_on(node.name):
                found = subtract(found, requests_of(pod))
            self._free[node.name] = found
        return found

    def whole(self, node: Object) -> Amounts:
        """What a node has for pods."""
        found = self._whole.get(node.name)
        if found is None:
            found = self._whole[node.name] = allocatable(node)
        return found

    def asked(self, node: Object, name: str) -> int:
        """How much of one resource of a node is asked for or held, in thousandths of a percent."""
        whole = self.whole(node).get(name, 0)
        return (whole - self.free(node).get(name, 0)) * FULL // whole if whole else 0

    def move(self, pod: Object, target: str) -> None:
        """``pod`` will be on ``target``, or, where that is empty, gone."""
        here = self.neighbours.places.get(pod.key, "")
        for name, sign in ((here, 1), (target, -1)):
            node = self.view.node(name) if name else None
            if node is not None:
                free, asked = self.free(node), requests_of(pod)
                self._free[name] = add(free, asked) if sign > 0 else subtract(free, asked)
                self._ports.pop(name, None)
        if target:
            self.neighbours.places[pod.key] = target
        else:
            self.neighbours.places.pop(pod.key, None)

    def _reserved(self) -> dict[str, Amounts]:
        """What reservations hold of each node, besides what their owners take."""
        if self._held is None:
            self._held = {}
            for item in self.view.store.of_kind(RESERVATION).values():
                node = str(item.status.get("nodeName") or "")
                if node and item.status.get("phase") in _HOLDING:
                    self._held[node] = add(self._held.get(node, {}), _holding(item))
        return self._held

    def _host_ports(self, node: Object) -> set[tuple[str, int]]:
        found = self._ports.get(node.name)
        if found is None:
            here = (pod for pod in self.view.placed() if self.neighbours.places.get(pod.key) == node.name)
            found = self._ports[node.name] = {port for pod in here for port in _host_ports(pod)}
        return found


def takes_pods(node: Object) -> bool:
    """Whether a node is ready and open."""
    if node.deleting or node.spec.get("unschedulable"):
        return False
    ready = [one.get("status") for one in node.status.get("conditions") or () if one.get("type") == "Ready"]
    return ready in ([], ["True"])


def _holding(item: Object) -> Amounts:
    try:
        whole = current(parse_amounts(item.status.get("allocatable")))
        taken = current(parse_amounts(item.status.get("allocated")))
    except QuantityError:
        return {}
    held = {name: max(0, amount - taken.get(name, 0)) for name, amount in whole.items()}
    return held if item.status.get("currentOwners") else {**held, "pods": 1}


def allocatable(node: Object) -> Amounts:
    """What a node has for pods, under today's names."""
    try:
        return current(parse_amounts(node.status.get("allocatable")))
    except QuantityError:
        return {}


def _host_ports(pod: Object) -> Iterator[tuple[str, int]]:
    for container in pod.spec.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield str(port.get("protocol") or "TCP"), int(port["hostPort"])


def _said(name: str, free: Amounts) -> str:
    return format_amount(name, max(0, free.get(name, 0)))
