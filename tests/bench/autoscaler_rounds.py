"""What a round of many autoscalers costs whose samples are all new, and what a sample costs that is handed in."""

import math
import time
from collections.abc import Callable

from tests.bench.autoscaler_core import AutoscaledCluster, deployment, reading, running_pod
from tests.bench.figures import Figure, at_most, median

from chassis.garbage import search_in_steps
from inference_autoscaler.domain.horizontal.desk import SYNC_MS
from kube import Manifest

START = 1_767_225_600_000
SERVICES, ROUNDS, TOGETHER = 1_000, 7, 20
EXTERNAL, OBJECTS, OF_PODS, PODS = 5, 2, 2, 2
"""Metrics of each kind of one autoscaler, with cpu of its pods ten in all; and the pods of its target."""


async def autoscaler_rounds() -> list[Figure]:
    """Every sample is another than in the round before, and every status has to be told."""
    search_in_steps()  # as the services do
    cluster = AutoscaledCluster(START)
    names = [f"s{number:05}" for number in range(SERVICES)]
    for name in names:
        pods = (running_pod(f"{name}-{number}", name, START - 600_000) for number in range(PODS))
        cluster.put(deployment(name, PODS), _autoscaler(name), *pods)
    _sample(cluster, names, 0)
    cluster.look()
    took = []
    for number in range(ROUNDS):
        _sample(cluster, names, number + 1)
        cluster.now += SYNC_MS
        began = time.process_time()
        found = cluster.core.decide(cluster.now, frozenset())
        cluster.core.remember_parts()
        took.append((time.process_time() - began) * 1000)
        assert len(found) == SERVICES, f"{len(found)} of {SERVICES} autoscalers were decided about"
        cluster.carry_out(found)
    plain = _plain_ms()
    beside = f"10,000 ratios as floats, nothing else: {plain:.1f} ms"
    return [
        at_most("a decision for 1,000 autoscalers with 10 metrics each", median(took), "ms", 100, beside, plain),
        at_most("  a sample of one of their metrics between rounds", _sample_us(cluster, names), "µs", 50),
    ]


def _sample_us(cluster: AutoscaledCluster, names: list[str]) -> float:
    """Samples come in sets of 20, all in one round: folded, looked at and remembered."""
    took = 0.0
    for first in range(0, len(names), TOGETHER):
        told = [
            reading(f"{name}-e0", "e0", "7", cluster.now, labels={"service": name}) for name in names[first:][:TOGETHER]
        ]
        began = time.process_time()
        cluster.put(*told)
        assert cluster.core.decide(cluster.now, frozenset()) == []
        cluster.core.remember_parts()
        took += time.process_time() - began
    return took / len(names) * 1e6


def _sample(cluster: AutoscaledCluster, names: list[str], salt: int) -> None:
    """A new value of everything, around the targets: sizes move now and then."""
    for number, name in enumerate(names):
        value, now, labels = str(95 + (salt + number) % 10), cluster.now, {"service": name}
        for metric in range(EXTERNAL):
            cluster.put(reading(f"{name}-e{metric}", f"e{metric}", value, now, labels=labels))
        for metric in range(OBJECTS):
            cluster.put(reading(f"{name}-o{metric}", f"o{metric}", value, now, ("v1", "Service", name)))
        for pod in (f"{name}-{number}" for number in range(PODS)):
            for own, used in (("p0", value), ("p1", value), ("cpu", f"{value}0m")):
                cluster.put(reading(f"{pod}-{own}", own, used, now, ("v1", "Pod", pod)))


def _autoscaler(name: str) -> Manifest:
    def of(kind: str, field: str, count: int, prefix: str, **more: Manifest) -> list[Manifest]:
        target = {"type": "AverageValue", "averageValue": "50"}
        return [{"type": kind, field: {**_named(f"{prefix}{n}", **more), "target": target}} for n in range(count)]

    share = {"type": "Utilization", "averageUtilization": 50}
    metrics = [
        *of("External", "external", EXTERNAL, "e", selector={"matchLabels": {"service": name}}),
        *of("Object", "object", OBJECTS, "o", describedObject={"apiVersion": "v1", "kind": "Service", "name": name}),
        *of("Pods", "pods", OF_PODS, "p"),
        {"type": "Resource", "resource": {"name": "cpu", "target": share}},
    ]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": metrics}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def _named(name: str, selector: Manifest | None = None, **more: Manifest) -> Manifest:
    return {"metric": {"name": name, **({"selector": selector} if selector else {})}, **more}


def _plain_ms() -> float:
    """The same number of ratios in floats: what the formula itself costs."""
    values = [float(number % 150) for number in range(10 * SERVICES)]
    ask: Callable[[float], float] = math.ceil
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for first in range(0, len(values), 10):
            max(ask(value / 50) for value in values[first : first + 10])
        took.append((time.process_time() - began) * 1000)
    return median(took)
