"""The shape of a pod: all that matters for where it can go, computed once for each distinct spec and shared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.devices.device_needs import PLAIN, DeviceNeed, Traits, device_need
from gang_scheduler.domain.terms.load_estimate import Load, estimate
from gang_scheduler.domain.terms.load_policy import Percent
from gang_scheduler.domain.terms.node_rules import NodeRules, node_rules
from gang_scheduler.domain.terms.pod_requests import tolerant_requests
from gang_scheduler.domain.terms.pod_terms import PodTerms, pod_terms
from kube import Key
from kube.volumes import claims_of
from resources import Amounts

# A request of this fits no node (see LARGEST_SUPPLY); kept far below 63 bits so that sums in vectors cannot wrap.
LARGEST_AMOUNT = 1 << 54


class HostPort(NamedTuple):
    """A port of the node itself; the address "" stands for every address."""

    protocol: str
    port: int
    address: str

    def conflicts(self, other: "HostPort") -> bool:
        """Whether both cannot be on one node."""
        same = self.protocol == other.protocol and self.port == other.port
        return same and (not self.address or not other.address or self.address == other.address)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodShape:
    """Pods of one shape can take each other's place. ``rows`` and ``needs`` are the requests as rows of the node table."""

    index: int
    requests: Amounts
    rows: tuple[int, ...]
    needs: tuple[int, ...]
    needs_vector: Ints
    rules: NodeRules
    terms: PodTerms
    ports: tuple[HostPort, ...]
    devices: DeviceNeed
    load: Load
    prod: bool = True
    exempt: bool = False
    """Whether it may go to a node that is busy already."""

    claims: tuple[Key, ...] = ()
    """The volume claims that it names."""

    resource_claims: tuple[str, ...] = ()
    """What each of its resource claims asks for, or which it is."""

    broken: str = ""
    """What is wrong with the requests, if they cannot be read: such a pod waits."""

    unmet: str = ""
    """Why it cannot be of its runtime class: it waits too."""

    coupled: bool = False
    """Whether it names anything of which other pods have a part: ports, claims, pods to be near or away from."""


class PodForm(NamedTuple):
    """What a pod spec says: its shape, and what does not bear on where it fits."""

    shape: PodShape
    priority: int
    gates: tuple[str, ...]
    scheduler: str


@dataclass(slots=True)
class ResourceRows:
    """The row of each resource in the node table, in the order in which resources became known."""

    rows: dict[str, int] = field(default_factory=dict)

    def row(self, name: str) -> int:
        return self.rows.setdefault(name, len(self.rows))


class Overlay(Protocol):
    """Something that adds to what a pod spec demands."""

    def laid_over(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec with the addition."""


@dataclass(slots=True)
class ShapeCatalog:
    """Parses pod specs, each once."""

    resources: ResourceRows
    factors: Percent
    _by_identity: dict[tuple[int, str, Traits | None, int], tuple[Any, Any, PodForm]] = field(default_factory=dict)
    _by_content: WeakValueDictionary[Any, PodShape] = field(default_factory=WeakValueDictionary)
    _made: int = 0

    def form_of(
        self,
        spec: Mapping[str, Any],
        namespace: str,
        labels: Mapping[str, str],
        traits: Traits = PLAIN,
        grant: Overlay | None = None,
    ) -> PodForm:
        """The form of a pod with ``spec`` (with ``grant`` laid over it); equal specs have the same shape."""
        # Most pods have no traits: those are told by identity, which is faster than by content.
        place = (id(spec), namespace, None if traits is PLAIN else traits, id(grant))
        found = self._by_identity.get(place)
        # The entry holds the spec and the grant, so that their id() cannot have become another object's.
        if found is not None and found[0] is spec and found[1] is grant:
            return found[2]
        form = self._parse(spec if grant is None else grant.laid_over(spec), namespace, labels, traits)
        if not _reads_labels(spec):
            if len(self._by_identity) >= 8192:
                self._by_identity.clear()
            self._by_identity[place] = (spec, grant, form)
        return form

    def _parse(self, spec: Mapping[str, Any], namespace: str, labels: Mapping[str, str], traits: Traits) -> PodForm:
        gates = tuple(str(gate.get("name") or "") for gate in spec.get("schedulingGates") or ())
        scheduler = str(spec.get("schedulerName") or "")
        return PodForm(self._shape(spec, namespace, labels, traits), int(spec.get("priority") or 0), gates, scheduler)

    def _shape(self, spec: Mapping[str, Any], namespace: str, labels: Mapping[str, str], traits: Traits) -> PodShape:
        terms = pod_terms(spec, namespace, labels)
        claims = claims_of(spec, namespace)
        content = (_content(spec), None if terms.empty else terms, traits, claims)
        shape = self._by_content.get(content)
        if shape is None:
            shape = self._make(dict(spec), terms, traits, claims)
            self._by_content[content] = shape
        return shape

    def _make(self, spec: dict[str, Any], terms: PodTerms, traits: Traits, claims: tuple[Key, ...]) -> PodShape:
        requests, broken = tolerant_requests(spec)
        if not broken and traits.pinned and requests.get("cpu", 0) % 1000:
            broken = f"cpu: {requests['cpu']}m is not a whole number of CPUs, of which a pod of this QoS class gets some of its own"
        needs = tuple(min(amount, LARGEST_AMOUNT) for amount in requests.values())
        self._made += 1
        ports = host_ports(spec)
        return PodShape(
            self._made,
            requests,
            tuple(self.resources.row(name) for name in requests),
            needs,
            np.array(needs, np.int64).reshape(-1, 1),
            node_rules(spec, traits.demands),
            terms,
            ports,
            device_need(spec, requests, traits),
            estimate(spec, traits.load.factors or self.factors),
            traits.load.prod,
            traits.load.exempt,
            claims,
            traits.claims,
            broken,
            traits.unmet,
            bool(ports or claims or traits.claims or not terms.empty),
        )


def _content(spec: Mapping[str, Any]) -> str:
    containers = [_footprint(item) for name in ("containers", "initContainers") for item in spec.get(name) or ()]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    parts = (spec.get("nodeSelector"), spec.get("tolerations"), spec.get("overhead"), spec.get("resources"))
    return repr((containers, len(spec.get("initContainers") or ()), affinity, spec.get("hostNetwork"), parts))


def _footprint(container: Mapping[str, Any]) -> tuple[Any, ...]:
    return (container.get("resources"), container.get("restartPolicy"), container.get("ports"))


def _reads_labels(spec: Mapping[str, Any]) -> bool:
    if spec.get("topologySpreadConstraints"):
        return True
    affinity = spec.get("affinity") or {}
    return bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))


def host_ports(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """The node ports that a pod spec asks for, those of its sidecars too."""
    whole_host = bool(spec.get("hostNetwork"))
    found: set[HostPort] = set()
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if whole_host else 0)
            if number:
                address = str(port.get("hostIP") or "")
                found.add(
                    HostPort(str(port.get("protocol") or "TCP"), int(number), "" if address == "0.0.0.0" else address)
                )
    return tuple(sorted(found))
