"""What was found, as tables, with the goals."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from tests.bench.figures import Figure, at_least, at_most, median, percentile, show
from tests.bench_kubernetes.burst import PLANE, Burst
from tests.bench_kubernetes.contenders import KubeScheduler, Tidegate

LARGE = 5_000
SINGLES_GOAL, GANGS_GOAL, FIRST_SECONDS, MEMORY_MIB = 2.5, 3.0, 1.0, 1_536.0


def report(
    bursts: Sequence[Burst], latencies: Mapping[str, Sequence[float]], start_seconds: Mapping[str, float]
) -> None:
    """Print the bursts one by one, and what they come to."""
    table = Table(title="Bursts")
    for name in ("scheduler", "nodes", "pods", "gangs of", "pods/s", "first bound", "RSS at most", "CPU s (MiB PSS)"):
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
    bursts: Sequence[Burst], latencies: Mapping[str, Sequence[float]], start_seconds: Mapping[str, float]
) -> Sequence[Figure]:
    figures: list[Figure] = []
    known = {(one.title, one.nodes, one.gang): one for one in bursts}
    for one in bursts:
        if one.title != Tidegate.title:
            continue
        where = f"on {one.nodes:,} nodes, {'single pods' if one.gang == 1 else f'gangs of {one.gang}'}"
        other = known.get((KubeScheduler.title, one.nodes, one.gang))
        if other is not None:
            figures.append(_beside(f"{where}: pods/s", one, other))
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
    figures += [Figure(f"start-up, {what}", took, "s") for what, took in start_seconds.items()]
    for title, seconds in latencies.items():
        for name, value in (("p50", median(seconds)), ("p99", percentile(seconds, 99))):
            figures.append(
                Figure(f"{title}: gang of 100 on a quiet cluster, creation to bound, {name}", value * 1e3, "ms")
            )
    return figures


def _beside(what: str, one: Burst, other: Burst) -> Figure:
    """Bindings per second beside kube-scheduler's; of single pods there is a goal on large clusters only."""
    mine, theirs = one.pods_per_second, other.pods_per_second
    if one.gang == 1 and one.nodes < LARGE:
        return Figure(what, mine, "pods/s", reference=f"kube-scheduler: {theirs:,.0f} pods/s", ratio=mine / theirs)
    goal = SINGLES_GOAL if one.gang == 1 else GANGS_GOAL
    reference = f"kube-scheduler: {theirs:,.0f} pods/s, the goal is {goal:g} times that"
    return at_least(what, mine, "pods/s", goal * theirs, reference, theirs)


def _memory(one: Burst) -> float:
    return sum(mib for name, mib in one.usage.memory_mib.items() if name not in PLANE)
