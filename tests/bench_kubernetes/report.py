"""What was found, as tables, with the goals."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from tests.bench.figures import Figure, at_least, at_most, median, percentile, show
from tests.bench_kubernetes.burst import Burst
from tests.bench_kubernetes.contenders import KubeScheduler, Tidegate

SINGLES_GOAL, GANGS_GOAL, FIRST_SECONDS, MEMORY_MIB = 2.5, 3.0, 1.0, 1_536.0
PLANE = ("kube-apiserver", "etcd")


def report(
    bursts: Sequence[Burst], latencies: Mapping[str, Sequence[float]], start_seconds: Mapping[int, float]
) -> None:
    """Print the bursts one by one, and what they come to."""
    table = Table(title="Bursts")
    for name in ("scheduler", "nodes", "pods", "gangs of", "pods/s", "first bound", "memory, most", "CPU s (MiB PSS)"):
        table.add_column(name, justify="left" if name in ("scheduler", "CPU s (MiB PSS)") else "right")
    for one in bursts:
        used = one.usage
        parts = [f"{name} {used.cpu_seconds[name]:.1f} ({used.memory_mib[name]:.0f})" for name in used.cpu_seconds]
        table.add_row(
            one.title,
            f"{one.nodes:,}",
            f"{one.pods:,}",
            str(one.gang),
            f"{one.pods_per_second:,.0f}",
            f"{one.first_seconds:.2f} s",
            f"{used.most_rss_mib:,.0f}",
            ", ".join(parts),
        )
    Console(width=190).print(table)
    show(list(_figures(bursts, latencies, start_seconds)))


def _figures(
    bursts: Sequence[Burst], latencies: Mapping[str, Sequence[float]], start_seconds: Mapping[int, float]
) -> Sequence[Figure]:
    figures: list[Figure] = []
    known = {(one.title, one.nodes, one.gang): one for one in bursts}
    for one in bursts:
        if one.title != Tidegate.title:
            continue
        where = f"on {one.nodes:,} nodes, {'single pods' if one.gang == 1 else f'gangs of {one.gang}'}"
        other = known.get((KubeScheduler.title, one.nodes, one.gang))
        if other is not None:
            goal = SINGLES_GOAL if one.gang == 1 else GANGS_GOAL
            figures.append(
                at_least(
                    f"{where}: pods/s",
                    one.pods_per_second,
                    "pods/s",
                    goal * other.pods_per_second,
                    f"kube-scheduler: {other.pods_per_second:,.0f} pods/s, goal {goal:g} times that",
                    other.pods_per_second,
                )
            )
        figures.append(at_most(f"{where}: first bound after the release", one.first_seconds, "s", FIRST_SECONDS))
        figures.append(at_most(f"{where}: memory of all processes (PSS)", _memory(one), "MiB", MEMORY_MIB))
        server, gateway = (one.usage.cpu_seconds[name] for name in ("kube-apiserver", "cluster_gateway"))
        figures.append(
            at_most(
                f"{where}: CPU of the gateway, ms/pod",
                gateway / one.pods * 1e3,
                "ms",
                server / one.pods * 1e3,
                f"API server: {server / one.pods * 1e3:.2f} ms/pod",
                server / one.pods * 1e3,
            )
        )
    figures += [Figure(f"start-up at {nodes:,} nodes", took, "s") for nodes, took in start_seconds.items()]
    for title, seconds in latencies.items():
        for name, value in (("p50", median(seconds)), ("p99", percentile(seconds, 99))):
            figures.append(
                Figure(f"{title}: gang of 100 on a quiet cluster, creation to bound, {name}", value * 1e3, "ms")
            )
    return figures


def _memory(one: Burst) -> float:
    return sum(mib for name, mib in one.usage.memory_mib.items() if name not in PLANE)
