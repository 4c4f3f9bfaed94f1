"""The devices that drivers publish in ResourceSlices."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gang_scheduler.domain.dra.capacity import Asked, Capacity, capacity_of
from gang_scheduler.domain.dra.cel_syntax import CelError
from gang_scheduler.domain.dra.cel_values import quantity, version
from gang_scheduler.domain.terms.node_rules import NodeTerm, Taint, node_term
from kube import Manifest, Object

SLICE = "ResourceSlice.resource.k8s.io"


class DeviceId(NamedTuple):
    """A device is named by its driver, its pool there, and its name in the pool."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True)
class Device:
    """``node`` is where it is; "" for one that the nodes of ``terms`` (None: all) reach."""

    id: DeviceId
    scope: Mapping[str, Any]
    """What expressions see under the name ``device``."""

    values: Mapping[str, Any]
    """Attributes by full name, for constraints."""

    taints: tuple[Taint, ...] = ()
    node: str = ""
    terms: tuple[NodeTerm, ...] | None = None
    consumes: tuple[tuple[str, int], ...] = ()
    """What it takes of counters that its pool shares, by ``set/counter``, in thousandths."""

    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    """By full name."""

    shareable: bool = False
    """Whether several claims may have it, each a part of its capacities."""

    binds: bool = False
    """Whether it is where its claim's first pod is from then on, though other nodes reach it too."""

    def taken_by(self, asked: Asked) -> dict[str, int] | None:
        """What a request takes of each capacity, by full name; None where the device has not as much as is asked for.

        Of a device that is not shared it takes all, so nothing is said.
        """
        named = {name if "/" in name else f"{self.id.driver}/{name}": amount for name, amount in asked}
        if not all(
            name in self.capacities and amount <= self.capacities[name].amount for name, amount in named.items()
        ):
            return None
        if not self.shareable:
            return {}
        taken: dict[str, int] = {}
        for name, capacity in self.capacities.items():
            part = capacity.taken_by(named.get(name))
            if part is None or part > capacity.amount:
                return None
            taken[name] = part
        return taken


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice, read. ``counters`` is what its pool has of each shared counter."""

    driver: str
    pool: str
    generation: int
    expected: int
    devices: tuple[Device, ...]
    counters: Mapping[str, int] = field(default_factory=dict)


def slice_of(item: Object) -> Slice | None:
    """A ResourceSlice, read; None when it cannot be."""
    spec = item.spec
    try:
        pool = spec.get("pool") or {}
        driver, name = str(spec["driver"]), str(pool.get("name") or "")
        sets = {one["name"]: one.get("counters") or {} for one in spec.get("sharedCounters") or ()}
        return Slice(
            driver,
            name,
            int(pool.get("generation") or 0),
            int(pool.get("resourceSliceCount") or 1),
            tuple(_device(driver, name, one, spec) for one in spec.get("devices") or ()),
            dict(_counters(sets.items())),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def usable(slices: Iterable[Slice]) -> list[Slice]:
    """The newest generation of each pool, where all its slices are there."""
    pools: dict[tuple[str, str], list[Slice]] = {}
    for one in slices:
        known = pools.setdefault((one.driver, one.pool), [])
        if known and known[0].generation < one.generation:
            known.clear()
        if not known or known[0].generation == one.generation:
            known.append(one)
    return [one for known in pools.values() if len(known) >= known[0].expected for one in known]


def _device(driver: str, pool: str, entry: Manifest, spec: Manifest) -> Device:
    entry = {**(entry.get("basic") or {}), **entry}
    attributes, values = _grouped(driver, entry.get("attributes") or {}, _attribute)
    listed = entry.get("capacity") or {}
    capacity, _ = _grouped(driver, listed, lambda one: quantity(one["value"]))
    named = {name: {"name": name, **one} for name, one in listed.items()}
    _, capacities = _grouped(driver, named, lambda one: capacity_of(one["name"], one))
    own = entry if spec.get("perDeviceNodeSelection") else spec
    selector = own.get("nodeSelector")
    terms = tuple(node_term(one) for one in selector.get("nodeSelectorTerms") or ()) if selector else None
    taints = tuple(
        Taint(str(one.get("key") or ""), str(one.get("value") or ""), str(one.get("effect") or ""))
        for one in entry.get("taints") or ()
    )
    scope: dict[str, Any] = {"driver": driver, "attributes": _Domains(attributes), "capacity": _Domains(capacity)}
    scope["allowMultipleAllocations"] = bool(entry.get("allowMultipleAllocations"))
    consumes = ((one["counterSet"], one.get("counters") or {}) for one in entry.get("consumesCounters") or ())
    return Device(
        DeviceId(driver, pool, str(entry["name"])),
        scope,
        values,
        taints,
        str(own.get("nodeName") or ""),
        terms,
        tuple(_counters(consumes)),
        capacities,
        bool(entry.get("allowMultipleAllocations")),
        bool(entry.get("bindsToNode")),
    )


class _Domains(dict[str, dict[str, Any]]):
    """As in Kubernetes, a domain of which a device says nothing is there, and empty."""

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


def _grouped(driver: str, listed: Manifest, read: Any) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """By domain and name, and by full name; a name without a domain is the driver's own."""
    grouped: dict[str, dict[str, Any]] = {}
    full: dict[str, Any] = {}
    for name, entry in listed.items():
        domain, slash, short = name.rpartition("/")
        domain = domain if slash else driver
        try:
            value = read(entry)
        except CelError:
            continue
        grouped.setdefault(domain, {})[short] = full[f"{domain}/{short}"] = value
    return grouped, full


def _attribute(entry: Manifest) -> Any:
    for kind, value in entry.items():
        return version(value) if kind == "version" else value
    raise CelError("an attribute without a value")


def _counters(sets: Iterable[tuple[str, Manifest]]) -> Iterator[tuple[str, int]]:
    for name, counters in sets:
        for counter, entry in counters.items():
            # Less than nothing is nothing: a device that took less than nothing would give some to others.
            yield f"{name}/{counter}", max(0, quantity(entry["value"]).milli)


def text_of(part: Any) -> str:
    """A part of a manifest as a text by which equal parts are known."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"))
