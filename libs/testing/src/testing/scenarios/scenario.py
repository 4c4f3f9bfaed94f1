"""A scenario as data: its steps in order, read and checked, with every shorthand written out."""

from dataclasses import dataclass, field
from typing import Protocol

from kube import Manifest
from testing.scenarios.refs import Ref
from testing.scenarios.selectors import Selector
from testing.scenarios.target import MetricSample, NodeUsage, PodReport, Target


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An expectation that does not hold: which matcher, what was wanted, what there is."""

    matcher: str
    wanted: str
    got: str


class Matcher(Protocol):
    """One expectation of an ``expect`` step."""

    def mismatch(self, target: Target) -> Mismatch | None:
        """How the target differs from what is expected; None where it does not."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node that appears, with what its topology says about the network around it."""

    manifest: Manifest
    hypernodes: tuple[str, ...] = ()
    """The HyperNodes above it, the leaf first."""


@dataclass(frozen=True, slots=True)
class Given:
    """One object of an ``apply`` step. A pod with ``node`` runs there already; ``owner`` still has to be looked up."""

    manifest: Manifest
    node: str = ""
    owner: Ref | None = None


@dataclass(frozen=True, slots=True)
class Nodes:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """``rejects`` is the text that every refusal must hold; None where the objects are to be accepted."""

    objects: tuple[Given, ...]
    rejects: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    refs: tuple[Ref, ...]
    rejects: str | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    ms: int


@dataclass(frozen=True, slots=True)
class Report:
    """What the node reports of the pods that ``selector`` finds, of the first ``take`` by name where it is given."""

    selector: Selector
    report: PodReport
    take: int | None = None


@dataclass(frozen=True, slots=True)
class PodReports:
    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """How one node changes. ``allocatable`` is the part of it that is new, as quantities."""

    name: str
    ready: bool | None = None
    unschedulable: bool | None = None
    allocatable: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str | None] = field(default_factory=dict)
    taints: tuple[Manifest, ...] | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class ChangeNodes:
    changes: tuple[NodeChange, ...]


@dataclass(frozen=True, slots=True)
class SampleUsage:
    usage: dict[str, NodeUsage]


@dataclass(frozen=True, slots=True)
class SampleMetrics:
    samples: tuple[MetricSample, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expect:
    matchers: tuple[Matcher, ...]


Step = Nodes | Apply | Delete | Advance | PodReports | ChangeNodes | SampleUsage | SampleMetrics | Restart | Expect


@dataclass(frozen=True, slots=True)
class Scenario:
    """One case. ``policy`` and ``simulate`` are as in the file; ``steps`` count from 1 in every message."""

    area: str
    name: str
    title: str
    steps: tuple[Step, ...]
    policy: Manifest = field(default_factory=dict)
    simulate: Manifest = field(default_factory=dict)
    origin: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.area}/{self.name}"
