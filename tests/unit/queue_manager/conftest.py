"""A cluster in memory for the core of queue_manager: it stores objects, applies decisions, and gives outcomes."""

from typing import Any

import pytest
import yaml

from kube import Decision, Event, Key, Mutation, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339
from queue_manager.domain import QueueCore, QueuePolicy
from testing.scenarios.load import parse_scenario
from testing.scenarios.run import run_scenario
from tidegate_cli.sim.world import open_world

KUEUE_SETTING = """
- nodes: [{name: n, allocatable: {cpu: 64, memory: 128Gi}}]
- apply:
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 1000}
    - apiVersion: kueue.x-k8s.io/v1beta2
      kind: ClusterQueue
      metadata: {name: q}
      spec:
        namespaceSelector: {}
        preemption: {withinClusterQueue: LowerPriority}
        resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]
    - {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
"""

START = 1_767_225_600_000


class Cluster:
    """Facts and decisions around one core; every step checks the core's invariants."""

    def __init__(self, policy: QueuePolicy | None = None) -> None:
        self.policy = policy
        self.core = QueueCore(policy)
        self.store = Store()
        self.now = START
        self.decided: list[Decision] = []
        self.entitled: dict[str, Any] = {}
        self._uids = 0
        self.queue("root", reclaimable=False)
        self.queue("default", parent="root")

    def put(self, manifest: dict[str, Any]) -> Object:
        """Store an object as a user's apply does: its status stays."""
        item = from_manifest(manifest)
        old = self.store.get(item.key)
        if old is not None:
            return self._store(old.changed(body=item.body, metadata=old.metadata | item.metadata))
        self._uids += 1
        return self._store(
            item.changed(uid=f"u{self._uids}", metadata={"creationTimestamp": rfc3339(self.now)} | item.metadata)
        )

    def _store(self, item: Object) -> Object:
        self.core.fold([self.store.put(item)], self.now)
        return item

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        event = self.store.remove(Key(kind, namespace, name))
        assert event is not None
        self.core.fold([event], self.now)

    def status(self, key: Key, patch: dict[str, Any]) -> None:
        item = self.store.objects[key]
        self._store(item.changed(status=merge(item.status, patch)))

    def settle(self) -> list[Decision]:
        """Let the core decide and the cluster obey until nothing is left to do; returns what was decided."""
        made: list[Decision] = []
        for _ in range(100):
            decisions = self.core.decide(self.now, set())
            assert self.core.check() == []
            if not decisions and (self.core.deadline() or self.now + 1) > self.now:
                self.decided += made
                return made
            for number, decision in enumerate(decisions):
                self.core.assume(f"d{number}", decision)
            for number, decision in enumerate(decisions):
                self.apply(decision)
                self.core.settle(Outcome(f"d{number}", decision.name, decision.subject, True))
            made += decisions
        raise AssertionError(f"never comes to rest: {[decision.name for decision in made[-5:]]}")

    def apply(self, decision: Decision) -> None:
        if decision.name == "EntitlementsComputed":
            assert decision.payload is not None
            self.entitled = decision.payload["queues"]
        for mutation in decision.mutations:
            self._apply(mutation)

    def _apply(self, mutation: Mutation) -> None:
        item = self.store.get(mutation.key)
        if mutation.verb is Verb.CREATE:
            if item is None:
                assert mutation.manifest is not None
                self.put(mutation.manifest)
            return
        assert item is not None and item.uid == mutation.uid, mutation
        if mutation.verb is Verb.DELETE:
            self.remove(mutation.key.kind, mutation.key.name, mutation.key.namespace)
        elif mutation.verb is Verb.STATUS:
            self.status(mutation.key, mutation.patch or {})
        else:
            patch = mutation.patch or {}
            metadata = merge(item.metadata, patch.get("metadata", {}))
            self._store(
                item.changed(
                    metadata=metadata, body=merge(item.body, {k: v for k, v in patch.items() if k != "metadata"})
                )
            )

    # -- shorthands ------------------------------------------------------------------------------------------------

    def node(self, name: str = "n", **allocatable: Any) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": allocatable},
        }
        self.put(manifest)
        self.status(Key("Node", "", name), {"allocatable": allocatable})

    def queue(self, name: str, **spec: Any) -> None:
        self.put(
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        )

    def group(self, name: str, namespace: str = "default", **spec: Any) -> None:
        metadata = {"name": name, "namespace": namespace}
        self.put(
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}
        )

    def pod(self, name: str, requests: dict[str, Any], *, queue: str = "", group: str = "", **more: Any) -> None:
        annotations = {"scheduling.volcano.sh/queue-name": queue} if queue else {}
        annotations |= {"scheduling.k8s.io/group-name": group} if group else {}
        metadata = {"name": name, "namespace": more.pop("namespace", "default"), "annotations": annotations}
        spec = {"containers": [{"name": "c", "resources": {"requests": requests}}]} | more
        self.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def bind(self, name: str, node: str = "n") -> None:
        item = self.store.objects[Key("Pod", "default", name)]
        self._store(item.changed(body={**item.body, "spec": {**item.spec, "nodeName": node}}))

    def phase(self, name: str, phase: str) -> None:
        self.status(Key("Pod", "default", name), {"phase": phase})

    def quota(self, name: str, namespace: str = "default", **spec: Any) -> None:
        metadata = {"name": name, "namespace": namespace}
        self.put({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})

    def command(self, name: str, action: str, queue: str) -> None:
        target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue}
        manifest = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": name}}
        self.put({**manifest, "action": action, "target": target})

    def state(self, queue: str) -> str:
        return str(self.read("Queue.scheduling.volcano.sh", queue, "").status.get("state"))

    def read(self, kind: str, name: str, namespace: str = "default") -> Object:
        return self.store.objects[Key(kind, namespace, name)]

    def group_status(self, name: str, namespace: str = "default") -> dict[str, Any]:
        return self.read("PodGroup.scheduling.volcano.sh", name, namespace).status

    def told(self, name: str, namespace: str = "default") -> str:
        """The message of the group's Admitted condition while it is held."""
        conditions = self.group_status(name, namespace).get("conditions") or [{}]
        return str(conditions[0].get("message")) if conditions[0].get("status") == "False" else ""

    def deserved(self, queue: str) -> dict[str, int]:
        return dict(self.entitled[queue]["deserved"])

    def restart(self) -> None:
        """The core starts again with nothing in memory but the facts."""
        self.core = QueueCore(self.policy)
        self.core.fold([Event(None, item) for item in self.store.objects.values()], self.now)


