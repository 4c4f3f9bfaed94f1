"""A real watch, recorded and served again over HTTP: the gateway keeps up with 5,000 changes a second, and never buffers them.

The recording is of a Kubernetes 1.36 API server with kwok's nodes: 150 pods that are made, bound, run, end, and go
(tests/kubernetes/record_watch.py).
"""

import asyncio
import gc
import gzip
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import orjson
import psutil
from kubernetes.aio.client import Configuration

from apiserver import Access, Api
from bus import MemoryBus
from bus.memory import MemoryLog
from chassis import SystemClock
from cluster_gateway.kubernetes.gateway import KubernetesGateway
from cluster_gateway.settings import GatewaySettings
from kube import Key, Store
from tidegate import subjects
from tidegate.codec import facts
from tidegate.fact.v1 import fact_pb2

HERE = Path(__file__).parent
LAST = "the-last"
"""The name of the last pod of all."""
RECORDING = HERE / "recordings" / "pods.jsonl.gz"
WANTED_PER_SECOND = 5_000
SETTINGS = GatewaySettings(services=())


@asynccontextmanager
async def served(rounds: int, pace: int) -> AsyncIterator[str]:
    """The recording, served by a process of its own; its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "watch_server.py"),
        str(RECORDING),
        str(rounds),
        str(pace),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def gateway_at(address: str, bus: MemoryBus) -> AsyncIterator[KubernetesGateway]:
    """A gateway that follows what is served."""
    api = Api(Access(Configuration(host=address), None, ""))
    made = KubernetesGateway(bus, SystemClock(), SETTINGS, api, frozenset({"Pod"}))
    task = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(90):
            await made.ready.wait()
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def recorded() -> list[dict[str, object]]:
    with gzip.open(RECORDING) as file:
        return [orjson.loads(line) for line in file][1:]


def is_told(gateway: KubernetesGateway) -> bool:
    """Whether the last of all changes was folded."""
    return Key("Pod", "default", LAST) in gateway.mirror.store.of_kind("Pod")


async def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@contextmanager
def measured(most_seconds: float) -> Iterator[None]:
    """Fails when this process takes more CPU time. As in a service nothing is searched for cycles that was searched before."""
    gc.disable()
    began = time.process_time()
    try:
        yield
    finally:
        taken = time.process_time() - began
        gc.enable()
    assert taken <= most_seconds, f"{taken:.2f} s of CPU, {most_seconds:.2f} s are allowed"


async def test_five_thousand_changes_a_second_are_less_than_one_core_has_time_for() -> None:
    rounds, lines = 6, recorded()
    async with served(rounds, 0) as address, gateway_at(address, bus := MemoryBus()) as gateway:
        with measured(rounds * len(lines) / WANTED_PER_SECOND):
            await until(lambda: is_told(gateway))

    assert gateway.mirror.store.of_kind("Pod").keys() == {Key("Pod", "default", LAST)}
    assert told(bus) == rounds * Counter(str(line["type"]) for line in lines)["ADDED"] + 1


def told(bus: MemoryBus) -> int:
    """How many pods the facts ever told as new."""
    store, count = Store(), 0
    for entry in bus.log(subjects.FACTS).entries(0):
        events = facts.fold(store, fact_pb2.ChangeSet.FromString(entry.payload), entry.sequence)
        count += sum(event.old is None for event in events)
    return count


class SlowLog(MemoryLog):
    """A log that takes its time."""

    pause = 0.0

    async def append(self, *arguments: object, **named: object) -> int:
        await asyncio.sleep(self.pause)
        return await super().append(*arguments, **named)  # type: ignore[arg-type]


class SlowBus(MemoryBus):
    """A bus whose facts are stored slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = SlowLog(subjects.FACTS)

    def log(self, name: str) -> MemoryLog:
        return self.slow if name == subjects.FACTS else super().log(name)


def sent(address: str) -> int:
    with urllib.request.urlopen(f"{address}/sent", timeout=10) as answer:
        return int(orjson.loads(answer.read())["sent"])


async def test_while_the_bus_is_slow_the_server_is_held_back_and_memory_stays_as_it_is() -> None:
    bus, process = SlowBus(), psutil.Process()
    async with served(12, 0) as address, gateway_at(address, bus) as gateway:
        SlowLog.pause = 0.25
        try:
            await asyncio.sleep(1.0)
            before, told = process.memory_info().rss, await asyncio.to_thread(sent, address)
            await asyncio.sleep(3.0)
            more = await asyncio.to_thread(sent, address) - told
            grown = process.memory_info().rss - before
        finally:
            SlowLog.pause = 0.0
        assert more < 5_000, f"{more} changes were read while 12 change sets were stored"
        assert grown < 32 << 20, f"{grown >> 20} MiB more"

        await until(lambda: is_told(gateway))
