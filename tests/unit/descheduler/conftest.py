"""A cluster in memory for the core of descheduler: it stores objects, carries decisions out, and makes pods again."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from descheduler.domain.core import DeschedulerCore
from descheduler.domain.policy.policy import DeschedulerPolicy
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339

START = 1_767_225_600_000
MINUTE = 60_000
MIGRATION = "PodMigrationJob.scheduling.koordinator.sh"
RESERVATION = "Reservation.scheduling.koordinator.sh"


class Cluster:
    """Facts and decisions around one core. Reservations are placed on the node that they ask for, at once, while ``places``."""

    def __init__(self, policy: Manifest | None = None) -> None:
        self.policy = DeschedulerPolicy.of(policy or {})
        self.store = Store()
        self.now = START
        self.decided: list[Decision] = []
        self.places = True
        self.evicted: list[str] = []
        self._uids, self._ids = count(1), count(1)
        self.new_core()
        self.step()

    def new_core(self, *, private: bytes | None = None, order: Sequence[Object] | None = None) -> DeschedulerCore:
        """A core that knows what the facts tell, in whatever order."""
        self.core = DeschedulerCore(self.policy)
        self.core.read_from(self.store)
        if private:
            self.core.restore(private)
        if order is not None:
            self.store = Store()
            for item in order:
                self.store.put(item)
            self.core.read_from(self.store)
        self.core.fold([Event(None, item) for item in self.store.objects.values()], self.now)
        return self.core

    # --- what there is -------------------------------------------------------------------------------------------

    def node(self, name: str, cpu: int = 10, *, taints: Any = None, **labels: str) -> Object:
        spec: Manifest = {"taints": taints} if taints else {}
        allocatable = {"cpu": str(cpu), "memory": "40Gi", "pods": "110"}
        return self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
                "status": {"allocatable": allocatable, "capacity": allocatable},
            }
        )

    def workload(self, name: str, replicas: int) -> Object:
        return self.put(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {"replicas": replicas}}
        )

    def pod(
        self,
        name: str,
        node: str,
        owner: Object | None = None,
        *,
        cpu: str = "1",
        ready: bool = True,
        phase: str = "Running",
        **more: Any,
    ) -> Object:
        """``more`` may have metadata and spec."""
        owners = {"ownerReferences": [reference(owner)]} if owner is not None else {}
        labels = {"app": owner.name} if owner is not None else {}
        metadata = merge({"name": name, "labels": labels, **owners}, more.get("metadata") or {})
        spec = merge(
            {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
            more.get("spec") or {},
        )
        told = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": phase, "conditions": [told], "startTime": rfc3339(self.now)}
        return self.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})

    def budget(self, app: str, minimum: int) -> Object:
        healthy = sum(pod.labels.get("app") == app for pod in self.store.of_kind("Pod").values())
        status = {"disruptionsAllowed": max(0, healthy - minimum), "desiredHealthy": minimum, "currentHealthy": healthy}
        spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": minimum}
        manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}}
        return self.put({**manifest, "spec": spec, "status": status})

    def usage(self, node: str, pods: dict[str, int], system: int = 0) -> Object:
        """A report of now, in milli-cores."""
        told = [
            {"namespace": "default", "name": name, "podUsage": {"resources": {"cpu": f"{cpu}m"}}}
            for name, cpu in sorted(pods.items())
        ]
        status = {
            "updateTime": rfc3339(self.now),
            "nodeMetric": {"systemUsage": {"resources": {"cpu": f"{system}m"}}},
            "podsMetric": told,
        }
        manifest = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": node}}
        return self.put({**manifest, "status": status})

    def job(self, pod: str, name: str = "move", **spec: Any) -> Object:
        manifest = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob"}
        wanted = {"mode": "EvictDirectly", "podRef": {"namespace": "default", "name": pod}, **spec}
        return self.put({**manifest, "metadata": {"name": name}, "spec": wanted})

    def put(self, manifest: Manifest) -> Object:
        item = from_manifest(manifest)
        old = self.store.get(item.key)
        uid = old.uid if old is not None else f"uid-{next(self._uids):06d}"
        metadata = {
            "creationTimestamp": rfc3339(self.now),
            **(old.metadata if old is not None else {}),
            **item.metadata,
        }
        return self._store(item.changed(uid=uid, metadata=metadata))

    def get(self, kind: str, name: str) -> Object | None:
        namespace = "" if kind in (MIGRATION, RESERVATION, "Node") else "default"
        return self.store.get(Key(kind, namespace, name))

    def remove(self, key: Key) -> None:
        event = self.store.remove(key)
        if event is not None:
            self.core.fold([event], self.now)

    # --- what happens --------------------------------------------------------------------------------------------

    def step(self, ms: int = 0) -> list[Decision]:
        """Let time pass, and everything settle; what was decided."""
        self.now += ms
        made: list[Decision] = []
        for _ in range(200):
            decisions = self.core.decide(self.now, frozenset())
            assert self.core.check() == []
            if not decisions:
                break
            made += decisions
            numbered = [(f"d/{next(self._ids)}", decision) for decision in decisions]
            for decision_id, decision in numbered:
                self.core.assume(decision_id, decision)
            for decision_id, decision in numbered:
                for mutation in decision.mutations:
                    self._apply(mutation)
                self.core.settle(Outcome(decision_id, decision.name, decision.subject, True))
        else:
            raise AssertionError("it never comes to rest")
        self.decided += made
        return made

    def _apply(self, mutation: Mutation) -> None:
        item = self.store.get(mutation.key)
        match mutation.verb:
            case Verb.CREATE:
                assert mutation.manifest is not None
                made = self.put(mutation.manifest)
                if made.kind == RESERVATION:
                    self._place(made)
            case Verb.PATCH if item is not None and mutation.patch:
                metadata = merge(item.metadata, mutation.patch.get("metadata") or {})
                body = merge(item.body, {name: mutation.patch[name] for name in mutation.patch if name == "spec"})
                self._store(item.changed(metadata=metadata, body=body))
            case Verb.STATUS if item is not None and mutation.patch:
                self._store(item.changed(status=merge(item.status, mutation.patch)))
            case Verb.EVICT if item is not None:
                self.evicted.append(item.name)
                self._leave(item)
            case Verb.DELETE:
                self.remove(mutation.key)

    def _place(self, reservation: Object) -> None:
        """Where it asks to be; it waits where it names no node."""
        spec = reservation.spec["template"]["spec"]
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        wanted = [one["values"][0] for term in terms for one in term["matchFields"] if one["operator"] == "In"]
        if wanted and self.places:
            self._store(reservation.changed(status={"phase": "Available", "nodeName": wanted[0]}))

    def _leave(self, pod: Object) -> None:
        """Its controller makes it again, where a reservation is for it, else nowhere; other pods of its node use what they did."""
        self.remove(pod.key)
        owner = pod.controller
        standing = [
            one
            for one in self.store.of_kind(RESERVATION).values()
            if one.status.get("phase") == "Available"
            and one.spec["owners"][0]["controller"]["uid"] == (owner or {}).get("uid")
        ]
        if owner is None or not standing:
            return
        node = str(standing[0].status["nodeName"])
        made = self.put(
            {
                **pod.manifest(),
                "metadata": {"name": f"{pod.name}x", "labels": pod.labels, "ownerReferences": [owner]},
                "spec": {**pod.spec, "nodeName": node},
                "status": {**pod.status, "startTime": rfc3339(self.now)},
            }
        )
        owners = [{"kind": "Pod", "namespace": made.namespace, "name": made.name, "uid": made.uid}]
        self._store(standing[0].changed(status={**standing[0].status, "phase": "Succeeded", "currentOwners": owners}))

    def _store(self, item: Object) -> Object:
        self.core.fold([self.store.put(item)], self.now)
        return item


def reference(owner: Object) -> Manifest:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner.name, "uid": owner.uid, "controller": True}


@pytest.fixture
def make_cluster() -> type[Cluster]:
    """Makes clusters."""
    return Cluster