@pytest.fixture
def cluster() -> Cluster:
    """A cluster under the default policy."""
    return Cluster()


@pytest.fixture(scope="session")
def cluster_of() -> type[Cluster]:
    """Makes a cluster under a given policy."""
    return Cluster


@pytest.fixture(scope="session")
def play() -> Any:
    """Runs steps, as YAML, after the setting of one ClusterQueue with four CPUs; they have to end as they say."""

    def run(steps: str, policy: str = "{}", simulate: str = "{}", setting: str = KUEUE_SETTING) -> None:
        document = {
            "scenario": "played",
            "area": "queue",
            "title": "t",
            "origin": "o",
            "policy": {"queueing": "cohort", **yaml.safe_load(policy)},
            "simulate": yaml.safe_load(simulate),
            "steps": [*yaml.safe_load(setting), *yaml.safe_load(steps)],
        }
        result = run_scenario(parse_scenario(document), open_world)
        assert result.passed, result

    return run


@pytest.fixture(scope="session")
def one_line() -> Any:
    """Writes a manifest as flow YAML, with more in its metadata."""

    def write(manifest: str, **metadata: Any) -> str:
        document = yaml.safe_load(manifest)
        for name, value in metadata.items():
            if isinstance(value, dict):
                document["metadata"].setdefault(name, {}).update(value)
            else:
                document["metadata"][name] = value
        return yaml.safe_dump(document, default_flow_style=True, width=10_000).strip()

    return write
