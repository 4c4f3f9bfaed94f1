"""A day of a cluster whose online services use a fifth of it, without and with lending what they leave: in virtual time.

All services decide, and the agents' rules hold back, once a second; load and use are made up. Each online pod follows a curve with
a peak in the evening and a trough at night, with noise that lasts minutes and rare bursts to twice that, the same for a seed and
for both days; it moves in a step at each whole minute, and the agent measures it in the course of a second. Batch pods use all
that they asked for, or what their node's agent leaves them.

The service level: in 99.9 % of the seconds an online pod gets all the CPU that it wants. It is taken not to when all that wants
CPU on its node (online pods, the system, and best effort as far as the agent lets it) is more than the node has, as if the
kernel gave online pods no more than their part.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.bench.colocation.day_load import (
    BATCH_MEMORY,
    BATCH_MILLI,
    CPU_MILLI,
    ONLINE_MEMORY,
    ONLINE_MILLI,
    ONLINE_PODS,
    batch_pods,
    curve,
    node,
    online_pod,
    online_pods,
)
from tests.bench.figures import Figure, at_least

from chassis.garbage import search_in_steps
from kube import Object
from testing.scenarios.target import NodeUsage
from tidegate_cli.sim.world import World

NODES = 20
SYSTEM_MILLI, SYSTEM_MEMORY = 500, 4 << 30
"""What each node uses itself."""
WAITING = 12
"""So many batch pods wait at any time."""
MEASURED_MS, MINUTE_MS = 900, 60_000
"""When in a minute nodes tell what they use."""
MINUTES, WARM = 24 * 60, 60
"""Those of a day, and those before it, in which batch work fills the nodes."""
GOAL_PERCENT, SERVED_PERCENT = 65, 99.9
LENDING = {
    "colocation": {"enable": True, "cpuReclaimThresholdPercent": 80, "memoryReclaimThresholdPercent": 80},
    "nodeAgent": {
        "resourceUsedThresholdWithBE": {
            "enable": True,
            "cpuSuppressThresholdPercent": 85,
            "cpuSuppressPolicy": "cfsQuota",
            "memoryEvictThresholdPercent": 85,
            "cpuEvictBESatisfactionLowerPercent": 40,
            "cpuEvictBESatisfactionUpperPercent": 60,
        }
    },
    "loadAware": {"cpu": 85, "memory": 95},
}
"""A fifth of each node is never lent. Best effort that gets less than 40 % of what it asked for gives way to the rest of it."""


@dataclass(slots=True)
class Day:
    """What was so in each minute, of the whole cluster, in milli-cores; and what came of all of it."""

    nodes: int
    online: list[int] = field(default_factory=list)
    """Used by online pods and by the nodes themselves."""
    batch: list[int] = field(default_factory=list)
    requested: list[int] = field(default_factory=list)
    """By online pods."""
    lent: list[int] = field(default_factory=list)
    crowded_seconds: int = 0
    """Of the nodes, taken together: with less CPU than was wanted there."""
    evicted: int = 0
    finished: int = 0

    @property
    def total(self) -> int:
        return self.nodes * CPU_MILLI

    @property
    def used(self) -> list[int]:
        return [one + other for one, other in zip(self.online, self.batch, strict=True)]

    def use_percent(self) -> float:
        """The mean over the day."""
        return 100 * sum(self.used) / (self.total * len(self.used))

    def served_percent(self) -> float:
        """The part of the seconds in which an online pod got the CPU that it wanted; pods are alike on all nodes."""
        return 100 - 100 * self.crowded_seconds / (self.nodes * 60 * len(self.used))

    def batch_core_hours(self) -> float:
        return sum(self.batch) / 60_000


class Play:
    """One day as it is played; ``begin_minute`` is when it begins, before midnight if it is negative."""

    def __init__(self, world: World, lends: bool, nodes: int, begin_minute: int, seed: int) -> None:
        self.day = Day(nodes)
        self._world, self._lends = world, lends
        self._nodes = {f"node-{number}": online_pods(f"node-{number}") for number in range(nodes)}
        self._curves = {
            name: curve(Random(f"{seed}/{name}"), begin_minute) for names in self._nodes.values() for name in names
        }
        self._queue, self._batch = batch_pods(Random(seed)), set[str]()
        world.put_nodes([node(name) for name in self._nodes])
        world.seed([online_pod(place, name) for place, names in self._nodes.items() for name in names])

    def minute(self) -> None:
        """The load moves, agents see it, and what follows is counted."""
        load = {name: next(curve) for name, curve in self._curves.items()}
        self._spend(load, 1)  # as the agents left it when they knew the load of the minute before
        self._world.advance(MEASURED_MS)
        self._tell(load)
        self._sweep()
        if self._lends:
            self._hand_in()
        self._world.advance(MINUTE_MS - MEASURED_MS)
        self._note(load, self._spend(load, 59))  # the quota only grows while the load stays: it is largest now

    def _spend(self, load: Mapping[str, int], seconds: int) -> int:
        """Count for how long nodes are crowded; what batch pods use of all of them."""
        used = 0
        for place, pods in self._running().items():
            wanted, left = self._wanted(place, len(pods)), self._left(place, load)
            self.day.crowded_seconds += seconds * (wanted > left)
            used += max(0, min(wanted, left))
        return used

    def _tell(self, load: Mapping[str, int]) -> None:
        """Tell what every node uses."""
        for place, pods in self._running().items():
            granted = max(0, min(self._wanted(place, len(pods)), self._left(place, load)))
            names = self._nodes[place]
            used = {("default", name): {"cpu": load[name], "memory": ONLINE_MEMORY // 2} for name in names}
            for pod in pods:
                used["default", pod.key.name] = {"cpu": granted // len(pods), "memory": BATCH_MEMORY // 2}
            system = {"cpu": SYSTEM_MILLI, "memory": SYSTEM_MEMORY}
            total = {name: system[name] + sum(one[name] for one in used.values()) for name in system}
            self._world.sample_usage(place, NodeUsage(total, system, used))

    def _hand_in(self) -> None:
        """Users see to it that batch pods wait."""
        waiting = sum(not pod.spec.get("nodeName") for pod in self._batch_pods())
        fresh = [pod for _, pod in zip(range(WAITING - waiting), self._queue, strict=False)]
        self._batch |= {pod["metadata"]["name"] for pod in fresh}
        self._world.apply(fresh)

    def _left(self, place: str, load: Mapping[str, int]) -> int:
        """What online pods and the node itself leave of it; less than nothing if they want more than it has."""
        return CPU_MILLI - SYSTEM_MILLI - sum(load[name] for name in self._nodes[place])

    def _note(self, load: Mapping[str, int], batch_used: int) -> None:
        nodes = self._world.store().of_kind("Node").values()
        lent = sum(int(one.status["allocatable"].get("kubernetes.io/batch-cpu", 0)) for one in nodes)
        self.day.online.append(sum(load.values()) + self.day.nodes * SYSTEM_MILLI)
        self.day.batch.append(batch_used)
        self.day.requested.append(self.day.nodes * ONLINE_PODS * ONLINE_MILLI)
        self.day.lent.append(lent)

    def _sweep(self) -> None:
        """Count the batch pods that are done, and those that went before they were."""
        there = self._batch_pods()
        done = [pod for pod in there if pod.status.get("phase") == "Succeeded"]
        gone = self._batch - {pod.key.name for pod in there}
        self.day.finished += len(done)
        self.day.evicted += len(gone)
        self._batch -= gone | {pod.key.name for pod in done}
        for pod in done:
            self._world.delete(pod.key)

    def _wanted(self, place: str, pods: int) -> int:
        """Milli-cores that so many batch pods of a node use if they can: what they ask for, or what the agent leaves them."""
        quota, _, period = (self._world.cgroup(place, "kubepods/besteffort/cpu.max") or "max 100000").partition(" ")
        return min(BATCH_MILLI * pods, CPU_MILLI if quota == "max" else int(quota) * 1000 // int(period))

    def _running(self) -> dict[str, list[Object]]:
        """The batch pods that run, by node."""
        found: dict[str, list[Object]] = {place: [] for place in self._nodes}
        for pod in self._batch_pods():
            if pod.status.get("phase") == "Running":
                found[pod.spec["nodeName"]].append(pod)
        return found

    def _batch_pods(self) -> list[Object]:
        pods = self._world.store().of_kind("Pod").values()
        return [pod for pod in pods if pod.key.name in self._batch]


def play(lends: bool, nodes: int = NODES, minutes: int = MINUTES, warm: int = WARM, seed: int = 1) -> Day:
    """The day with or without lending, after so many minutes that do not count."""
    world = World(LENDING if lends else {}, {}, seed)
    try:
        one = Play(world, lends, nodes, -warm, seed)
        for _ in range(warm):
            one.minute()
        one.day = Day(nodes)
        for _ in range(minutes):
            one.minute()
    finally:
        world.close()
    return one.day


def figures(before: Day, after: Day) -> list[Figure]:
    """What both days come to."""
    use, served = after.use_percent(), after.served_percent()
    goals = (
        at_least(
            "CPU in use over a day with lending", use, "%", GOAL_PERCENT, f"{before.use_percent():.1f} % without it"
        ),
        at_least(
            *("seconds of online pods with all the CPU that they want", served, "%", SERVED_PERCENT),
            f"{before.served_percent():.2f} % without lending",
        ),
    )
    return [
        *(replace(goal, repeatable=True) for goal in goals),
        Figure(
            "batch work done in that day", after.batch_core_hours(), "core hours", reference=f"{after.finished} pods"
        ),
        Figure("batch pods evicted in that day", after.evicted, ""),
    ]


async def colocation_day(pictures: Path | None = None) -> list[Figure]:
    """The day without and with lending, each in a process of its own."""
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(2, get_context("spawn"), search_in_steps) as processes:
        before, after = await asyncio.gather(*(loop.run_in_executor(processes, play, lends) for lends in (False, True)))
    if pictures is not None:
        from tests.bench.colocation.day_pictures import draw  # what draws takes a second to load

        draw(before, after, pictures)
    return figures(before, after)
