"""`make bench-kubernetes`: kube-scheduler and Tidegate side by side on one API server, with real pods and bindings.

Pods are made first; then the scheduler is let go: kube-scheduler by being started, Tidegate, whose services all run, by
`tidegate resume scheduling`. What is measured is bindings per second from the first to the last, as a watch sees them.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench_kubernetes.burst import Burst, burst, latencies
from tests.bench_kubernetes.cluster import FLAGS, Cluster, NoLab, control_plane, opened
from tests.bench_kubernetes.contenders import KubeScheduler, Tidegate, tidegate
from tests.bench_kubernetes.report import report

from admission.domain.definitions import DEFINED, definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GANG = 100


@dataclass(slots=True)
class Found:
    """All that was measured."""

    bursts: list[Burst] = field(default_factory=list)
    latencies: dict[str, Sequence[float]] = field(default_factory=dict)
    start_seconds: dict[str, float] = field(default_factory=dict)
    """How long Tidegate's start took with an empty bus, by what there was on the API server."""

    def add(self, one: Burst) -> None:
        """Keep what a burst came to, and say it."""
        self.bursts.append(one)
        cpu_seconds = {name: round(seconds, 1) for name, seconds in one.usage.cpu_seconds.items()}
        tell(f"  {one.pods_per_second:.0f} pods/s, first after {one.first_seconds:.2f} s, CPU seconds {cpu_seconds}")


def tell(text: str) -> None:
    """Say on standard error what is going on."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


async def of_kube_scheduler(cluster: Cluster, options: argparse.Namespace, nodes: int, found: Found) -> None:
    for gang, pods in ((1, options.pods), (GANG, options.gang_pods)):
        contender = KubeScheduler(cluster.plane, gangs=gang > 1)
        tell(f"kube-scheduler, {nodes} nodes, {pods} pods in gangs of {gang}")
        found.add(await burst(cluster, contender, nodes=nodes, pods=pods, gang=gang))
        if gang > 1 and nodes == min(options.nodes):
            tell("  single gangs")
            found.latencies[contender.title] = await latencies(cluster, contender, GANG, options.rounds)
        contender.stop()
        await cluster.clear(contender.groups)


async def of_tidegate(cluster: Cluster, options: argparse.Namespace, nodes: int, found: Found, folder: Path) -> None:
    async with tidegate(cluster.plane, folder / "first") as (contender, took):
        found.start_seconds[f"{nodes:,} nodes"] = took
        for gang in (1, GANG):
            tell(f"Tidegate, {nodes} nodes, {options.pods} pods in gangs of {gang}")
            await cluster.clear(contender.groups)
            await contender.knows(0)
            await contender.hold()
            found.add(await burst(cluster, contender, nodes=nodes, pods=options.pods, gang=gang))
    async with tidegate(cluster.plane, folder / "second") as (contender, took):
        found.start_seconds[f"{nodes:,} nodes and {options.pods:,} pods"] = took
        await cluster.clear(contender.groups)
        if nodes == min(options.nodes):
            tell("  single gangs")
            await contender.knows(0)
            found.latencies[contender.title] = await latencies(cluster, contender, GANG, options.rounds)
            await cluster.clear(contender.groups)


async def measure(options: argparse.Namespace, folder: Path) -> Found:
    found, have = Found(), 0
    with control_plane(folder / "plane", kwok=False, api_flags=FLAGS) as plane:
        async with opened(plane) as cluster:
            await cluster.create((DEFINITIONS, definition(kind)) for kind in DEFINED)
            for nodes in sorted(options.nodes):
                await cluster.add_nodes(have, nodes)
                have = nodes
                if "kube-scheduler" in options.of:
                    await of_kube_scheduler(cluster, options, nodes, found)
                if "tidegate" in options.of:
                    await of_tidegate(cluster, options, nodes, found, folder / f"tidegate-{nodes}")
    return found


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench_kubernetes", description=__doc__)
    parser.add_argument("--nodes", type=_numbers, default=[1_000, 5_000], help="sizes, with commas between them")
    parser.add_argument("--pods", type=int, default=10_000, help="pods in a burst")
    parser.add_argument("--gang-pods", type=int, default=3_000, help="pods in kube-scheduler's bursts of gangs")
    parser.add_argument("--rounds", type=int, default=30, help="single gangs on a quiet cluster of the smallest size")
    parser.add_argument("--of", type=lambda text: text.split(","), default=["kube-scheduler", Tidegate.name])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        try:
            found = asyncio.run(measure(options, Path(folder)))
        except NoLab as error:
            raise SystemExit(str(error)) from None
    report(found.bursts, found.latencies, found.start_seconds)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
