"""A double of the port ``Target``: a small cluster in memory whose scheduler takes the first node that fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube import Key, Manifest, Object, Store, from_manifest, key_of, merge, parse_duration, parse_time, rfc3339
from resources import add, fits, parse_amounts, subtract
from testing.scenarios import MetricSample, NodeUsage, PodReport, Scenario, parse_scenario
from testing.scenarios.footprint import footprint
from testing.scenarios.membership import group_object, group_of, is_finished, node_of, phase_of, pods_of
from testing.scenarios.run import Result, run_scenario

START = parse_time("2026-01-01T00:00:00Z")


@dataclass
class NaiveCluster:
    """``faults`` names what it is to do wrong: overfill, split, move, lose, crash."""

    policy: Manifest = field(default_factory=dict)
    simulate: Manifest = field(default_factory=dict)
    seed_number: int = 0
    faults: frozenset[str] = frozenset()
    time: int = START
    facts: Store = field(default_factory=Store)
    evicted: list[tuple[str, str]] = field(default_factory=list)
    usage: dict[str, NodeUsage] = field(default_factory=dict)
    metrics: list[MetricSample] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    ends: dict[Key, int] = field(default_factory=dict)
    applied: list[list[str]] = field(default_factory=list)
    uids: int = 0
    closed: bool = False

    def now(self) -> int:
        return self.time

    def apply(self, manifests: Sequence[Manifest]) -> list[str | None]:
        self.applied.append([manifest["metadata"]["name"] for manifest in manifests])
        return [self._apply(manifest) for manifest in manifests]

    def _apply(self, manifest: Manifest) -> str | None:
        annotations = manifest["metadata"].get("annotations") or {}
        if "refuse" in annotations:
            if "leak" in annotations:
                self._store(manifest)
            return f"{manifest['kind']} {manifest['metadata']['name']}: refused, {annotations['refuse']}"
        self._store(manifest)
        return None

    def _store(self, manifest: Manifest) -> None:
        old = self.facts.get(key_of(manifest))
        self.uids += not old
        item = from_manifest(manifest, uid=old.uid if old else f"uid-{self.uids}")
        created = old.created if old else item.created or rfc3339(self.time)
        status = old.status if old else item.status
        self.facts.put(item.changed(metadata={**item.metadata, "creationTimestamp": created}, status=status))

    def delete(self, key: Key) -> str | None:
        found = self.facts.get(key)
        if found is None:
            return f"{key} does not exist"
        if "keep" in found.annotations:
            return f"{key} is kept"
        self.facts.remove(key)
        for owned in self.facts.owned_by(found.uid):
            self.delete(owned.key)
        return None

    def put_nodes(self, manifests: Sequence[Manifest]) -> None:
        for manifest in manifests:
            self._store(manifest)

    def seed(self, manifests: Sequence[Manifest]) -> None:
        for manifest in manifests:
            self._store(manifest)

    def patch_node(self, name: str, change: Manifest) -> None:
        node = self.facts.objects[Key("Node", "", name)]
        self.facts.remove(node.key)
        self._store(merge({**node.manifest()}, change))

    def delete_node(self, name: str) -> None:
        self.facts.remove(Key("Node", "", name))

    def set_pod(self, namespace: str, name: str, report: PodReport) -> None:
        pod = self.facts.objects[Key("Pod", namespace, name)]
        status: dict[str, Any] = {}
        if report.phase:
            status["phase"] = report.phase
        if report.ready is not None:
            status["conditions"] = [{"type": "Ready", "status": str(report.ready)}]
        if report.exit_code is not None:
            status["containerStatuses"] = [{"state": {"terminated": {"exitCode": report.exit_code}}}]
        self._status(pod, status)

    def _status(self, pod: Object, status: Manifest) -> None:
        self.facts.put(pod.changed(status=merge(pod.status, status)))

    def sample_usage(self, node: str, usage: NodeUsage) -> None:
        self.usage[node] = usage

    def sample_metrics(self, samples: Sequence[MetricSample]) -> None:
        self.metrics += samples

    def advance(self, ms: int) -> None:
        self.time += ms
        for key, end in list(self.ends.items()):
            if end <= self.time and self.facts.get(key):
                self._status(self.facts.objects[key], {"phase": "Succeeded"})
                del self.ends[key]

    def settle(self) -> None:
        if "crash" in self.faults:
            raise RuntimeError("the scheduler is gone")
        for pod in pods_of(self.facts):
            if pod.labels.get("evict") == "yes":
                self.evicted.append((pod.namespace, pod.name))
                self.facts.remove(pod.key)
        waiting = [pod for pod in pods_of(self.facts) if not node_of(pod)]
        for gang in sorted({(pod.namespace, group_of(pod) or f"/{pod.name}") for pod in waiting}):
            members = [p for p in waiting if (p.namespace, group_of(p) or f"/{p.name}") == gang]
            self._place(members, group_object(self.facts, *gang))
        self._misbehave()

    def _place(self, members: list[Object], group: Object | None) -> None:
        free = {node.name: self._free(node) for node in self.facts.of_kind("Node").values()}
        chosen: dict[Key, str] = {}
        for pod in members:
            need = footprint(pod)
            fitting = sorted(free) if "overfill" in self.faults else [n for n in sorted(free) if fits(need, free[n])]
            if fitting:
                chosen[pod.key] = fitting[0]
                free[fitting[0]] = subtract(free[fitting[0]], need)
        minimum = int(group.spec.get("minMember", 1)) if group else 1
        if len(chosen) >= minimum or "split" in self.faults:
            for pod in members:
                if pod.key in chosen:
                    self._start(pod, chosen[pod.key])

    def _free(self, node: Object) -> dict[str, int]:
        used: dict[str, int] = {}
        for pod in pods_of(self.facts):
            if node_of(pod) == node.name and not is_finished(pod):
                used = add(used, footprint(pod))
        return {} if node.spec.get("unschedulable") else subtract(parse_amounts(node.status["allocatable"]), used)

    def _start(self, pod: Object, node: str) -> None:
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        status = {} if self.simulate.get("podStart") == "manual" else running
        self.facts.put(pod.changed(body={**pod.body, "spec": {**pod.spec, "nodeName": node}}, status=status))
        if "simulate/duration" in pod.annotations:
            self.ends[pod.key] = self.time + parse_duration(pod.annotations["simulate/duration"])

    def _misbehave(self) -> None:
        pods = [pod for pod in pods_of(self.facts) if pod.labels.get("hit") == "yes"]
        for pod in pods:
            if "lose" in self.faults:
                self.facts.remove(pod.key)
            if "move" in self.faults and node_of(pod):
                self.facts.put(pod.changed(body={**pod.body, "spec": {**pod.spec, "nodeName": "elsewhere"}}))

    def restart(self, roles: Sequence[str]) -> None:
        self.restarted += roles

    def store(self) -> Store:
        return self.facts

    def evictions(self) -> list[tuple[str, str]]:
        return list(self.evicted)

    def environment(self, pod: Object) -> dict[str, str]:
        return {one["name"]: one["value"] for one in pod.spec["containers"][0].get("env", [])}

    def replicas(self, key: Key) -> int | None:
        found = self.facts.get(key)
        return int(found.spec["replicas"]) if found else None

    def traffic(self, key: Key) -> dict[str, int]:
        found = self.facts.get(key)
        return dict(found.spec.get("traffic", {})) if found else {}

    def cgroup(self, node: str, path: str) -> str | None:
        return self.files.get((node, path))

    def pod_message(self, pod: Object) -> str:
        return "" if node_of(pod) else f"no node has room for {pod.name}, {phase_of(pod)}"

    def violations(self) -> list[str]:
        return ["the books do not add up"] if "books" in self.faults else []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def scenario() -> Callable[..., Scenario]:
    """Makes a scenario of its steps."""

    def make(*steps: Manifest, **top: Any) -> Scenario:
        return parse_scenario(
            {"scenario": "s", "area": "gang", "title": "t", "origin": "o", "steps": list(steps), **top}
        )

    return make


@pytest.fixture
def clusters() -> list[NaiveCluster]:
    """The clusters that a test's runs were made against, the last one last."""
    return []


@pytest.fixture
def open_naive() -> Callable[..., NaiveCluster]:
    """Opens a naive cluster that does nothing wrong."""
    return NaiveCluster


@pytest.fixture
def run(scenario: Callable[..., Scenario], clusters: list[NaiveCluster]) -> Callable[..., Result]:
    """Runs steps against a fresh naive cluster; ``faults`` says what it does wrong, ``files`` what its agent wrote."""

    def run_steps(
        *steps: Manifest, faults: Sequence[str] = (), files: dict[tuple[str, str], str] | None = None, **top: Any
    ) -> Result:
        def open_cluster(policy: Manifest, simulate: Manifest, seed: int) -> NaiveCluster:
            clusters.append(NaiveCluster(policy, simulate, seed, frozenset(faults), files=files or {}))
            return clusters[-1]

        return run_scenario(scenario(*steps, **top), open_cluster)

    return run_steps
