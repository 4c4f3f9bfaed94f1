"""What is measured: a burst of pods that were made before, and single gangs on a quiet cluster."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
from tests.bench_kubernetes.cluster import PODS, Cluster, Manifest, singles
from tests.bench_kubernetes.contenders import Contender, Tidegate
from tests.bench_kubernetes.eyes import watching
from tests.bench_kubernetes.usage import Usage, used

PLANE = ("kube-apiserver", "etcd")
SLOWEST_PODS_PER_SECOND = 20
"""A scheduler that is slower is not waited for."""


@dataclass(frozen=True, slots=True)
class Burst:
    """``gang`` is the size of the gangs, 1 for single pods; times are seconds."""

    title: str
    nodes: int
    pods: int
    gang: int
    seconds: float
    """From the first binding to the last."""

    first_seconds: float
    """From the release until the first gang was bound whole."""

    usage: Usage

    @property
    def pods_per_second(self) -> float:
        return (self.pods - self.gang) / self.seconds if self.gang < self.pods else 0.0


async def burst(cluster: Cluster, contender: Contender, *, nodes: int, pods: int, gang: int) -> Burst:
    """Make the pods, let the contender go, watch until all are bound."""
    made = singles(f"p{nodes}", pods, contender.name) if gang == 1 else contender.gangs(f"g{nodes}", pods // gang, gang)
    names = [str(body["metadata"]["name"]) for path, body in made if path == PODS]
    await cluster.create(made)
    if isinstance(contender, Tidegate):
        await contender.knows(len(names))
    async with watching(cluster) as eyes:
        released = time.perf_counter()
        await contender.release()
        own = contender.processes()
        async with used(_plane(cluster) | own, own.values()) as usage:
            await eyes.until(names, 60 + pods / SLOWEST_PODS_PER_SECOND)
        times = sorted(eyes.bound.values())
        gangs = [max(eyes.bound[name] for name in names[at : at + gang]) for at in range(0, len(names), gang)]
    return Burst(contender.title, nodes, len(names), gang, times[-1] - times[0], min(gangs) - released, usage)


def _plane(cluster: Cluster) -> dict[str, psutil.Process]:
    return {name: psutil.Process(cluster.plane.processes[name].pid) for name in PLANE}


async def latencies(cluster: Cluster, contender: Contender, gang: int, rounds: int) -> Sequence[float]:
    """Seconds from the first request that makes a gang's objects until it is bound whole, one gang after the other."""
    found: list[float] = []
    async with watching(cluster) as eyes:
        for number in range(rounds):
            made: Sequence[tuple[str, Manifest]] = contender.gangs(f"l{number}", 1, gang)
            began = time.perf_counter()
            await cluster.create(made)
            names = [str(body["metadata"]["name"]) for path, body in made if path == PODS]
            await eyes.until(names, 60)
            found.append(max(eyes.bound[name] for name in names) - began)
    return found
