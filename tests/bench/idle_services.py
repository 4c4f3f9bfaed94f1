"""What the autoscaler costs as a process of its own beside ten thousand services that nobody asks anything of, on a real bus."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from tests.bench.autoscaler_core import AutoscaledCluster, deployment, reading, running_pod
from tests.bench.figures import Figure, at_most
from tests.bench.reference import idle_python_mib

from bus import BusError
from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from chassis.topics import STATE
from kube import Key, Manifest
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, Private, encode_commit
from tidegate.codec.facts import FactSet, encode, encode_snapshot

SERVICE = "inference_autoscaler"
SERVERLESS, STANDARD, SCALED = 5_000, 2_500, 2_500
"""InferenceServices at zero, InferenceServices with a Deployment and an autoscaler, and ScaledObjects at zero."""
WARM_SECONDS, WATCH_SECONDS = 20.0, 60.0
_HOUR_MS = 3_600_000
_INFERENCE = "serving.kserve.io/v1beta1"


async def idle_services() -> list[Figure]:
    """Time until it answers, CPU of a minute, and memory."""
    cluster = settled(round(time.time() * 1000) - _HOUR_MS)
    with tempfile.TemporaryDirectory() as folder:
        async with _bus(Path(folder)) as (bus, settings):
            facts = bus.log(subjects.FACTS)
            await facts.append(encode(FactSet(cluster.now, ())), expected=0, message_id="first")
            objects = list(cluster.store.objects.values())
            await facts.put_snapshot(1, encode_snapshot(objects, 1, cluster.now, {}))
            head = CommitHead(SERVICE, 1, 1, cluster.now)
            commit = encode_commit(head, (), Private(parts=cluster.memory))
            await bus.log(subjects.decisions(SERVICE)).append(commit, expected=0, message_id="m", topic=STATE)
            began = time.perf_counter()
            words = ["--data-dir", folder, "--nats-url", settings.url, "--nats-token", settings.token]
            program = [sys.executable, "-m", f"{SERVICE}.main", *words]
            nothing = asyncio.subprocess.DEVNULL
            child = await asyncio.create_subprocess_exec(*program, env=_quiet(), stdout=nothing, stderr=nothing)
            try:
                await _answers(bus)
                used = sum(psutil.Process(child.pid).cpu_times()[:2])
                by_clock = f"by the clock: {time.perf_counter() - began:.1f} s"
                title = f"autoscaler with {len(objects):,} objects, to ready, CPU"
                return [at_most(title, used, "s", 10, by_clock), *await _watch(bus, child.pid)]
            finally:
                child.terminate()
                await child.wait()


async def _watch(bus: JetStreamBus, pid: int) -> list[Figure]:
    """The first look at all of them, and a minute in which nothing happens."""
    process, log = psutil.Process(pid), bus.log(subjects.decisions(SERVICE))
    begun = sum(process.cpu_times()[:2])
    await asyncio.sleep(WARM_SECONDS)
    first, decided = sum(process.cpu_times()[:2]), await log.last()
    await asyncio.sleep(WATCH_SECONDS)
    used = sum(process.cpu_times()[:2]) - first
    assert await log.last() == decided, "something was decided though nothing happened"
    memory, bare = process.memory_info().rss / 2**20, idle_python_mib()
    title = f"autoscaler beside {SERVERLESS + STANDARD + SCALED:,} idle services"
    return [
        Figure(f"{title}, its first look at all of them", first - begun, "s of CPU"),
        at_most(f"{title}, of a core", 100 * used / WATCH_SECONDS, "%", 5),
        at_most("the same, resident memory", memory, "MiB", 500, f"an idle Python process: {bare:.0f} MiB", bare),
    ]


def settled(now: int) -> AutoscaledCluster:
    """All services, at rest."""
    cluster = AutoscaledCluster(now)
    serverless = [f"zero-{number:05}" for number in range(SERVERLESS)]
    standard = [f"plain-{number:05}" for number in range(STANDARD)]
    scaled = [f"job-{number:05}" for number in range(SCALED)]
    cluster.put(*(_service(name, "Serverless", 0) for name in serverless))
    cluster.put(*(_service(name, "RawDeployment", 1) for name in standard))
    for name in scaled:
        labels = {"scaledobject.keda.sh/name": name}
        cluster.put(
            deployment(name, 0), reading(f"{name}-queue", "s0-prometheus", "0", now, labels=labels), _scaled(name)
        )
    cluster.look()
    for name in standard:
        app, pod = f"isvc.{name}-predictor", f"{name}-predictor-0"
        cluster.put(running_pod(pod, app, now), reading(f"{pod}-cpu", "cpu", "800m", now, ("v1", "Pod", pod)))
        cluster.ready(Key("Deployment.apps", "default", f"{name}-predictor"), 1)
    for name in serverless:
        cluster.ready(Key("Deployment.apps", "default", f"{name}-predictor-00001-deployment"), 1)
    cluster.look()
    for seconds in (64, 66, 100, 120):  # a window, the time of idleness, and the way to zero
        cluster.now = now + 1000 * seconds
        for name in serverless:
            cluster.put(reading(name, "concurrency", "0", cluster.now, (_INFERENCE, "InferenceService", name)))
        cluster.look()
    for name in serverless:
        key = Key("Deployment.apps", "default", f"{name}-predictor-00001-deployment")
        assert cluster.store.objects[key].spec["replicas"] == 0, f"{name} does not sleep"
        cluster.ready(key, 0)
    while (due := cluster.core.deadline()) is not None and due < now + _HOUR_MS:
        cluster.now = due
        cluster.look()
    assert due is None, "somebody does not come to rest"
    return cluster


def _service(name: str, mode: str, least: int) -> Manifest:
    containers = [{"name": "kserve-container", "image": "model:1", "resources": {"requests": {"cpu": "1"}}}]
    predictor = {"minReplicas": least, "maxReplicas": 5, "scaleTarget": 80, "containers": containers}
    metadata = {"name": name, "annotations": {"serving.kserve.io/deploymentMode": mode}}
    spec = {"predictor": predictor}
    return {"apiVersion": _INFERENCE, "kind": "InferenceService", "metadata": metadata, "spec": spec}


def _scaled(name: str) -> Manifest:
    triggers = [{"type": "prometheus", "metadata": {"query": "q", "threshold": "10"}}]
    spec = {"scaleTargetRef": {"name": name}, "maxReplicaCount": 5, "triggers": triggers}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec}


async def _answers(bus: JetStreamBus) -> None:
    """Return once the service leads and answers."""
    async with asyncio.timeout(120):
        while True:
            try:
                await bus.request(subjects.question(SERVICE, "settings"), b"{}", timeout=1.0)
                return
            except BusError:
                await asyncio.sleep(0.05)


def _quiet() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@asynccontextmanager
async def _bus(folder: Path) -> AsyncIterator[tuple[JetStreamBus, ServerSettings]]:
    settings = ServerSettings(folder / "nats", free_port(), "bench")
    server = await asyncio.create_subprocess_exec(
        *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await wait_until_open(settings.host, settings.port)
        bus = await JetStreamBus.connect(settings.url, "bench", token=settings.token)
        yield bus, settings
        await bus.close()
    finally:
        server.kill()
        await server.wait()
