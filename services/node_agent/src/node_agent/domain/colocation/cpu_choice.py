"""Choosing CPUs for best effort: whole cores first, spread over the NUMA nodes, the lowest numbers first."""

from collections.abc import Iterable, Sequence

from node_agent.domain.colocation.cpu_pools import CpuPools
from node_agent.domain.colocation.machine import Processor


def choose_cpus(processors: Sequence[Processor], pools: CpuPools, count: int) -> tuple[int, ...]:
    """``count`` CPUs, or all that there are: from those that are shared and those that are lent in proportion to their numbers."""
    there = len(pools.lent) + len(pools.shared)
    wanted = min(count, there)
    lent = wanted * len(pools.lent) // there if there else 0
    chosen = [
        cpu
        for pool, number in ((pools.lent, lent), (pools.shared, wanted - lent))
        for cpu in _of_pool([one for one in processors if one.cpu in pool], number)
    ]
    return tuple(sorted(chosen))


def _of_pool(pool: Sequence[Processor], count: int) -> list[int]:
    """Whole cores one by one from each NUMA node in turn, the largest node first; then single CPUs in the same way.

    One CPU that is left over comes from the node whose turn it is.
    """
    nodes = _cores_by_node(pool)
    chosen: list[int] = []
    turn = 0
    for core in _round_robin([[core for core in node if len(core) > 1] for node in nodes]):
        if len(chosen) + len(core) <= count:
            chosen += core
            turn = next(at for at, node in enumerate(nodes) if core in node) + 1
    taken = set(chosen)
    first = turn % len(nodes) if nodes and count - len(chosen) == 1 else 0
    singles = [
        [[cpu] for core in node for cpu in core if cpu not in taken] for node in (*nodes[first:], *nodes[:first])
    ]
    for single in _round_robin(singles):
        if len(chosen) < count:
            chosen += single
    return chosen


def _cores_by_node(pool: Iterable[Processor]) -> list[list[list[int]]]:
    """NUMA nodes, the one with most CPUs first, each with its cores by their lowest CPU."""
    nodes: dict[int, dict[int, list[int]]] = {}
    for cpu, core, numa in sorted(pool):
        nodes.setdefault(numa, {}).setdefault(core, []).append(cpu)
    sized = sorted(nodes.items(), key=lambda item: (-sum(map(len, item[1].values())), item[0]))
    return [list(cores.values()) for _, cores in sized]


def _round_robin(lists: Sequence[Sequence[list[int]]]) -> list[list[int]]:
    longest = max(map(len, lists), default=0)
    return [one[position] for position in range(longest) for one in lists if position < len(one)]
