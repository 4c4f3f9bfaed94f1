"""The hard limits on what pods and reservations hold: a node's allocatable, the caps of queues and elastic quotas at every ancestor."""

from collections.abc import Iterable
from dataclasses import dataclass

from kube import Key, Object, Store
from resources import Amounts
from testing.scenarios.footprint import amounts, footprint
from testing.scenarios.membership import QUOTA_NAME, QUOTA_PARENT, is_finished, mark, node_of, pods_of, queue_of

NODE = "Node"
QUEUE = "Queue.scheduling.volcano.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"
QUOTA = "ElasticQuota.scheduling.sigs.k8s.io"
_OF_CARDS = (
    *(f"koordinator.sh/{name}" for name in ("gpu", "gpu.shared", "gpu-core", "gpu-memory-ratio")),
    *("volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory-percentage"),
)
"""What pods may ask of cards where the node tells of them in other words; the cards themselves are checked by the card."""

_TITLES = {NODE: "node", QUEUE: "queue", QUOTA: "quota"}


@dataclass(frozen=True, slots=True)
class Charge:
    """What one bound pod that has not ended holds, or a reservation for its owners, and where it is charged."""

    uid: str
    pod: str
    amounts: Amounts
    node: str
    queue: str
    """Its Volcano queue; "" where it is charged to an elastic quota."""
    quota: str
    leaving: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be held of one node, queue or quota. ``below`` are the names that are charged to it."""

    key: Key
    amounts: Amounts
    below: frozenset[str]

    @property
    def title(self) -> str:
        return f"{_TITLES[self.key.kind]} {self.key.name}"

    def speaks_of(self, resource: str) -> bool:
        """Whether what it does not name is not there at all: of a node, but for words of pods for parts of its cards."""
        return resource in self.amounts or (self.key.kind == NODE and resource not in _OF_CARDS)

    def charged(self, charges: Iterable[Charge]) -> list[Charge]:
        """Those that count against it. A pod that is leaving holds its node, but no longer its queue."""
        if self.key.kind == NODE:
            return [charge for charge in charges if charge.node in self.below]
        if self.key.kind == QUEUE:
            return [charge for charge in charges if charge.queue in self.below and not charge.leaving]
        return [charge for charge in charges if charge.quota in self.below and not charge.leaving]


def charges_of(store: Store) -> list[Charge]:
    """Every bound pod that has not ended, by namespace and name; then what reservations hold and nobody has taken yet."""
    bound = [
        Charge(
            pod.uid,
            pod.name,
            footprint(pod),
            node_of(pod),
            "" if mark(pod, QUOTA_NAME) else queue_of(pod, store),
            mark(pod, QUOTA_NAME),
            pod.deleting,
        )
        for pod in pods_of(store)
        if node_of(pod) and not is_finished(pod)
    ]
    return bound + [_held(found) for _, found in sorted(store.of_kind(RESERVATION).items()) if _stands(found)]


def _stands(reservation: Object) -> bool:
    return reservation.status.get("phase") == "Available" and bool(reservation.status.get("nodeName"))


def _held(reservation: Object) -> Charge:
    """What is left of it for its owners."""
    status = reservation.status
    taken = amounts(status.get("allocated"))
    left = {name: most - taken.get(name, 0) for name, most in amounts(status.get("allocatable")).items()}
    amounts_left = {name: amount for name, amount in left.items() if amount > 0}
    return Charge(
        reservation.uid, f"reservation {reservation.name}", amounts_left, str(status["nodeName"]), "", "", False
    )


def limits_of(store: Store) -> list[Limit]:
    """Every limit that is set, by kind and name."""
    queues = {key.name: str(queue.spec.get("parent") or "") for key, queue in store.of_kind(QUEUE).items()}
    quotas = {key.name: quota.labels.get(QUOTA_PARENT, "") for key, quota in store.of_kind(QUOTA).items()}
    set_here = [
        *((key, node.status.get("allocatable"), frozenset({key.name})) for key, node in store.of_kind(NODE).items()),
        *((key, queue.spec.get("capability"), _below(key.name, queues)) for key, queue in store.of_kind(QUEUE).items()),
        *((key, quota.spec.get("max"), _below(key.name, quotas)) for key, quota in store.of_kind(QUOTA).items()),
    ]
    return sorted((Limit(key, amounts(most), below) for key, most, below in set_here if most), key=lambda one: one.key)


def _below(name: str, parents: dict[str, str]) -> frozenset[str]:
    """``name`` and all that have it as an ancestor; a circle of parents ends where it began."""
    found = {name}
    grown = True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return frozenset(found)
