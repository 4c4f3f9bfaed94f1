"""The cluster of `day.py`: its nodes, services and batch jobs, and how much these use. All of it is made up."""

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

CPU_MILLI, MEMORY = 32_000, 128 << 30
"""Of each node."""
ONLINE_PODS, ONLINE_MILLI, ONLINE_MEMORY = 4, 6_000, 16 << 30
"""On each node; what each asks for."""
MEAN_USE, SWING, NOISE = 0.25, 0.6, 0.12
"""Of what it asked for; how far the day moves that, and the noise."""
PEAK_HOUR = 20
BURST_CHANCE, BURST_MINUTES, BURST_FACTOR = 0.001, 8, 2.0
"""Each minute; a burst doubles what the pod uses."""
BATCH_MILLI, BATCH_MEMORY = 2_000, 4 << 30
BATCH_MINUTES = (20, 120)


def curve(chance: Random, minute: int) -> Iterator[int]:
    """Milli-cores that one online pod uses, minute by minute, from that one of the day on."""
    phase, noise, burst = chance.gauss(PEAK_HOUR, 1.0), 0.0, 0
    while True:
        noise = 0.9 * noise + chance.gauss(0, NOISE * math.sqrt(1 - 0.9**2))
        burst = BURST_MINUTES if chance.random() < BURST_CHANCE else max(0, burst - 1)
        part = MEAN_USE * (1 + SWING * math.cos(2 * math.pi * (minute / 60 - phase) / 24)) * (1 + noise)
        yield int(ONLINE_MILLI * min(1.0, max(0.02, part * (BURST_FACTOR if burst else 1.0))))
        minute += 1


def node(name: str) -> dict[str, Any]:
    room = {"cpu": f"{CPU_MILLI}m", "memory": str(MEMORY), "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def online_pods(node: str) -> list[str]:
    """The names of the online pods of a node."""
    return [f"{node}-web-{number}" for number in range(ONLINE_PODS)]


def online_pod(node: str, name: str) -> dict[str, Any]:
    """It runs already."""
    made = _pod(name, "LS", 9_500, {"cpu": f"{ONLINE_MILLI}m", "memory": str(ONLINE_MEMORY)})
    made["spec"]["nodeName"] = node
    made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made


def batch_pods(chance: Random) -> Iterator[dict[str, Any]]:
    """One after the other, without end."""
    number = 0
    while True:
        amounts = {"kubernetes.io/batch-cpu": str(BATCH_MILLI), "kubernetes.io/batch-memory": str(BATCH_MEMORY)}
        made = _pod(f"batch-{number}", "BE", 5_500, amounts)
        made["metadata"]["annotations"] = {"simulate/duration": f"{chance.randint(*BATCH_MINUTES)}m"}
        yield made
        number += 1


def _pod(name: str, qos: str, priority: int, amounts: Mapping[str, str]) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": dict(amounts), "limits": dict(amounts)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"priority": priority, "containers": [container], "restartPolicy": "Never"},
    }
