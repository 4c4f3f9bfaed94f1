"""A toy cluster: facts are made by hand, decisions of the core under test are carried out at once, as a gateway would."""

import json
from dataclasses import dataclass, field, fields
from itertools import takewhile
from typing import Any

import pytest

from gang_scheduler.domain.core import SchedulerCore
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339
from kube.devices import annotations_of
from resources import parse_amounts
from testing.scenarios.cards import given_twice
from testing.scenarios.promises import Promises
from testing.scenarios.waits import unexplained

START_MS = 1_767_225_600_000
GROUP = "PodGroup.scheduling.volcano.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"

CHOICES = tuple(takewhile(lambda item: item.init, fields(SchedulerCore)))
"""The core's fields that its owner chooses: those before its state."""

BOUND = {"type": "PodScheduled", "status": "True", "reason": "Bound"}


@dataclass
class Toy:
    """A cluster of nodes, pods and groups, with one scheduler. ``phase`` is what becomes of a pod that is bound."""

    core: SchedulerCore = field(default_factory=SchedulerCore)
    store: Store = field(default_factory=Store)
    now: int = START_MS
    phase: str = "Running"
    checks: bool = True
    log: list[Decision] = field(default_factory=list)
    queues: dict[str, Manifest] = field(default_factory=lambda: {"default": {}})
    heard: bool = False
    lingering: bool = False
    """Whether evicted pods stay until ``gone`` says that they have left."""

    evicted: list[str] = field(default_factory=list)
    _made: int = 0
    _told: Decision | None = None
    _promises: Promises = field(default_factory=Promises)

    def put(self, *manifests: Manifest) -> None:
        """Objects appear or change, all in one change set."""
        events = []
        for manifest in manifests:
            self._made += 1
            new = from_manifest(manifest, uid=f"uid-{self._made}", revision=self._made)
            old = self.store.get(new.key)
            if old is not None:
                new = new.changed(uid=old.uid)
            metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", **new.metadata}
            events.append(self.store.put(new.changed(metadata=metadata)))
        self.fold(events)

    def fold(self, events: list[Event]) -> None:
        """The core takes in a change set."""
        self.core.fold(events, self.now)

    def delete(self, *keys: Key) -> None:
        """Objects are gone."""
        self.fold([event for key in keys if (event := self.store.remove(key))])

    def node(
        self,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        spec: Any = None,
        inventory: Any = None,
        **allocatable: Any,
    ) -> None:
        """A node is there; ``gpu`` stands for example.com/gpu, ``inventory`` is what its agent reports."""
        if "gpu" in allocatable:
            allocatable["example.com/gpu"] = allocatable.pop("gpu")
        labels = {"kubernetes.io/hostname": name, **(labels or {})}
        annotations = {"tidegate.dev/inventory": json.dumps(inventory)} if inventory else {}
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels, "annotations": annotations},
                "spec": spec or {},
                "status": {"allocatable": {"pods": 110, **allocatable}},
            }
        )

    def group(self, name: str, least: int, *, phase: str = "Inqueue", annotations: Any = None, **spec: Any) -> None:
        """A PodGroup that its queue has let in."""
        self.put(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": name, "annotations": annotations or {}},
                "spec": {"minMember": least, **spec},
                "status": {"phase": phase},
            }
        )

    def reservation(self, name: str, *, cpu: Any, labels: Any = None, metadata: Any = None, **spec: Any) -> None:
        """A Reservation of ``cpu`` for pods with ``labels`` (all of app: a by default); the rest is its spec."""
        pod = spec.pop("pod", {"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
        owners = spec.pop("owners", [{"labelSelector": {"matchLabels": labels or {"app": "a"}}}])
        self.put(
            {
                "apiVersion": "scheduling.koordinator.sh/v1alpha1",
                "kind": "Reservation",
                "metadata": {"name": name, **(metadata or {})},
                "spec": {"template": {"spec": pod}, "owners": owners, **spec},
                "status": self.reserved(name) if Key(RESERVATION, "", name) in self.store.objects else {},
            }
        )

    def reserved(self, name: str) -> Manifest:
        """The status of a Reservation."""
        return self.store.objects[Key(RESERVATION, "", name)].status

    def pods(self, name: str, count: int = 1, **parts: Any) -> None:
        """``count`` pods ``name-0`` … (just ``name`` for one) of one template; see pod_manifest."""
        names = [name] if count == 1 else [f"{name}-{number}" for number in range(count)]
        self.put(*(pod_manifest(item, **parts) for item in names))

    def entitle(self) -> None:
        """The queue manager says what the queues are."""
        payload = {"version": self._made, "queues": {name: _amounts(item) for name, item in self.queues.items()}}
        self._told = Decision("EntitlementsComputed", Key("", "", ""), payload=payload)
        self.core.hear("queue_manager", self._told)
        self.heard = True

    def settle(self, rounds: int = 50) -> list[Decision]:
        """Decide and carry out until nothing is left to do; returns what was decided."""
        if not self.heard:
            self.entitle()
        made: list[Decision] = []
        for _ in range(rounds):
            decided = self.core.decide(self.now, frozenset())
            if not decided:
                if self.checks:
                    assert self.faults() == []
                return made
            for decision in decided:
                made.append(decision)
                self.core.assume(f"d{len(self.log)}", decision)
                self.log.append(decision)
                if self.checks:
                    assert self.core.check() == []
            first = len(self.log) - len(decided)
            for number, decision in enumerate(decided):
                self.apply(decision)
                self._promises.note(decision)
                self.core.settle(Outcome(f"d{first + number}", decision.name, decision.subject, True))
            if self.checks:
                assert self.core.check() == []
        raise AssertionError(f"still deciding after {rounds} rounds: {made[-1]}")

    def faults(self) -> list[str]:
        """What must not be so once all is settled, though the books may balance."""
        return [
            *self._promises.broken(self.store),
            *given_twice(self.store),
            *unexplained(self.let_in(), self.store, self.core.schedulers),
            *self.undone(),
        ]

    def let_in(self) -> list[Object]:
        """All pods but those that their queue keeps waiting, whose manager is not here to say why."""
        return [record.pod for record in self.core.cluster.pods.values() if record.group.let_in]

    def undone(self) -> list[str]:
        """What a successor would do that knows the facts, what it was told and what was remembered, and nothing else."""
        successor = SchedulerCore(**{item.name: getattr(self.core, item.name) for item in CHOICES})
        before = self.core._remembered
        remembered, self.core._remembered = self.core.remember() or before, before
        if remembered:
            successor.restore(remembered)
        successor.fold([Event(None, item) for item in self.store.objects.values()], self.now)
        if self._told is not None:
            successor.hear("queue_manager", self._told)
        made = successor.decide(self.now, frozenset())
        return [f"undone: {one.name} of {one.subject}" for one in made if any(map(self._acts, one.mutations))]

    def _acts(self, mutation: Mutation) -> bool:
        """Whether it changes more than what people are told."""
        old = self.store.get(mutation.key)
        if mutation.verb is not Verb.STATUS or old is None:
            return True
        new = merge(old.status, mutation.patch or {})
        return {**new, "conditions": None} != {**old.status, "conditions": None}

    def apply(self, decision: Decision) -> None:
        """Make the facts that a decision asks for."""
        events = []
        for mutation in decision.mutations:
            old = self.store.get(mutation.key)
            if old is None or old.uid != mutation.uid:
                continue
            if mutation.verb is Verb.BIND:
                spec = {**old.spec, "nodeName": mutation.node}
                conditions = [{**BOUND, "lastTransitionTime": rfc3339(self.now)}]
                status = merge(old.status, {"phase": self.phase, "conditions": conditions})
                told = annotations_of(mutation.devices or {})
                metadata = {**old.metadata, "annotations": {**old.annotations, **told}} if told else old.metadata
                bound = old.changed(metadata=metadata, body={**old.body, "spec": spec}, status=status)
                events.append(self.store.put(bound))
            elif mutation.verb is Verb.EVICT:
                self.evicted.append(old.name)
                if self.lingering:
                    metadata = {**old.metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}
                    events.append(self.store.put(old.changed(metadata=metadata)))
                else:
                    events += [event for event in [self.store.remove(old.key)] if event]
            elif mutation.verb is Verb.PATCH:
                patch = dict(mutation.patch or {})
                metadata = merge(old.metadata, patch.pop("metadata", {}))
                events.append(self.store.put(old.changed(metadata=metadata, body=merge(old.body, patch))))
            elif mutation.verb is Verb.DELETE:
                events += [event for event in [self.store.remove(old.key)] if event]
            elif mutation.verb is Verb.STATUS:
                events.append(self.store.put(old.changed(status=merge(old.status, mutation.patch or {}))))
        self.fold(events)

    def gone(self, *names: str) -> None:
        """Pods have left their nodes."""
        self.delete(*(Key("Pod", "default", name) for name in names))

    def finish(self, *names: str, phase: str = "Succeeded") -> None:
        """The node reports a phase of pods."""
        found = [self.pod(name) for name in names]
        self.fold([self.store.put(pod.changed(status=merge(pod.status, {"phase": phase}))) for pod in found])

    def pod(self, name: str) -> Object:
        return self.store.objects[Key("Pod", "default", name)]

    def place_of(self, name: str) -> Manifest:
        """The NUMA nodes and CPUs of a pod, as far as it was told."""
        told: Manifest = json.loads(self.pod(name).annotations.get("scheduling.koordinator.sh/resource-status", "{}"))
        return told

    def where(self, name: str) -> str:
        """The node of a pod, "" while it has none."""
        return str(self.pod(name).spec.get("nodeName") or "")

    def bound(self, prefix: str = "") -> list[str]:
        """The pods that have a node, by name."""
        pods = self.store.of_kind("Pod").values()
        return sorted(pod.name for pod in pods if pod.name.startswith(prefix) and pod.spec.get("nodeName"))

    def message(self, name: str) -> str:
        """Why a pod waits, as its status says."""
        conditions = self.pod(name).status.get("conditions") or []
        return next((str(item["message"]) for item in conditions if item["type"] == "PodScheduled"), "")

    def status(self, name: str) -> Manifest:
        """The status of a PodGroup."""
        return self.store.objects[Key(GROUP, "default", name)].status

    def explain(self, kind: str, name: str) -> Manifest:
        return self.core.query("explain", {"kind": kind, "namespace": "default", "name": name})


def pod_manifest(
    name: str, *, group: str = "", role: str = "", queue: str = "", node: str = "", **parts: Any
) -> Manifest:
    """A pod: ``cpu``, ``memory``, ``gpu`` and ``requests`` are asked for, ``labels`` and ``annotations`` metadata, all else its spec."""
    requests = {key: parts.pop(key) for key in ("cpu", "memory") if key in parts} | parts.pop("requests", {})
    if "gpu" in parts:
        requests["example.com/gpu"] = parts.pop("gpu")
    annotations = dict(parts.pop("annotations", {}))
    if group:
        annotations["scheduling.k8s.io/group-name"] = group
    if role:
        annotations["volcano.sh/task-spec"] = role
    if queue:
        annotations["scheduling.volcano.sh/queue-name"] = queue
    metadata: Manifest = {"name": name, "annotations": annotations, "labels": parts.pop("labels", {})}
    if "created" in parts:
        metadata["creationTimestamp"] = parts.pop("created")
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}], **parts}
    if node:
        spec["nodeName"] = node
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _amounts(item: Manifest) -> Manifest:
    named = ("deserved", "guarantee", "capability")
    return {**item, **{name: parse_amounts(item[name]) for name in named if name in item}}


@pytest.fixture
def toy() -> Toy:
    """An empty cluster."""
    return Toy()


@pytest.fixture
def new_toy() -> type[Toy]:
    """Makes clusters, for tests that need many."""
    return Toy
