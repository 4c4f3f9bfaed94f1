"""What processes use: CPU time between two moments, and memory."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psutil

LOOK_SECONDS = 1.0
MIB = 1 << 20


@dataclass(slots=True)
class Usage:
    """By the name of a process: seconds of CPU that it used, and MiB of its own memory (PSS) at the end."""

    cpu_seconds: dict[str, float] = field(default_factory=dict)
    memory_mib: dict[str, float] = field(default_factory=dict)
    most_rss_mib: float = 0.0
    """The largest sum of resident memory that was seen of those that are looked at; shared pages count for each process."""


@asynccontextmanager
async def used(processes: Mapping[str, psutil.Process], looked_at: Collection[psutil.Process]) -> AsyncIterator[Usage]:
    """What ``processes`` use meanwhile; complete when the block is left."""
    usage, before = Usage(), {name: _cpu(process) for name, process in processes.items()}

    async def look() -> None:
        while True:
            usage.most_rss_mib = max(usage.most_rss_mib, sum(map(_rss, looked_at)) / MIB)
            await asyncio.sleep(LOOK_SECONDS)

    looking = asyncio.create_task(look())
    try:
        yield usage
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        for name, process in processes.items():
            usage.cpu_seconds[name] = _cpu(process) - before[name]
        for name, process in processes.items():
            usage.memory_mib[name] = process.memory_full_info().pss / MIB


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _rss(process: psutil.Process) -> int:
    return int(process.memory_info().rss)
