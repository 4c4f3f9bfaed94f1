"""How long an API server waits for the webhooks, over real TLS connections, beside a server that only echoes."""

import asyncio
import datetime
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import aiohttp
import orjson
import psutil
from tests.bench.figures import Figure, at_most, percentile
from tests.bench.manifests import Manifest, pod, process_job
from tests.bench.webhook_server import CHANGES

from admission.webhooks.certificates import make
from bus.server import free_port, wait_until_open

RATE = 200
"""Reviews a second, sent when they are due whether or not the ones before are answered."""
SECONDS = 15
GOAL_MS = 20.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of each review from when it was due, and CPU milliseconds of the server for one."""

    waits: Sequence[float]
    cpu_ms: float


def reviews() -> list[tuple[str, bytes]]:
    """What an API server asks when jobs and pods come in, in turn: a path and a body."""
    job = {**process_job("train", 8), "metadata": {"name": "train", "namespace": "default"}}
    plain = {**pod("p"), "metadata": {"name": "p", "namespace": "default", "labels": {"work3": "yes"}}}
    asked: list[tuple[str, Manifest]] = [
        ("/mutate", job),
        ("/validate", job),
        ("/pods/profiles", plain),
        ("/pods/scheduler", plain),
        ("/pods/validate", plain),
    ]
    return [(path, orjson.dumps(_review(manifest))) for path, manifest in asked]


def _review(manifest: Manifest) -> Manifest:
    request = {"uid": "r", "operation": "CREATE", "namespace": "default", "object": manifest, "oldObject": None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@asynccontextmanager
async def _serving(folder: Path, *words: str) -> AsyncIterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.webhook_server", str(port), str(folder), *words]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await wait_until_open("127.0.0.1", port)
        yield port, psutil.Process(process.pid)
    finally:
        process.kill()
        await process.wait()


async def _measure(port: int, process: psutil.Process, folder: Path) -> Measured:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    waits: list[float] = []
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{port}", connector=aiohttp.TCPConnector(ssl=context)
    ) as session:

        async def ask(path: str, body: bytes, due: float) -> None:
            async with session.post(path, data=body) as answer:
                answer.raise_for_status()
                await answer.read()
            waits.append((time.perf_counter() - due) * 1000)

        await asyncio.gather(*(ask(*one, time.perf_counter()) for one in islice(cycle(reviews()), 50)))
        waits.clear()
        before, begin = sum(process.cpu_times()[:2]), time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number, (path, body) in enumerate(islice(cycle(reviews()), RATE * SECONDS)):
                due = begin + number / RATE
                await asyncio.sleep(due - time.perf_counter())
                tasks.create_task(ask(path, body, due))
        used = sum(process.cpu_times()[:2]) - before
    return Measured(waits, 1000 * used / len(waits))


async def admission() -> list[Figure]:
    """The wait for a review, and what it costs, beside a bare TLS echo of the same bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), make(("127.0.0.1",), datetime.datetime.now(datetime.UTC))
        for file, content in (("tls.crt", made.serving), ("tls.key", made.serving_key), ("ca.crt", made.authority)):
            (folder / file).write_bytes(content)
        async with _serving(folder, "echo") as (port, process):
            echo = await _measure(port, process, folder)
        async with _serving(folder) as (port, process):
            ours = await _measure(port, process, folder)
        async with _serving(folder, "busy") as (port, process):
            busy = await _measure(port, process, folder)
    figures = []
    for percent in (50, 99):
        bare = percentile(echo.waits, percent)
        for measured, where in ((ours, ""), (busy, f", {CHANGES:,} pods change each second")):
            what = f"webhook, {RATE} reviews/s over TLS, p{percent}{where}"
            wait = percentile(measured.waits, percent)
            figures.append(at_most(what, wait, "ms", GOAL_MS, f"TLS echo: {bare:.1f} ms", bare))
    reference = f"TLS echo: {echo.cpu_ms:.2f} ms"
    return [*figures, at_most("webhook, CPU of one review", ours.cpu_ms, "ms", 2.0, reference, echo.cpu_ms)]
