"""What the whole system costs while nothing happens."""

import asyncio

from tests.bench.figures import Figure, at_most
from tests.bench.reference import idle_python_mib
from tests.bench.running_system import running

WATCH_SECONDS = 15.0


async def idle() -> list[Figure]:
    """CPU (percent of one core) and resident memory of all processes together."""
    async with running() as system:
        await asyncio.sleep(5.0)
        processes = system.processes()
        before = sum(sum(process.cpu_times()[:2]) for process in processes)
        await asyncio.sleep(WATCH_SECONDS)
        used = sum(sum(process.cpu_times()[:2]) for process in processes) - before
        memory = sum(process.memory_info().rss for process in processes) / 2**20
        count = len(processes)
    bare = idle_python_mib() * (count - 1)
    reference = f"{count - 1} idle Python processes with gRPC: {bare:.0f} MiB"
    return [
        at_most("idle, all processes together", 100 * used / WATCH_SECONDS, "% of a core", 3),
        at_most("idle, resident memory of all processes", memory, "MiB", 900, reference, bare),
    ]
