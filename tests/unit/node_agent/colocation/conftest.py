"""Nodes, pods and samples in few words."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kube import Manifest
from node_agent.domain.colocation.core import Enforcement, Kept, enforce
from node_agent.domain.colocation.machine import Machine, Processor, machine_of
from node_agent.domain.colocation.node_slo import node_slo
from node_agent.domain.colocation.pods import NodePod, node_pod
from node_agent.domain.colocation.samples import Sample, Stall, Use
from node_agent.domain.colocation.situation import Situation

STALE_MS = 10_000


def pod(name: str, qos: str = "", priority: int = 0, **parts: Any) -> NodePod:
    """A pod; ``requests`` and ``limits`` are of its one container unless ``containers`` are given."""
    resources = {key: parts.pop(key) for key in ("requests", "limits") if key in parts}
    containers = parts.pop("containers", [{"name": "main", "resources": resources}])
    labels = {**({"koordinator.sh/qosClass": qos} if qos else {}), **parts.pop("labels", {})}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels, **parts.pop("metadata", {})}
    return node_pod({"metadata": metadata, "spec": {"priority": priority, "containers": containers, **parts}})


def machine(cpus: int = 20, memory: str = "64G", node: Manifest | None = None, **more: Any) -> Machine:
    amounts = {"cpu": str(cpus), "memory": memory, **more.pop("lends", {})}
    manifest = {
        "status": {"capacity": amounts, "allocatable": {**amounts, **more.pop("allocatable", {})}},
        **(node or {}),
    }
    return machine_of(manifest, **more)


class Desk:
    """One node over time: what is used changes, and each round decides about it."""

    def __init__(self, machine: Machine, slo: Manifest, *pods: NodePod) -> None:
        self.machine, self.slo, self.pods = machine, node_slo(slo), {one.uid: one for one in pods}
        self.kept, self.now = Kept(), 1_000_000
        self.sample: Sample | None = None
        self.over_ms = 1_000

    def uses(self, node: int | None = None, memory: int = 0, system: int = 0, **pods: Any) -> "Desk":
        """CPU in milli-cores by pod, or (CPU, memory); the node uses the sum and ``system`` unless it is said."""
        used = {name: Use(*one) if isinstance(one, tuple) else Use(one) for name, one in pods.items()}
        total = sum(use.cpu_milli for use in used.values()) + system if node is None else node
        whole = memory or sum(use.memory_bytes for use in used.values())
        self.sample = Sample(self.now, Use(total, whole), used)
        return self

    def stalls(self, throttled: tuple[str, ...] = (), **pods: Stall) -> "Desk":
        assert self.sample is not None
        met = frozenset((name, "main") for name in throttled)
        self.sample = Sample(self.now, self.sample.node, self.sample.pods, {}, met, pods)
        return self

    def round(self, seconds: float = 1, fresh: bool = True) -> Enforcement:
        """Time passes and a decision is made; the same is used as before unless nothing was measured."""
        self.now += round(seconds * 1000)
        if fresh and self.sample is not None:
            old = self.sample
            self.sample = replace(old, at=self.now, over_ms=self.over_ms)
        done = enforce(Situation(self.now, self.slo, self.machine, self.pods, self.sample, STALE_MS), self.kept)
        self.kept = done.kept
        return done


@pytest.fixture
def make_pod() -> Callable[..., NodePod]:
    return pod


@pytest.fixture
def make_machine() -> Callable[..., Machine]:
    return machine


@pytest.fixture
def desk() -> Callable[..., Desk]:
    return Desk


@pytest.fixture
def threads() -> Callable[[int, int], tuple[Processor, ...]]:
    """So many NUMA nodes of so many cores, each of two threads that are far apart in number."""

    def made(nodes: int, cores: int) -> tuple[Processor, ...]:
        every = nodes * cores
        return tuple(Processor(cpu, cpu % every, cpu % every // cores) for cpu in range(2 * every))

    return made
