"""inference_autoscaler's core by itself: a cluster that does at once whatever it decides."""

from typing import Any

from chassis.garbage import Renewal
from inference_autoscaler.domain.core import AutoscalerCore
from kube import Decision, Key, Manifest, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339
from kube.kinds import key_of


class AutoscaledCluster:
    """A core, the facts that it is shown, and the time."""

    def __init__(self, now: int) -> None:
        self.created = self.now = now
        self.store, self.core = Store(), AutoscalerCore()
        self.core.read_from(self.store)
        self.memory: dict[str, bytes] = {}
        self._count, self._renewal = 0, Renewal()

    def put(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            metadata = {"creationTimestamp": rfc3339(self.created), "generation": 1, **manifest["metadata"]}
            there = self.store.get(key_of(manifest))
            uid = f"uid-{self._count}" if there is None else there.uid
            self._count += 1
            self.show(from_manifest({**manifest, "metadata": metadata}, uid=uid, revision=self._count))

    def show(self, item: Object) -> None:
        self.core.fold([self.store.put(item)], self.now)
        self._renewal.count(1)  # as the fold of the facts does

    def look(self) -> None:
        """Decide and carry out, until there is nothing more to do at this moment."""
        while found := self.decide():
            self.carry_out(found)

    def decide(self) -> list[Decision]:
        """What is decided now, and what of it is remembered."""
        found = self.core.decide(self.now, frozenset())
        told = {**self.memory, **self.core.remember_parts()}
        self.memory = {name: content for name, content in told.items() if content}
        return found

    def carry_out(self, decisions: list[Decision]) -> None:
        """All of it is applied."""
        for number, decision in enumerate(decisions):
            self.core.assume(str(number), decision)
        for number, decision in enumerate(decisions):
            for mutation in decision.mutations:
                there = self.store.get(mutation.key)
                if mutation.manifest is not None:
                    self.put(mutation.manifest)
                elif mutation.patch is not None and there is not None:
                    part: dict[str, Any] = {"status": told(there.status, mutation.patch)}
                    if mutation.verb is Verb.PATCH:
                        part = {"body": merge(there.body, mutation.patch)}
                    self.show(there.changed(**part))
            self.core.settle(Outcome(str(number), decision.name, decision.subject, True))

    def ready(self, key: Key, pods: int) -> None:
        """So many pods of a Deployment serve."""
        there = self.store.objects[key]
        self.show(there.changed(status={**there.status, "replicas": pods, "availableReplicas": pods}))


def told(status: Manifest, patch: Manifest) -> Manifest:
    """The status with ``patch`` laid over it, conditions by their types."""
    listed = {one["type"]: one for one in [*(status.get("conditions") or ()), *(patch.get("conditions") or ())]}
    result: Manifest = merge(status, {name: value for name, value in patch.items() if name != "conditions"})
    return {**result, "conditions": [*listed.values()]} if listed else result


def deployment(name: str, replicas: int) -> Manifest:
    labels = {"app": name}
    containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def running_pod(name: str, app: str, since: int) -> Manifest:
    containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(since)}
    status = {"phase": "Running", "startTime": rfc3339(since), "conditions": [ready]}
    metadata = {"name": name, "labels": {"app": app}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
        "status": status,
    }


def reading(
    own: str, metric: str, value: str, now: int, of: tuple[str, str, str] | None = None, labels: Manifest | None = None
) -> Manifest:
    """A sample of a metric; ``of`` are the API version, the kind and the name of its object."""
    spec: Manifest = {"metric": {"name": metric, "labels": labels or {}}, "value": value, "timestamp": rfc3339(now)}
    if of is not None:
        spec["describedObject"] = dict(zip(("apiVersion", "kind", "name"), of, strict=True))
    return {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": own}, "spec": spec}
