"""Autoscalers as the core sees them: facts go in, decisions come out and are applied to what it sees."""

from typing import Any

import pytest

from inference_autoscaler.domain.core import AutoscalerCore
from kube import Decision, Event, Key, Manifest, Outcome, Store, Verb, from_manifest, merge, rfc3339

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z: a whole multiple of every interval."""


def merged_status(status: Manifest, patch: Manifest) -> Manifest:
    """The status with ``patch`` laid over it, conditions by their types."""
    told = {one["type"]: one for one in status.get("conditions") or ()}
    told |= {one["type"]: one for one in patch.get("conditions") or ()}
    result = merge(status, {name: value for name, value in patch.items() if name != "conditions"})
    return {**result, "conditions": [*told.values()]} if told else result


class Cluster:
    """A core, the facts that it sees, and the time. ``restart`` makes another core of what the first one remembered."""

    def __init__(self) -> None:
        self.now, self.revision, self.memory = START, 0, dict[str, bytes]()
        self.store, self.decisions = Store(), list[Decision]()
        self.core = AutoscalerCore()
        self.core.read_from(self.store)

    def restart(self) -> None:
        self.core = AutoscalerCore()
        if self.memory:
            self.core.restore_parts(self.memory)
        self.core.read_from(self.store)
        self.core.fold([Event(None, item) for item in self.store.objects.values()], self.now)
        self.look()

    def put(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            self._put(manifest)
        self.look()

    def remove(self, key: Key) -> None:
        event = self.store.remove(key)
        assert event is not None
        self.core.fold([event], self.now)
        self.look()

    def sample(self, name: str, value: Any, labels: dict[str, str] | None = None, pod: str = "") -> None:
        """A sample of something outside the cluster, or of a pod."""
        spec: Manifest = {"metric": {"name": name, "labels": labels or {}}, "timestamp": self.time()}
        if value is not None:
            spec["value"] = value
        if pod:
            spec["describedObject"] = {"apiVersion": "v1", "kind": "Pod", "name": pod}
        own = "-".join([name, pod, *sorted((labels or {}).values())])
        self.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": own}, "spec": spec})

    def advance(self, seconds: int) -> None:
        """Let time pass; whatever the core has to do by then it does when it said it would."""
        end = self.now + seconds * 1000
        while (due := self.core.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.look()
        self.now = end

    def look(self) -> list[Decision]:
        found = self.core.decide(self.now, frozenset())
        told = {**self.memory, **self.core.remember_parts()}
        self.memory = {name: content for name, content in told.items() if content}
        self.decisions += found
        for number, decision in enumerate(found):
            self.core.assume(str(number), decision)
        for number, decision in enumerate(found):
            self._apply(decision)
            self.core.settle(Outcome(str(number), decision.name, decision.subject, True))
        assert self.core.check() == []
        return [*found, *self.look()] if found else found  # what was decided is facts by now

    def replicas(self, name: str = "web") -> int:
        return int(self.store.objects[Key("Deployment.apps", "default", name)].spec["replicas"])

    def condition(
        self, kind: str, name: str = "web", of: str = "HorizontalPodAutoscaler.autoscaling"
    ) -> tuple[str, str]:
        """Status and reason of a condition."""
        listed = self.store.objects[Key(of, "default", name)].status.get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in listed if one["type"] == kind), ("", ""))

    def deployment(self, replicas: int, name: str = "web") -> None:
        labels = {"app": name}
        containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        }
        self.put({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})

    def autoscaler(self, least: int = 1, most: int = 30, name: str = "web", **spec: Any) -> None:
        """An autoscaler of the Deployment web, by the length of a queue unless ``metrics`` says otherwise."""
        target = {"type": "AverageValue", "averageValue": "10"}
        wanted = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
            **spec,
        }
        self.put(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": wanted,
            }
        )

    def serve(
        self, image: str = "model:1", mode: str = "Serverless", model: Any = None, more: Any = None, **predictor: Any
    ) -> None:
        """An InferenceService m, with ``more`` annotations."""
        annotations = {
            "serving.kserve.io/deploymentMode": mode,
            "autoscaling.knative.dev/target-utilization-percentage": "100",
        }
        runs = {"model": model} if model else {"containers": [{"name": "kserve-container", "image": image}]}
        self.put(
            {
                "apiVersion": "serving.kserve.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": "m", "annotations": {**annotations, **(more or {})}},
                "spec": {"predictor": {"scaleTarget": 10, **runs, **predictor}},
            }
        )

    def ready(self, name: str = "m-predictor-00001-deployment", pods: int | None = None) -> None:
        """The pods of a Deployment serve: all that are wanted, or so many."""
        found = self.store.objects[Key("Deployment.apps", "default", name)]
        there = found.spec["replicas"] if pods is None else pods
        status = {"replicas": there, "availableReplicas": there}
        self.core.fold([self.store.put(found.changed(status=status))], self.now)
        self.look()

    def time(self) -> str:
        return rfc3339(self.now)

    def _put(self, manifest: Manifest) -> None:
        self.revision += 1
        metadata = {"creationTimestamp": self.time(), "generation": self.revision, **manifest["metadata"]}
        uid = metadata.get("uid") or f"uid-{manifest['kind']}-{metadata['name']}"
        new = from_manifest({**manifest, "metadata": metadata}, uid=uid, revision=self.revision)
        old = self.store.get(new.key)
        if old is not None and not manifest.get("status"):
            new = new.changed(status=old.status)
        self.core.fold([self.store.put(new)], self.now)

    def _apply(self, decision: Decision) -> None:
        for mutation in decision.mutations:
            old = self.store.get(mutation.key)
            if mutation.verb is Verb.CREATE:
                assert mutation.manifest is not None
                self._put(mutation.manifest)
            elif mutation.verb is Verb.DELETE:
                event = self.store.remove(mutation.key)
                self.core.fold([event] if event else [], self.now)
            elif old is not None and mutation.verb is Verb.STATUS:
                event = self.store.put(old.changed(status=merged_status(old.status, mutation.patch or {})))
                self.core.fold([event], self.now)
            elif old is not None:
                self._put(merge(old.manifest(), mutation.patch or {}))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def make_cluster() -> type[Cluster]:
    return Cluster
