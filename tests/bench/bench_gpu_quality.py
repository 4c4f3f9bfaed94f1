"""How many cards stay unused when pods have come that ask for all of them: the scheduling core against BestFit and FGD.

Run it as ``python -m tests.bench gpu-quality`` (one shuffle of one trace), with ``--all`` (ten shuffles of each of 17), or with
``--seeds 3 --traces default,cpu250``.

Each policy decides through the same core, on the same nodes, for pods in the same order; only the score of nodes differs. Of
equal scores the first node by name wins, whoever decides. A figure is the mean over all moments at which the cards asked for
so far round to 100 % of those there are, and over the seeds. Seconds are CPU seconds of one core in ``decide``.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.bench import openb
from tests.bench.figures import Figure, at_least
from tests.bench.packing_policies import POLICIES

from chassis.garbage import search_all
from gang_scheduler.domain.core import SchedulerCore
from gang_scheduler.kernels import BackgroundKernels
from kube import Decision, Event, Key, Object, Verb

NOW = 1_767_225_600_000
TOGETHER = 100
"""So many pods come at once."""

FIRST_SEED = 42
KERNELS = BackgroundKernels()

OURS = "tidegate"
GOAL_PER_SECOND = 10_000
LEAST_GAIN, LARGE_GAIN = 0.2, 1.0
LARGE = ("gpuspec33", "gpushare100", "gpushare80", "cpu250")


@dataclass(frozen=True, slots=True)
class Result:
    """``unused`` is in percent of all cards, ``seconds`` what deciding took, ``whole`` with taking in the pods and decisions."""

    unused: float
    decisions: int
    seconds: float
    whole: float


def play(nodes: Sequence[Object], trace: openb.Trace, seed: int, policy: str) -> Result:
    """Let pods come until they have asked for all cards; one that finds no place is dropped."""
    core = SchedulerCore(preemption=False, reclaim=False, backfill=False, kernels=KERNELS)
    core.fold([Event(None, node) for node in nodes], NOW)
    core.hear("queue_manager", Decision("EntitlementsComputed", Key("", "", ""), payload={"queues": {"default": {}}}))
    capacity = int(core.cluster.room.table.devices.have.core.sum())
    if policy in POLICIES:
        table = core.cluster.room.table
        models = {node.name: str(node.labels[openb.MODEL]) for node in nodes}
        by_slot = [models.get(table.names[slot], "") if slot < len(table.names) else "" for slot in range(table.size)]
        POLICIES[policy](table, trace, by_slot).install(core.cluster.room)
    bodies, kinds = [openb.body(job) for job in trace.jobs], openb.arrivals(trace, capacity, seed)
    asked = np.cumsum([trace.jobs[kind].asked for kind in kinds])
    given, samples, deciding, start = 0, [], 0.0, time.process_time()
    last = int(np.searchsorted(asked, 1.005 * capacity))
    for first in range(0, last, TOGETHER):
        numbers = range(first, min(last, first + TOGETHER))
        pods = [openb.pod(number, bodies[kinds[number]]) for number in numbers]
        core.fold([Event(None, pod) for pod in pods], NOW)
        before = time.process_time()
        decisions = core.decide(NOW, frozenset())
        deciding += time.process_time() - before
        placed = _carry_out(core, decisions, first)
        core.fold([Event(pod, None) for pod in pods if pod.key not in placed], NOW)
        for number, pod in zip(numbers, pods, strict=True):
            given += trace.jobs[kinds[number]].asked if pod.key in placed else 0
            if 0.995 * capacity <= asked[number]:
                samples.append(100 * (capacity - given) / capacity)
    whole = time.process_time() - start
    del core, decisions
    search_all()  # the search in steps has kept what cycles hold: the core of this play
    return Result(sum(samples) / len(samples), last, deciding, whole)


def _carry_out(core: SchedulerCore, decisions: Iterable[Decision], number: int) -> set[Key]:
    placed: set[Key] = set()
    for at, decision in enumerate(decisions):
        bound = {mutation.key for mutation in decision.mutations if mutation.verb is Verb.BIND}
        if bound:
            core.assume(f"{number}/{at}", decision)
            placed |= bound
    return placed


async def gpu_quality(seeds: int = 1, traces: Sequence[str] = ("default",)) -> list[Figure]:
    """Play the traces with every policy and print the table; the figures say how far FGD is behind."""
    data = openb.folder()
    nodes = openb.nodes(data)
    KERNELS.join()
    table = Table(title=f"Unused cards in percent, 100 % asked for, mean (standard deviation) of {seeds} seeds")
    for column in ("trace", *POLICIES, OURS, "better than fgd by", "decisions/s"):
        table.add_column(column, justify="left" if column == "trace" else "right")
    figures: list[Figure] = []
    for name in traces:
        trace = openb.trace(data, name)
        results = {
            policy: [play(nodes, trace, FIRST_SEED + number, policy) for number in range(seeds)]
            for policy in (*POLICIES, OURS)
        }
        unused = {policy: [one.unused for one in found] for policy, found in results.items()}
        speed = sum(one.decisions for one in results[OURS]) / sum(one.seconds for one in results[OURS])
        gain = fmean(unused["fgd"]) - fmean(unused[OURS])
        cells = [f"{fmean(found):.2f} ({pstdev(found):.2f})" for found in unused.values()]
        table.add_row(name, *cells, f"{gain:.2f}", f"{speed:,.0f}")
        goal, reference = LARGE_GAIN if name in LARGE else LEAST_GAIN, f"FGD {fmean(unused['fgd']):.2f} %"
        figures.append(at_least(f"{name}: fewer unused cards than FGD", gain, "points", goal, reference))
        figures.append(at_least(f"{name}: decisions, no bus, no commit", speed, "/s", GOAL_PER_SECOND))
    Console(width=150).print(table)
    return figures
