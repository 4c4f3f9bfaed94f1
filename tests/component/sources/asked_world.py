"""What a collector sees and hands in, and servers of this process that it asks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bus.server import free_port
from inference_autoscaler.domain.metrics.reading import READING
from kube import Key, Manifest, Object, Store, from_manifest

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class World:
    """The facts as the collector sees them; what it hands in is a fact at once. Its clock can be moved on."""

    def __init__(self) -> None:
        self.store, self.pods, self.secrets = Store(), list[Object](), dict[str, Mapping[str, bytes]]()
        self.written: list[Manifest] = []
        self.dropped: list[str] = []
        self.skipped_ms = 0
        self.leads = True

    def now(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000) + self.skipped_ms

    def pods_of(self, target: Key) -> Sequence[Object]:
        return self.pods

    async def secret(self, whose: Key, name: str) -> Mapping[str, bytes] | None:
        return self.secrets.get(name)

    async def put_reading(self, reading: Manifest) -> None:
        self.written.append(reading)
        self.put(reading)

    def put(self, manifest: Manifest) -> Object:
        item = from_manifest(manifest, uid=str(manifest["metadata"]["name"]))
        self.store.put(item)
        return item

    def pod(self, name: str, port: int) -> None:
        metadata = {"name": name, "annotations": {"prometheus.io/port": str(port)}}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"podIP": "127.0.0.1"}}
        self.pods.append(self.put(manifest))

    async def drop(self, key: Key, uid: str) -> None:
        self.dropped.append(key.name)
        self.store.remove(key)

    def readings(self) -> list[Manifest]:
        return [item.spec for item in self.store.of_kind(READING).values()]

    def trigger(self, kind: str, name: str = "web", more: Manifest | None = None, **metadata: str) -> None:
        """A ScaledObject with one trigger, asked every second."""
        given = {"type": kind, "metadata": metadata, **(more or {})}
        spec = {"scaleTargetRef": {"name": "web"}, "pollingInterval": 1, "triggers": [given]}
        self.put({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec})

    def autoscaler(self, metric: str) -> None:
        source = {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "1"}}
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": reference, "maxReplicas": 9, "metrics": [{"type": "Pods", "pods": source}]}
        metadata = {"name": "web"}
        self.put(
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
        )

    async def until(self, holds: Callable[[], Any]) -> Any:
        """What ``holds`` returns once that is true; time runs ten times as fast meanwhile."""
        async with asyncio.timeout(20):
            while not (found := holds()):
                self.skipped_ms += 90
                await asyncio.sleep(0.01)
        return found

    async def told(self, holds: Callable[[Manifest], Any]) -> Manifest:
        """The one sample, once it is so."""
        found = await self.until(lambda: next((one for one in self.readings() if holds(one)), None))
        assert isinstance(found, dict)
        return found


class HandingIn:
    """What is handed in is a fact at once."""

    def __init__(self, world: World) -> None:
        self.store, self.delete = world.put_reading, world.drop


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[int]:
    """A server that answers everything by ``handler``; its port."""
    app = web.Application()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    port = port or free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield port
    finally:
        await runner.cleanup()
