"""How long a gateway needs to be back with many objects, from a snapshot and the log behind it."""

import asyncio
import itertools
import json
import tempfile
import time
from pathlib import Path

import orjson
from tests.bench.figures import Figure, at_most
from tests.bench.manifests import pod

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from chassis import SystemClock
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from kube import Edit, Key, Object
from tidegate.codec.facts import FactSet, encode, encode_snapshot

OBJECTS = 100_000
BEHIND = 500


async def restart() -> list[Figure]:
    """Load a snapshot of 100,000 pods of a thousand templates and the change sets behind it."""
    objects = [_pod(number) for number in range(OBJECTS)]
    with tempfile.TemporaryDirectory() as folder:
        settings = ServerSettings(Path(folder), free_port(), "t")
        server = await asyncio.create_subprocess_exec(
            *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        await wait_until_open(settings.host, settings.port)
        bus = await JetStreamBus.connect(settings.url, "restart", token="t")
        log = bus.log("fact")
        for number in range(BEHIND):
            status = {"phase": "Running", "startTime": str(number)}
            change = Edit(objects[number].key, objects[number].uid, status=status)
            await log.append(encode(FactSet(0, (change,))), expected=number, message_id=f"m{number}")
        await log.put_snapshot(0, encode_snapshot(objects, 0, 0, {}))
        took = await _start_gateway(bus)
        await bus.close()
        server.kill()
        await server.wait()
    began = time.perf_counter()
    content = [json.dumps(item.manifest()) for item in objects[: OBJECTS // 10]]
    for text in content:
        orjson.loads(text)
    plain = (time.perf_counter() - began) * 10
    reference = f"writing and reading the same objects as plain JSON: {plain:.1f} s"
    return [at_most("gateway back at 100,000 objects, from snapshot and log", took, "s", 2, reference, plain)]


async def _start_gateway(bus: JetStreamBus) -> float:
    """Seconds until a gateway that starts is ready to write."""
    uids = (f"uid-new-{number}" for number in itertools.count())
    settings = GatewaySettings(services=())
    gateway = Gateway(bus, SystemClock(), settings, MemorySecrets(), lambda: next(uids))
    began = time.perf_counter()
    task = asyncio.create_task(gateway.run())
    await gateway.ready.wait()
    took = time.perf_counter() - began
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return took


def _pod(number: int) -> Object:
    manifest = pod(f"p{number}", {"template": str(number // 100)})
    metadata = {**_METADATA, "annotations": manifest["metadata"]["annotations"]}
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    return Object(Key("Pod", "default", f"p{number}"), f"uid-{number}", metadata, {"spec": manifest["spec"]}, status)


_METADATA = {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "labels": {"app": "bench"}}
