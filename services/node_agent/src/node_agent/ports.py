"""What the node agent is told, what it says, and whom it says it to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kube import Manifest
from kube.node_evictions import Wish
from node_agent.domain.usage import UsageSample
from node_agent.inventory.machine import Devices, Inventory

HostNames = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is to run on ``node``: the whole of it, so that what is not named is to be stopped.

    ``pods`` are full manifests with uid, ``spec.nodeName`` and ``status.podIP``; one with a deletionTimestamp is to stop.
    ``config_maps`` are data by ``namespace/name``, ``hosts`` the names of peers by namespace.
    """

    node: str
    revision: int
    pods: tuple[Manifest, ...]
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hosts: Mapping[str, HostNames] = field(default_factory=dict)
    slo: Manifest = field(default_factory=dict)
    """The spec of the node's NodeSLO."""
    node_object: Manifest = field(default_factory=dict)
    """What of the Node object the rules depend on: capacity, allocatable, annotations."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """The state of one pod: ``status`` as Kubernetes writes it, without what others decide about."""

    uid: str
    namespace: str
    name: str
    status: Manifest


@dataclass(frozen=True, slots=True)
class Report:
    """What is new on ``node``. ``gone`` are pods whose processes have all ended after they were told to stop.

    Where a kubelet runs the pods, and says what the node has, the inventory is of devices alone.
    """

    node: str
    pods: tuple[PodReport, ...] = ()
    gone: tuple[str, ...] = ()
    inventory: Inventory | Devices | None = None
    usage: tuple[UsageSample, ...] = ()
    evictions: tuple[Wish, ...] | None = None
    """The pods that have to leave; None where there is nothing new to say of it."""
    more_usage: Manifest | None = None
    """Means and percentiles of use, and that of programs that are no pods, in the words of a NodeMetric's status."""


class Upstream(Protocol):
    """The side that assigns pods to the node."""

    async def report(self, report: Report) -> None:
        """Store ``report``; raises when it is not known to be stored, and it will be said again."""

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """The values of a Secret; raises LookupError when there is none of that name."""


class Clock(Protocol):
    """Tells the time."""

    def __call__(self) -> int:
        """Milliseconds since the epoch."""
