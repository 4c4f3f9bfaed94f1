"""What inference_autoscaler's decisions cost: a round of many autoscalers whose samples are all new."""

import math
import time
from collections.abc import Callable

from tests.bench.figures import Figure, at_most, median

from chassis.garbage import search_in_steps
from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.horizontal.desk import SYNC_MS
from kube import Decision, Manifest, Object, Outcome, Store, Verb, from_manifest, merge, rfc3339

START = 1_767_225_600_000
SERVICES, ROUNDS = 1_000, 5
EXTERNAL, OBJECTS, OF_PODS, PODS = 5, 2, 2, 2
"""Metrics of each kind of one autoscaler, with cpu of its pods ten in all; and the pods of its target."""


async def autoscaling() -> list[Figure]:
    """One round: every sample is another than in the round before, and every status has to be told."""
    search_in_steps()  # as the services do
    world = World(SERVICES)
    took = []
    for number in range(ROUNDS):
        world.sample(number)
        world.now += SYNC_MS
        began = time.process_time()
        found = world.core.decide(world.now, frozenset())
        world.core.remember()
        took.append((time.process_time() - began) * 1000)
        assert len(found) == SERVICES, f"{len(found)} of {SERVICES} autoscalers were decided about"
        world.carry_out(found)
    plain = _plain_ms()
    beside = f"10,000 ratios as floats, nothing else: {plain:.1f} ms"
    return [at_most("a decision for 1,000 autoscalers with 10 metrics each", median(took), "ms", 60, beside, plain)]


class World:
    """A core, the facts that it is shown, and what it is told of samples."""

    def __init__(self, services: int) -> None:
        self.now, self.revision, self.services = START, 0, services
        self.store, self.core = Store(), AutoscalerCore()
        self.core.read_from(self.store)
        for number in range(services):
            for made in (_deployment, _autoscaler):
                self.put(made(f"s{number:05}"))
            for pod in range(PODS):
                self.put(_pod(f"s{number:05}", pod))
        self.sample(-1)
        self.carry_out(self.core.decide(self.now, frozenset()))
        self.core.remember()

    def put(self, manifest: Manifest) -> None:
        self.revision += 1
        metadata = {"creationTimestamp": rfc3339(START), "generation": 1, **manifest["metadata"]}
        uid = f"uid-{manifest['kind']}-{metadata['name']}"
        self._show(from_manifest({**manifest, "metadata": metadata}, uid=uid, revision=self.revision))

    def sample(self, salt: int) -> None:
        """A new value of everything, near the targets: sizes move now and then."""
        for number in range(self.services):
            name = f"s{number:05}"
            value = 95 + (salt + number) % 10
            for metric in range(EXTERNAL):
                self.put(_reading(name, f"e{metric}", None, value, self.now))
            for metric in range(OBJECTS):
                self.put(_reading(name, f"o{metric}", ("v1", "Service", name), value, self.now))
            for pod in range(PODS):
                for metric in ("p0", "p1", "cpu"):
                    self.put(_reading(name, metric, ("v1", "Pod", f"{name}-{pod}"), value, self.now))

    def carry_out(self, decisions: list[Decision]) -> None:
        """All of it is applied."""
        for number, decision in enumerate(decisions):
            self.core.assume(str(number), decision)
        for number, decision in enumerate(decisions):
            for mutation in decision.mutations:
                there = self.store.get(mutation.key)
                assert there is not None and mutation.patch is not None, mutation
                if mutation.verb is Verb.STATUS:
                    self._show(there.changed(status=merge(there.status, mutation.patch)))
                else:
                    self._show(there.changed(body=merge(there.body, mutation.patch)))
            self.core.settle(Outcome(str(number), decision.name, decision.subject, True))

    def _show(self, item: Object) -> None:
        self.core.fold([self.store.put(item)], self.now)


def _deployment(name: str) -> Manifest:
    labels = {"app": name}
    containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _pod(name: str, number: int) -> Manifest:
    containers = [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"name": f"{name}-{number}", "labels": {"app": name}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(START - 600_000)}
    status = {"phase": "Running", "startTime": rfc3339(START - 600_000), "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
        "status": status,
    }


def _autoscaler(name: str) -> Manifest:
    average = {"type": "AverageValue", "averageValue": "50"}
    share = {"type": "Utilization", "averageUtilization": 50}
    selector = {"matchLabels": {"service": name}}
    described = {"apiVersion": "v1", "kind": "Service", "name": name}
    metrics: list[Manifest] = [
        *({"type": "External", "external": {"metric": {"name": f"e{number}", "selector": selector}, "target": average}}
          for number in range(EXTERNAL)),
        *({"type": "Object", "object": {"metric": {"name": f"o{number}"}, "describedObject": described, "target": average}}
          for number in range(OBJECTS)),
        *({"type": "Pods", "pods": {"metric": {"name": f"p{number}"}, "target": average}} for number in range(OF_PODS)),
        {"type": "Resource", "resource": {"name": "cpu", "target": share}},
    ]  # fmt: skip
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "maxReplicas": 9,
        "metrics": metrics,
    }
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def _reading(name: str, metric: str, of: tuple[str, str, str] | None, value: int, now: int) -> Manifest:
    spec: Manifest = {
        "metric": {"name": metric, "labels": {"service": name}},
        "value": str(value),
        "timestamp": rfc3339(now),
    }
    own = f"{name}-{metric}"
    if of is not None:
        spec["describedObject"] = dict(zip(("apiVersion", "kind", "name"), of, strict=True))
        own = f"{of[2]}-{metric}"
    return {"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": {"name": own}, "spec": spec}


def _plain_ms() -> float:
    """The same number of ratios in floats: what the formula itself costs."""
    values = [float(number % 150) for number in range(10 * SERVICES)]
    ask: Callable[[float], float] = lambda value: math.ceil(value / 50)  # noqa: E731
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for first in range(0, len(values), 10):
            max(ask(value) for value in values[first : first + 10])
        took.append((time.process_time() - began) * 1000)
    return median(took)
