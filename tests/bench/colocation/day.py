"""A day of a cluster whose online services use a fifth of it, without and with batch work on what they leave: in virtual time.

All services decide, the agents' rules hold back; load and use are made up: each online pod follows a curve with a peak in the
evening and a trough at night, with noise that lasts minutes and rare bursts, the same for a seed. Batch pods use all that they asked
for, or what their node's agent leaves them. `python -m tests.bench colocation-day --figures FOLDER` draws two pictures.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.bench.figures import Figure, at_least, at_most

from kube import Object
from testing.scenarios.target import NodeUsage
from tidegate_cli.sim.world import World

NODES, CPU_MILLI, MEMORY = 6, 32_000, 128 << 30
ONLINE_PODS, ONLINE_MILLI, ONLINE_MEMORY = 4, 6_000, 16 << 30
"""On each node; what each asks for."""
MEAN_USE, SWING, NOISE = 0.26, 0.6, 0.12
"""Of what it asked for; how far the day moves that, and the noise."""
BURST_CHANCE, BURST_MINUTES, BURST_FACTOR = 0.001, 8, 2.0
SYSTEM_MILLI, SYSTEM_MEMORY = 500, 4 << 30
BATCH_MILLI, BATCH_MEMORY = 2_000, 4 << 30
BATCH_MINUTES = (10, 60)
WAITING = 25
"""So many batch pods wait at any time."""
MINUTE_MS = 60_000
MINUTES = 24 * 60
WARM = 15
"""Minutes until the first figures of use have led to anything."""
POLICY = {
    "colocation": {"enable": True, "cpuReclaimThresholdPercent": 80, "memoryReclaimThresholdPercent": 80},
    "nodeAgent": {
        "resourceUsedThresholdWithBE": {
            "enable": True,
            "cpuSuppressThresholdPercent": 85,
            "cpuSuppressPolicy": "cfsQuota",
        }
    },
    "loadAware": {"cpu": 85, "memory": 95},
}


@dataclass(slots=True)
class Day:
    """What was so in each minute, of the whole cluster, in milli-cores."""

    online: list[int] = field(default_factory=list)
    batch: list[int] = field(default_factory=list)
    requested: list[int] = field(default_factory=list)
    crowded: int = 0
    """Minutes of a node in which its pods wanted more than it has, after its agent had spoken."""
    evictions: int = 0
    finished: int = 0

    def use_percent(self) -> float:
        """The mean over the day."""
        total = NODES * CPU_MILLI * len(self.online)
        return 100 * (sum(self.online) + sum(self.batch)) / total


def play(batch: bool, seed: int = 1) -> Day:
    """The day with or without batch work."""
    chance, day, world = Random(seed), Day(), World(POLICY, {}, seed)
    try:
        world.put_nodes([_node(number) for number in range(NODES)])
        world.seed([_online(node, number) for node in range(NODES) for number in range(ONLINE_PODS)])
        curves = {f"web-{node}-{number}": _curve(chance) for node in range(NODES) for number in range(ONLINE_PODS)}
        queue = _batch_pods(chance) if batch else iter(())
        for _ in range(MINUTES + WARM):
            _minute(world, day, {name: next(curve) for name, curve in curves.items()})
            waiting = sum(not pod.spec.get("nodeName") for pod in _pods(world, "batch"))
            world.apply([pod for _, pod in zip(range(WAITING - waiting), queue, strict=False)])
            world.advance(MINUTE_MS)
        day.evictions = len(world.evictions())
        day.finished = sum(pod.status.get("phase") == "Succeeded" for pod in _pods(world, "batch"))
    finally:
        world.close()
    for series in (day.online, day.batch, day.requested):
        del series[:WARM]
    return day


def _minute(world: World, day: Day, online: Mapping[str, int]) -> None:
    """Tell what every node used in the minute that is over."""
    asked: dict[str, list[Object]] = {f"node-{number}": [] for number in range(NODES)}
    for pod in _pods(world, "batch"):
        if pod.spec.get("nodeName") and pod.status.get("phase") == "Running":
            asked[pod.spec["nodeName"]].append(pod)
    batch_used = 0
    for number, (node, pods) in enumerate(asked.items()):
        names = [f"web-{number}-{one}" for one in range(ONLINE_PODS)]
        services = sum(online[name] for name in names)
        granted = min(BATCH_MILLI * len(pods), _granted(world, node))
        day.crowded += services + SYSTEM_MILLI + granted > CPU_MILLI
        granted = min(granted, CPU_MILLI - services - SYSTEM_MILLI)
        used = {("default", name): {"cpu": online[name], "memory": ONLINE_MEMORY // 2} for name in names}
        for pod in pods:
            used["default", pod.key.name] = {"cpu": granted // len(pods), "memory": BATCH_MEMORY // 2}
        system = {"cpu": SYSTEM_MILLI, "memory": SYSTEM_MEMORY}
        total = {name: system[name] + sum(one[name] for one in used.values()) for name in system}
        world.sample_usage(node, NodeUsage(total, system, used))
        batch_used += granted if pods else 0
    day.online.append(sum(online.values()) + NODES * SYSTEM_MILLI)
    day.batch.append(batch_used)
    day.requested.append(NODES * ONLINE_PODS * ONLINE_MILLI)


def _granted(world: World, node: str) -> int:
    """Milli-cores that the agent leaves to best effort."""
    quota, _, period = (world.cgroup(node, "kubepods/besteffort/cpu.max") or "max 100000").partition(" ")
    return CPU_MILLI if quota == "max" else int(quota) * 1000 // int(period)


def _pods(world: World, label: str) -> list[Object]:
    return [
        pod for pod in world.store().of_kind("Pod").values() if (pod.metadata.get("labels") or {}).get("work") == label
    ]


def _curve(chance: Random) -> Iterator[int]:
    """Milli-cores that one online pod uses, minute by minute."""
    phase, noise, burst = chance.gauss(20.0, 1.0), 0.0, 0
    minute = 0
    while True:
        hour = minute / 60
        noise = 0.9 * noise + chance.gauss(0, NOISE * math.sqrt(1 - 0.9**2))
        burst = BURST_MINUTES if chance.random() < BURST_CHANCE else max(0, burst - 1)
        part = MEAN_USE * (1 + SWING * math.cos(2 * math.pi * (hour - phase) / 24)) * (1 + noise)
        yield int(ONLINE_MILLI * min(1.0, max(0.02, part * (BURST_FACTOR if burst else 1.0))))
        minute += 1


def _node(number: int) -> dict[str, Any]:
    room = {"cpu": f"{CPU_MILLI}m", "memory": str(MEMORY), "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}"},
        "status": {"capacity": room, "allocatable": room, "conditions": ready},
    }


def _online(node: int, number: int) -> dict[str, Any]:
    made = _pod(f"web-{node}-{number}", "LS", 9_500, {"cpu": f"{ONLINE_MILLI}m", "memory": str(ONLINE_MEMORY)})
    made["spec"]["nodeName"] = f"node-{node}"
    made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made


def _batch_pods(chance: Random) -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        amounts = {"kubernetes.io/batch-cpu": str(BATCH_MILLI), "kubernetes.io/batch-memory": str(BATCH_MEMORY)}
        made = _pod(f"batch-{number}", "BE", 5_500, amounts)
        made["metadata"]["annotations"] = {"simulate/duration": f"{chance.randint(*BATCH_MINUTES)}m"}
        yield made
        number += 1


def _pod(name: str, qos: str, priority: int, amounts: Mapping[str, str]) -> dict[str, Any]:
    labels = {"koordinator.sh/qosClass": qos, "work": "batch" if qos == "BE" else "online"}
    container = {"name": "c", "image": "busybox", "resources": {"requests": dict(amounts), "limits": dict(amounts)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"priority": priority, "containers": [container], "restartPolicy": "Never"},
    }


async def colocation_day(pictures: Path | None = None) -> list[Figure]:
    """The day without and with batch work."""
    before = await asyncio.to_thread(play, False)
    after = await asyncio.to_thread(play, True)
    if pictures is not None:
        draw(before, after, pictures)
    told = f"{before.use_percent():.1f} % without batch work; {after.finished} batch pods done"
    return [
        at_least("CPU in use over a day of a cluster with batch work", after.use_percent(), "%", 65, told),
        at_most("minutes of a node in which its pods wanted more than it has", after.crowded, "", 0),
        Figure("evictions in that day", after.evictions, ""),
    ]


def draw(before: Day, after: Day, folder: Path) -> None:
    """``use.png``: before and after; ``amounts.png``: what there is, what is asked for, what is used, what is lent."""
    import matplotlib

    matplotlib.use("Agg")  # No display is needed.
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    hours = [minute / 60 for minute in range(len(after.online))]
    total = NODES * CPU_MILLI

    figure, axes = pyplot.subplots(figsize=(9, 4))
    axes.plot(hours, [100 * use / total for use in before.online], label="online services alone")
    both = [100 * (one + other) / total for one, other in zip(after.online, after.batch, strict=True)]
    axes.plot(hours, both, label="with batch work")
    axes.set(xlabel="hour of the day", ylabel="CPU in use, % of the cluster", xlim=(0, 24), ylim=(0, 100))
    axes.legend(loc="lower right")
    figure.savefig(folder / "use.png", dpi=120, bbox_inches="tight")

    figure, axes = pyplot.subplots(figsize=(9, 4))
    axes.axhline(total / 1000, color="black", label="total")
    axes.plot(hours, [one / 1000 for one in after.requested], label="requested by online services")
    axes.stackplot(
        hours,
        [one / 1000 for one in after.online],
        [one / 1000 for one in after.batch],
        labels=["used by online services", "reclaimed: used by batch work"],
        alpha=0.6,
    )
    axes.set(xlabel="hour of the day", ylabel="cores", xlim=(0, 24), ylim=(0, None))
    axes.legend(loc="lower right")
    figure.savefig(folder / "amounts.png", dpi=120, bbox_inches="tight")
