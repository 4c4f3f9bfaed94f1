"""From submission to the fact, over the real bus, durable."""

import asyncio
import time

from tests.bench.figures import Figure, at_least, at_most, median, percentile
from tests.bench.manifests import gang, pod, process_job
from tests.bench.reference import append_rate, four_processes_ms
from tests.bench.running_system import System, running

from tidegate.api.v1 import api_pb2

GANGS = 150
SINGLES = 6_000
LATENCIES = 100
LOADED_GANGS_PER_SECOND, LOADED_SECONDS = 50, 8
"""A quarter of the 20,000 pods/s that are to be reached."""


async def real_gangs(rounds: int = 15) -> list[Figure]:
    """Gangs of four real processes on this machine."""
    whole: list[float] = []
    starts: list[float] = []
    async with running() as system:
        await asyncio.sleep(1.0)
        ready = system.ready_seconds
        for number in range(rounds):
            names = [f"real{number}-w-{index}" for index in range(4)]
            began = time.perf_counter()
            await system.apply(system.request([process_job(f"real{number}", 4)]))
            ended = await system.facts.until(system.facts.running, names)
            whole.append((ended - began) * 1000)
            starts.append((ended - max(system.facts.bound[name] for name in names)) * 1000)
            await _delete(system, f"real{number}")
    bare = four_processes_ms()
    reference = f"4 bare processes started at once: {bare:.0f} ms"
    return [
        at_most("`tidegate up` to ready", ready, "s", 8),
        at_most("gang of 4 real processes, submit → all running, p50", median(whole), "ms", 150, reference, bare),
        Figure(
            "  of which from bound to running", median(starts), "ms", reference=reference, ratio=median(starts) / bare
        ),
    ]


async def _delete(system: System, job: str) -> None:
    name = api_pb2.ObjectName(kind="job.batch.volcano.sh", namespace="default", name=job)
    await system.stub.Delete(api_pb2.DeleteRequest(names=[name]), metadata=system.metadata)
    await asyncio.sleep(0.3)


async def simulated(nodes: int = 1_000) -> list[Figure]:
    """Latency and throughput on simulated nodes."""
    async with running(sim_nodes=nodes, local_node=False) as system:
        await asyncio.sleep(2.0)
        await _warm_up(system)
        latencies = await _latencies(system)
        gangs = await _throughput(
            system, [system.request(gang(f"t{number}", 100)) for number in range(GANGS)], "t", 100
        )
        singles = await _throughput(system, [system.request([pod(f"s{number}")]) for number in range(SINGLES)], "s", 1)
    raw = await append_rate()
    reference = f"bare durable appends of 100-pod sets, one writer: {raw:,.0f} pods/s"
    return [
        at_most(f"gang of 100 on {nodes} nodes, submit → bound, p99", percentile(latencies, 99), "ms", 100),
        Figure(f"gang of 100 on {nodes} nodes, submit → bound, p50", median(latencies), "ms"),
        at_least("gangs of 100, submit → bound fact, sustained", gangs, "pods/s", 10_000, reference, raw),
        at_least("single pods on one stream, submit → bound fact", singles, "pods/s", 2_000),
    ]


async def large(nodes: int = 5_000) -> list[Figure]:
    """Throughput on a large cluster, and the latency of gangs while a quarter of it comes in all the time."""
    async with running(sim_nodes=nodes, local_node=False) as system:
        await asyncio.sleep(2.0)
        await _warm_up(system)
        latencies = await _open_loop(system, LOADED_GANGS_PER_SECOND, LOADED_SECONDS)
        gangs = await _throughput(
            system, [system.request(gang(f"t{number}", 100)) for number in range(2 * GANGS)], "t", 100
        )
        singles = await _throughput(system, [system.request([pod(f"s{number}")]) for number in range(SINGLES)], "s", 1)
    raw = await append_rate()
    reference = f"bare durable appends of 100-pod sets, one writer: {raw:,.0f} pods/s"
    title = f"gang of 100 on {nodes} nodes at {100 * LOADED_GANGS_PER_SECOND:,} pods/s, submit → bound"
    return [
        at_most(f"{title}, p99", percentile(latencies, 99), "ms", 50),
        Figure(f"{title}, p50", median(latencies), "ms"),
        at_least(f"gangs of 100 on {nodes} nodes, submit → bound fact", gangs, "pods/s", 20_000, reference, raw),
        at_least(f"single pods on {nodes} nodes, one stream, submit → bound fact", singles, "pods/s", 4_000),
    ]


async def _open_loop(system: System, per_second: int, seconds: int) -> list[float]:
    """How long each gang took from when it was due, in milliseconds; gangs come whether those before are bound or not."""
    began = time.perf_counter()

    async def one(number: int, request: api_pb2.ApplyRequest) -> float:
        due = began + number / per_second
        await asyncio.sleep(due - time.perf_counter())
        await system.apply(request)
        names = [f"o{number}-{index}" for index in range(100)]
        return (await system.facts.until(system.facts.bound, names) - due) * 1000

    requests = [system.request(gang(f"o{number}", 100)) for number in range(per_second * seconds)]
    began = time.perf_counter() + 0.2
    return await asyncio.gather(*(one(number, request) for number, request in enumerate(requests)))


async def _warm_up(system: System) -> None:
    await system.apply(system.request(gang("warm", 100)))
    await system.facts.until(system.facts.bound, [f"warm-{index}" for index in range(100)])


async def _latencies(system: System) -> list[float]:
    found = []
    for number in range(LATENCIES):
        names = [f"l{number}-{index}" for index in range(100)]
        request = system.request(gang(f"l{number}", 100))
        began = time.perf_counter()
        await system.apply(request)
        found.append((await system.facts.until(system.facts.bound, names) - began) * 1000)
        await asyncio.sleep(0.05)
    return found


async def _throughput(system: System, requests: list[api_pb2.ApplyRequest], prefix: str, size: int) -> float:
    """Pods a second from the first submission to the last bound fact."""
    if size == 1:
        names = [f"{prefix}{number}" for number in range(len(requests))]
    else:
        names = [f"{prefix}{number}-{index}" for number in range(len(requests)) for index in range(size)]
    began = time.perf_counter()
    await system.apply_stream(requests)
    ended = await system.facts.until(system.facts.bound, names)
    return len(names) / (ended - began)
