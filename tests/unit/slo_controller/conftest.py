"""A cluster in memory for the core of slo_controller: it stores objects, carries out decisions, and gives outcomes."""

from typing import Any

import pytest

from kube import Decision, Event, Key, Mutation, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339
from kube.colocation import QOS_LABEL
from slo_controller.domain import SloCore, SloPolicy
from slo_controller.domain.configuration.config_map import CONFIG_MAP

START = 1_767_225_600_000
MINUTE = 60_000
ON = {"enable": True}


class Toy:
    """Facts and decisions around one core."""

    def __init__(self, colocation: dict[str, Any] | None = None, node_slo: dict[str, Any] | None = None) -> None:
        self.policy = SloPolicy.of(colocation or {}, node_slo or {})
        self.store, self.now, self._uids = Store(), START, 0
        self.private: bytes | None = None
        self.decided: list[Decision] = []
        self.core = self._new_core()

    def _new_core(self) -> SloCore:
        core = SloCore(self.policy)
        core.read_from(self.store)
        if self.private is not None:
            core.restore(self.private)
        return core

    def successor(self) -> SloCore:
        """A core that is made from the facts and what was committed."""
        core = self._new_core()
        core.fold([Event(None, item) for item in self.store.objects.values()], self.now)
        return core

    def restart(self) -> None:
        """The service starts anew."""
        self.core = self.successor()

    # --- facts ---------------------------------------------------------------------------------------------------

    def put(self, manifest: dict[str, Any]) -> Object:
        """Store an object, or a new version of it, as a whole."""
        item = from_manifest(manifest)
        old = self.store.get(item.key)
        self._uids += old is None
        uid = old.uid if old is not None else f"u{self._uids}"
        return self._store(item.changed(uid=uid, metadata={"creationTimestamp": rfc3339(self.now)} | item.metadata))

    def _store(self, item: Object) -> Object:
        self.core.fold([self.store.put(item)], self.now)
        return item

    def remove(self, key: Key) -> None:
        event = self.store.remove(key)
        assert event is not None
        self.core.fold([event], self.now)

    def node(self, name: str = "n", cpu: str = "100", memory: str = "100G", **parts: Any) -> Object:
        amounts = {"cpu": cpu, "memory": memory}
        metadata = {"name": name, "labels": parts.get("labels", {}), "annotations": parts.get("annotations", {})}
        status = {"capacity": parts.get("capacity", amounts), "allocatable": amounts}
        return self.put({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    def pod(self, name: str, node: str = "n", qos: str = "LS", priority: int = 9500, **parts: Any) -> Object:
        requests = {"cpu": parts.get("cpu", "1"), "memory": parts.get("memory", "1G")}
        containers = parts.get("containers") or [{"name": "main", "resources": {"requests": requests}}]
        metadata = {"name": name, "namespace": "default", "labels": {QOS_LABEL: qos}, **parts.get("metadata", {})}
        spec = {"nodeName": node, "priority": priority, "containers": containers}
        status = {"phase": "Running", **parts.get("status", {})}
        return self.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})

    def use(self, node: str = "n", system: tuple[str, str] = ("0", "0"), **pods: tuple[str, str]) -> Object:
        """One sample of a node, now: cpu and memory of the system and of pods in the namespace default."""

        def resources(cpu: str, memory: str) -> dict[str, Any]:
            return {"resources": {"cpu": cpu, "memory": memory}}

        status = {
            "updateTime": rfc3339(self.now),
            "nodeMetric": {"nodeUsage": resources("0", "0"), "systemUsage": resources(*system)},
            "podsMetric": [
                {"namespace": "default", "name": name.replace("_", "-"), "podUsage": resources(*used)}
                for name, used in pods.items()
            ],
        }
        api = "slo.koordinator.sh/v1alpha1"
        return self.put({"apiVersion": api, "kind": "NodeMetric", "metadata": {"name": node}, "status": status})

    def configure(self, **data: str) -> Object:
        """The ConfigMap; ``resource_threshold_config`` is the key resource-threshold-config."""
        metadata = {"name": CONFIG_MAP.name, "namespace": CONFIG_MAP.namespace}
        content = {name.replace("_", "-"): text for name, text in data.items()}
        return self.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content})

    # --- time and decisions --------------------------------------------------------------------------------------

    def settle(self) -> list[Decision]:
        """Let the core decide and the cluster obey until nothing is left to do; what was decided."""
        made: list[Decision] = []
        for _ in range(20):
            decisions = self.core.decide(self.now, frozenset())
            private = self.core.remember()
            self.private = self.private if private is None else private
            assert self.core.check() == []
            if not decisions:
                self.decided += made
                return made
            for number, decision in enumerate(decisions):
                self._obey(decision)
                self.core.settle(Outcome(f"d{number}", decision.name, decision.subject, True))
            made += decisions
        raise AssertionError(f"it never settles: {made[-1]}")

    def advance(self, ms: int) -> list[Decision]:
        """Let time pass, deadline by deadline."""
        made, until = self.settle(), self.now + ms
        while (due := self.core.deadline()) is not None and due <= until:
            self.now = max(due, self.now)
            made += self.settle()
        self.now = until
        return made + self.settle()

    def _obey(self, decision: Decision) -> None:
        for mutation in decision.mutations:
            self._carry_out(mutation)

    def _carry_out(self, mutation: Mutation) -> None:
        if mutation.verb is Verb.CREATE:
            self.put(mutation.manifest or {})
            return
        if mutation.verb is Verb.DELETE:
            self.remove(mutation.key)
            return
        item, patch = self.store.objects[mutation.key], mutation.patch or {}
        if mutation.verb is Verb.STATUS:
            self._store(item.changed(status=merge(item.status, patch)))
            return
        body = merge(item.body, {name: part for name, part in patch.items() if name != "metadata"})
        self._store(item.changed(metadata=merge(item.metadata, patch.get("metadata") or {}), body=body))

    # --- what is there -------------------------------------------------------------------------------------------

    def lent(self, resource: str, node: str = "n") -> int | None:
        """What a node lends of ``batch-cpu`` and the like."""
        found = self.store.objects[Key("Node", "", node)].status["allocatable"].get(f"kubernetes.io/{resource}")
        return None if found is None else int(found)

    def slo(self, node: str = "n") -> Object | None:
        return self.store.get(Key("NodeSLO.slo.koordinator.sh", "", node))

    def condition(self, node: str = "n") -> dict[str, Any]:
        found = self.store.objects[Key("Node", "", node)].status["conditions"]
        return next(one for one in found if one["type"] == "ResourcesLent")


@pytest.fixture
def toy() -> Toy:
    """Co-location is on, and all else as by default."""
    return Toy(ON)


@pytest.fixture
def make_toy() -> type[Toy]:
    """For clusters with other choices."""
    return Toy
