"""The port between a scenario and the system it runs against: a running system in virtual time.

The harness is the user, the nodes and the clock of that system; everything that it does and asks goes through here.
Writes (``apply``, ``delete``, the nodes' and pods' facts) are stored when the call returns, but nothing reacts to them
before ``advance`` or ``settle``: what one step says is seen as a whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kube import Key, Manifest, Object, Store
from resources import Amounts


@dataclass(frozen=True, slots=True)
class PodReport:
    """What a node says about one pod; None stands for what it says nothing about."""

    phase: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    restarts: int | None = None
    ready: bool | None = None


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """One usage sample of a node: cpu in milli-cores, memory in bytes. ``total`` is of the whole node."""

    total: Amounts
    system: Amounts = field(default_factory=dict)
    pods: dict[tuple[str, str], Amounts] = field(default_factory=dict)
    """What single pods use, by namespace and name."""


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One sample that an autoscaler or a tuner reads. ``value_nano`` counts billionths; None withdraws the sample.

    ``source`` is ``pod``, ``object``, ``external``, ``service`` or ``trial``. ``name`` is the metric: ``cpu`` or
    ``memory`` or a custom name of a pod, ``concurrency`` or ``rps`` of a service. ``subject`` is whom it is about: a pod,
    a service or a trial by key, or the key of ``object``; an external metric has none, but may have ``labels``.
    """

    source: str
    name: str
    value_nano: int | None
    subject: Key | None = None
    labels: dict[str, str] = field(default_factory=dict)


class Target(Protocol):
    """A running system in virtual time. Times are milliseconds since the epoch; it starts at 2026-01-01T00:00:00Z."""

    def now(self) -> int:
        """The time that it is in the system."""

    def apply(self, manifests: Sequence[Manifest]) -> list[str | None]:
        """Create or replace objects as a user would, through admission; per object None or the refusal's message."""

    def delete(self, key: Key) -> str | None:
        """Delete an object as a user would; None, or the refusal's message."""

    def put_nodes(self, manifests: Sequence[Manifest]) -> None:
        """Nodes (and the HyperNodes that their topology names) appear, as facts."""

    def seed(self, manifests: Sequence[Manifest]) -> None:
        """Pods that are bound and running already appear, as facts; they did not pass admission."""

    def patch_node(self, name: str, change: Manifest) -> None:
        """Lay ``change`` over a node's manifest: merge patch, conditions by type."""

    def delete_node(self, name: str) -> None:
        """A node is gone. Its pods stay bound for 40 s, then they are gone too."""

    def set_pod(self, namespace: str, name: str, report: PodReport) -> None:
        """The node says something about a pod that is bound to it."""

    def sample_usage(self, node: str, usage: NodeUsage) -> None:
        """A node's usage, now; it stands until the next sample of that node."""

    def sample_metrics(self, samples: Sequence[MetricSample]) -> None:
        """What an autoscaler reads, now."""

    def advance(self, ms: int) -> None:
        """Let time pass; every timer on the way fires in order."""

    def settle(self) -> None:
        """Run until nothing is left to do at this instant."""

    def restart(self, roles: Sequence[str]) -> None:
        """Stop these parts of the system and start them again with nothing in memory."""

    def store(self) -> Store:
        """The facts as they stand. Never changed by the harness."""

    def evictions(self) -> list[tuple[str, str]]:
        """Namespace and name of every pod whose eviction was ordered since the start, in that order."""

    def environment(self, pod: Object) -> dict[str, str]:
        """What the pod's first container was given, references resolved."""

    def replicas(self, key: Key) -> int | None:
        """The replicas wanted of a scale target or of an InferenceService's predictor; None where there is none."""

    def traffic(self, key: Key) -> dict[str, int]:
        """The percent of an inference service's requests that each revision gets."""

    def cgroup(self, node: str, path: str) -> str | None:
        """The text of a file below the node's cgroup root as the node agent left it; None where it wrote none."""

    def pod_message(self, pod: Object) -> str:
        """The reason that a user is given for the state in which a pod is; "" where there is none."""

    def violations(self) -> list[str]:
        """Invariants of the system's own that do not hold, in words."""

    def close(self) -> None:
        """Stop everything; the target is not used after."""


OpenTarget = Callable[[Manifest, Manifest, int], Target]
"""Starts a target from a scenario's ``policy`` and ``simulate`` and a seed: the same three give the same run."""
