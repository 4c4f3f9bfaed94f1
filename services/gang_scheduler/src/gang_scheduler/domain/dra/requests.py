"""What a ResourceClaim asks for, and what it has."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from gang_scheduler.domain.dra.capacity import Asked
from gang_scheduler.domain.dra.cel_syntax import CelError
from gang_scheduler.domain.dra.cel_values import quantity
from gang_scheduler.domain.dra.slices import DeviceId
from gang_scheduler.domain.terms.node_rules import NodeTerm, Toleration, node_term, toleration
from kube import Manifest, Object

CLAIM, CLASS = "ResourceClaim.resource.k8s.io", "DeviceClass.resource.k8s.io"
MOST_USERS = 256


@dataclass(frozen=True, slots=True)
class Ask:
    """Devices of one class: ``count`` of them, or all that match (0)."""

    name: str
    device_class: str
    selectors: tuple[str, ...]
    count: int = 1
    admin: bool = False
    tolerations: tuple[Toleration, ...] = ()
    told: tuple[Manifest, ...] = ()
    """The tolerations as they were written: the allocation repeats them."""

    capacity: Asked = ()
    """How much of each device it needs at least; of one that is shared, how much it takes."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the first of ``choices`` that can be met."""

    name: str
    choices: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The devices of these requests (all if empty) have the same value of an attribute, or all different ones."""

    requests: frozenset[str]
    attribute: str
    distinct: bool

    def concerns(self, ask: Ask) -> bool:
        """Whether devices for ``ask`` are bound by it; a request's name stands for all its choices."""
        return not self.requests or ask.name in self.requests or ask.name.partition("/")[0] in self.requests


class Wanted(NamedTuple):
    """All that one claim asks for."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


class Share(NamedTuple):
    """A part of a device: so much of each capacity, by full name, in thousandths."""

    device: DeviceId
    taken: tuple[tuple[str, int], ...]


class Holding(NamedTuple):
    """What is allocated to a claim. ``shared`` are the devices that it has without keeping others from them."""

    devices: tuple[DeviceId, ...]
    shared: tuple[DeviceId, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    shares: tuple[Share, ...] = ()


@lru_cache(maxsize=4096)
def wanted(text: str) -> Wanted:
    """What ``spec.devices`` of a claim, as JSON, asks for."""
    devices = json.loads(text) or {}
    return Wanted(
        tuple(_request(one) for one in devices.get("requests") or ()),
        tuple(_constraint(one) for one in devices.get("constraints") or ()),
    )


def holding_of(allocation: Manifest | None) -> Holding | None:
    """An allocation as it stands in the status of a claim; None without one."""
    if not allocation:
        return None
    results = (allocation.get("devices") or {}).get("results") or ()
    exclusive: list[DeviceId] = []
    shared: list[DeviceId] = []
    shares: list[Share] = []
    for one in results:
        device = DeviceId(str(one.get("driver")), str(one.get("pool")), str(one.get("device")))
        if one.get("shareID"):
            shares.append(Share(device, _taken(device, one.get("consumedCapacity") or {})))
        else:
            (shared if one.get("adminAccess") else exclusive).append(device)
    selector = allocation.get("nodeSelector")
    terms = tuple(node_term(one) for one in selector.get("nodeSelectorTerms") or ()) if selector else None
    return Holding(tuple(exclusive), tuple(shared), terms, tuple(shares))


def selectors_of(entry: Manifest) -> tuple[str, ...]:
    """The expressions of a request, or of a device class."""
    return tuple(str((one.get("cel") or {}).get("expression") or "true") for one in entry.get("selectors") or ())


def users_of(claim: Object) -> list[Manifest]:
    """For whom a claim is reserved."""
    return [one for one in claim.status.get("reservedFor") or () if isinstance(one, dict)]


def claim_names(pod: Object) -> list[tuple[str, str]]:
    """For each claim of a pod the pod's own name for it and the claim's, "" while its claim is not made yet."""
    made = {one.get("name"): one.get("resourceClaimName") for one in pod.status.get("resourceClaimStatuses") or ()}
    found = []
    for one in pod.spec.get("resourceClaims") or ():
        name = str(one.get("name") or "")
        if one.get("resourceClaimTemplateName") and name in made and made[name] is None:
            continue  # the template said that there is none to make
        found.append((name, str(one.get("resourceClaimName") or made.get(name) or "")))
    return found


def _request(entry: Manifest) -> Request:
    name = str(entry.get("name") or "")
    choices = entry.get("firstAvailable")
    if choices:
        return Request(name, tuple(_ask(f"{name}/{one.get('name')}", one) for one in choices))
    return Request(name, (_ask(name, {**entry, **(entry.get("exactly") or {})}),))


def _ask(name: str, entry: Mapping[str, Any]) -> Ask:
    every = entry.get("allocationMode") == "All"
    told: Sequence[Manifest] = entry.get("tolerations") or ()
    return Ask(
        name,
        str(entry.get("deviceClassName") or ""),
        selectors_of(dict(entry)),
        0 if every else int(entry.get("count") or 1),
        bool(entry.get("adminAccess")),
        tuple(toleration(one) for one in told),
        tuple(told),
        tuple(_amounts((entry.get("capacity") or {}).get("requests") or {})),
    )


def _amounts(listed: Manifest) -> Iterator[tuple[str, int]]:
    for name, value in sorted(listed.items()):
        try:
            yield name, quantity(value).milli
        except CelError:
            continue  # admission refuses such claims


def _taken(device: DeviceId, consumed: Manifest) -> tuple[tuple[str, int], ...]:
    return tuple((name if "/" in name else f"{device.driver}/{name}", amount) for name, amount in _amounts(consumed))


def _constraint(entry: Manifest) -> Constraint:
    attribute = entry.get("matchAttribute") or entry.get("distinctAttribute") or ""
    return Constraint(frozenset(entry.get("requests") or ()), str(attribute), "distinctAttribute" in entry)
