"""A cluster with its built-in controllers, a scheduler that binds everything, and nodes that start everything."""

import itertools
from typing import Any

import pytest

from cluster_gateway.domain.carrying_out import perform
from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.controllers import Controllers
from cluster_gateway.domain.controllers.daemon_set import node_of
from cluster_gateway.domain.simulated_nodes import ended_status, running_status
from cluster_gateway.domain.writing import Parts, Write, store
from kube import Event, Key, Mutation, Object, key_of, rfc3339

START = 1_767_225_600_000
KINDS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "PodDisruptionBudget": "policy/v1",
}


class Town:
    """``starts`` says whether pods are bound and run at once; else only start() makes them."""

    def __init__(self, *, starts: bool = True) -> None:
        count = itertools.count(1)
        self.cluster = Cluster(lambda: f"uid-{next(count)}", now=START)
        self.controllers = Controllers(self.cluster.store)
        self.starts = starts
        self.made: list[Mutation] = []

    # -- time ------------------------------------------------------------------------------------------------------

    def react(self) -> None:
        """Until nothing is left to do now."""
        for _ in range(500):
            self.controllers.fold(self.cluster.take_events(), self.cluster.now)
            mutations = self.controllers.act(self.cluster.now)
            for mutation in mutations:
                perform(self.cluster, mutation, "cluster_gateway")
            self.made += mutations
            if not self.cluster.events and not (self.starts and self.start_all()):
                return
        raise AssertionError(f"never comes to rest: {self.made[-3:]}")

    def advance(self, seconds: float) -> None:
        """Let time pass, stopping wherever something is due."""
        self.react()
        end = self.cluster.now + int(seconds * 1000)
        while (due := self.controllers.deadline()) is not None and due <= end:
            assert due >= self.cluster.now, "what is due is not in the past"
            self.cluster.now = max(due, self.cluster.now)
            self.react()
        self.cluster.now = end
        self.react()

    def restart(self) -> None:
        """The controllers start again with nothing but the store."""
        self.controllers = Controllers(self.cluster.store)
        self.controllers.fold([Event(None, item) for item in self.cluster.store.objects.values()], self.cluster.now)

    # -- what users do ---------------------------------------------------------------------------------------------

    def apply(self, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> Object:
        api = KINDS.get(kind, "v1")
        manifest = {
            "apiVersion": api,
            "kind": kind,
            "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": spec,
        }
        store(self.cluster, Write((key_of(manifest),), Parts(metadata, {"spec": spec}, {})), "user")
        self.react()
        return self.read(kind, name)

    def pod(self, name: str, labels: dict[str, str], owner: Object | None = None, node: str = "") -> None:
        metadata: dict[str, Any] = {"labels": labels}
        if owner is not None:
            api = KINDS[owner.kind.partition(".")[0]]
            reference = {"apiVersion": api, "kind": owner.kind.partition(".")[0], "name": owner.name}
            metadata["ownerReferences"] = [{**reference, "uid": owner.uid, "controller": True}]
        spec = {"containers": [{"name": "c"}]} | ({"nodeName": node} if node else {})
        self.cluster.create(Key("Pod", "default", name), metadata, {"spec": spec}, {"phase": "Pending"})
        self.react()

    def node(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        self.cluster.create(Key("Node", "", name), {"labels": labels or {}}, {"spec": spec}, {})
        self.react()

    def delete(self, kind: str, name: str) -> None:
        self.cluster.delete(self.read(kind, name))
        self.react()

    # -- what the scheduler and nodes do ---------------------------------------------------------------------------

    def start_all(self) -> bool:
        """Bind and start every pod that waits; whether there was one."""
        waiting = [pod for pod in self.pods() if pod.status.get("phase") == "Pending" and not pod.deleting]
        for pod in waiting:
            self._start(pod)
        return bool(waiting)

    def _start(self, pod: Object) -> None:
        if not pod.spec.get("nodeName"):
            [pod] = self.cluster.bind([(pod, node_of(pod) or "n", pod.metadata)])
        self.cluster.set_status(pod, running_status(["c"], True, rfc3339(self.cluster.now)))

    def start(self, *names: str) -> None:
        for name in names:
            self._start(self.read("Pod", name))
        self.react()

    def unready(self, name: str) -> None:
        self.cluster.set_status(self.read("Pod", name), running_status(["c"], False, rfc3339(self.cluster.now)))
        self.react()

    def finish(self, name: str, phase: str = "Succeeded", code: int = 0) -> None:
        pod = self.read("Pod", name)
        self.cluster.set_status(pod, ended_status(pod, phase, code, "Error" if code else "Completed", self.cluster.now))
        self.react()

    def evict(self, name: str) -> None:
        """Taken away by the scheduler: marked, and gone at once."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}
        pod = self.cluster.set_status(self.read("Pod", name), {"conditions": [condition]})
        self.cluster.gone(pod)
        self.react()

    # -- what can be seen ------------------------------------------------------------------------------------------

    def read(self, kind: str, name: str) -> Object:
        api = KINDS.get(kind, "v1")
        group = api.partition("/")[0] if "/" in api else ""
        namespace = "" if kind in ("Node", "Namespace") else "default"
        return self.cluster.store.objects[Key(f"{kind}.{group}" if group else kind, namespace, name)]

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return self.read(kind, name).status

    def condition(self, kind: str, name: str, wanted: str) -> dict[str, Any]:
        found = [item for item in self.status(kind, name).get("conditions") or () if item["type"] == wanted]
        return found[0] if found else {}

    def pods(self) -> list[Object]:
        return sorted(self.cluster.store.of_kind("Pod").values(), key=lambda pod: pod.key)

    def live(self) -> list[Object]:
        """Pods that neither finished nor are on their way out."""
        return [pod for pod in self.pods() if not pod.deleting and pod.status["phase"] in ("Pending", "Running")]

    def names(self) -> list[str]:
        return [pod.name for pod in self.live()]


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
}


def template(image: str = "busybox:1", **spec: Any) -> dict[str, Any]:
    """A pod template with the label app=web."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


@pytest.fixture
def town() -> Town:
    """A cluster in which pods run at once."""
    return Town()


@pytest.fixture
def slow_town() -> Town:
    """A cluster in which pods start only when the test says so."""
    return Town(starts=False)


@pytest.fixture(name="template")
def template_fixture() -> Any:
    """Makes pod templates."""
    return template
