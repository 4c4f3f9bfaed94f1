"""`python -m tests.bench colocation`: what batch work does to an online service, and how much of the machine it gets.

Alone; together and bare; together under Kubernetes' own shares; together under Tidegate; the same arrivals each time, five rounds,
medians of the rounds. The noise that is stated is the service's own: the spread of its p99 over the rounds alone.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass

import psutil
from tests.bench.colocation.crews import PORTS, Crew, bare, batch_seconds, colocation, node_slo, pods, shares
from tests.bench.colocation.load import Answers, Load, Part
from tests.bench.figures import Figure, at_least, at_most, median
from tests.bench.running_system import System, running

from node_agent.runtime.cgroups import find_cgroups

LOW, HIGH = 0.2, 0.7
ROUNDS = 5
SECONDS = 10.0
SETTLED = 2.0
"""From the start of a round: the work beside has just begun."""
FORGOTTEN = 11.0
"""Until the agent allows again what it took away for the bare work of the round before, a tenth of the machine each second."""
STEP = (8.0, 16.0)
"""Seconds at the low and at the high load."""
STEPS = 3
"""The same second of each step has one p99, the median."""


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the load."""

    answers: Answers
    batch_seconds: float
    idle_seconds: float
    busy_percent: float

    @property
    def p99(self) -> float:
        """Milliseconds, once it has settled."""
        return self.answers.percentile_ms(99, SETTLED)


async def colocation_experiment() -> list[Figure]:
    """The whole experiment; takes ten minutes."""
    why = _cannot_run()
    if why:
        print(f"skipped: the co-location experiment cannot run here: {why}")
        return []
    processors = len(os.sched_getaffinity(0))
    load = Load(list(PORTS), processors)
    async with running() as system:
        await system.apply(system.request([colocation(), node_slo((await system.nodes())[0])]))
        with bare(Crew(), load):
            load.calibrate()
        figures = await _compute_bound(load, system)
        figures += await _memory_bound(load, system)
        figures += await _step(load, system)
    return figures


async def _compute_bound(load: Load, system: System) -> list[Figure]:
    found = await _rounds(load, system, "cpu")
    alone, with_batch = [one.p99 for one in found["alone"]], found["tidegate"]
    solo, noise = median(alone), 100 * (max(alone) / median(alone) - 1)
    p99 = median([one.p99 for one in with_batch])
    idle = median([one.idle_seconds for one in found["alone"]])
    beside = ", ".join(f"{name} {median([one.p99 for one in found[name]]):.2f}" for name in ("alone", "bare", "shares"))
    return [
        at_most(
            f"p99 of an online service at {LOW:.0%} load beside batch work that computes, more than alone",
            100 * (p99 / solo - 1),
            "%",
            round(5 + noise, 1),
            f"ms: {beside}, Tidegate {p99:.2f}; own noise {noise:.1f} %",
        ),
        at_least("the machine is busy then", median([one.busy_percent for one in with_batch]), "%", 90),
        at_least(
            "batch work's part of the CPU time that is idle when the service is alone",
            100 * median([one.batch_seconds for one in with_batch]) / idle,
            "%",
            90,
        ),
    ]


async def _memory_bound(load: Load, system: System) -> list[Figure]:
    found = await _rounds(load, system, "memory")
    p99 = {name: median([one.p99 for one in rounds]) for name, rounds in found.items()}
    ours, theirs = p99["tidegate"] - p99["alone"], p99["shares"] - p99["alone"]
    reference = "ms: " + ", ".join(f"{name} {value:.2f}" for name, value in p99.items())
    return [
        at_most(
            "p99 added by batch work that streams memory, of what shares alone add", ours / theirs, "", 0.5, reference
        )
    ]


async def _step(load: Load, system: System) -> list[Figure]:
    parts = [Part(STEP[0], LOW), Part(STEP[1], HIGH)]
    alone, together = [], []
    for seed in range(STEPS):
        with bare(Crew(), load):
            alone.append((await asyncio.to_thread(load.play, parts, seed)).by_second(99))
        async with pods(Crew("cpu"), load, system):
            await asyncio.sleep(FORGOTTEN)
            together.append((await asyncio.to_thread(load.play, parts, seed)).by_second(99))
    seconds = zip(zip(*together, strict=False), zip(*alone, strict=False), strict=False)
    worst, second = max(
        (median(list(ours)) / median(list(solo)), number) for number, (ours, solo) in enumerate(seconds)
    )
    what = f"p99 of the worst second of a step from {LOW:.0%} to {HIGH:.0%}, of the same second alone"
    return [at_most(what, worst, "", 2, f"second {second}; the step is at {STEP[0]:.0f}")]


async def _rounds(load: Load, system: System, kind: str) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = {}
    crew = Crew(kind)
    ways: dict[str, Callable[[], AbstractAsyncContextManager[None]]] = {
        "alone": lambda: _as_async(bare(Crew(), load)),
        "bare": lambda: _as_async(bare(crew, load)),
        "shares": lambda: _as_async(shares(crew, load)),
        "tidegate": lambda: pods(crew, load, system),
    }
    for number in range(ROUNDS):
        for name, way in ways.items():
            async with way():
                await asyncio.sleep(FORGOTTEN if name == "tidegate" else SETTLED)
                found.setdefault(name, []).append(await asyncio.to_thread(_round, load, number))
    return found


def _round(load: Load, seed: int) -> Round:
    used, before = batch_seconds(), psutil.cpu_times()
    answers = load.play([Part(SECONDS, LOW)], seed)
    after = psutil.cpu_times()
    idle = after.idle + after.iowait - before.idle - before.iowait
    total = sum(after[:8]) - sum(before[:8])  # guest time is in user time
    return Round(answers, batch_seconds() - used, idle, 100 * (1 - idle / total))


@asynccontextmanager
async def _as_async(way: AbstractContextManager[None]) -> AsyncIterator[None]:
    with way:
        yield


def _cannot_run() -> str:
    if os.geteuid() != 0:
        return "it needs root"
    return find_cgroups("tidegate-experiment").why
