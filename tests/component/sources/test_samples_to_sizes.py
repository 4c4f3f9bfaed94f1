"""From what a source says to a size: sources, the cluster gateway and the autoscaler, on one bus."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from asked_world import serving

from bus import MemoryBus
from chassis.clock import SteadyClock
from chassis.fact_fold import FactFold
from chassis.measures import Measures
from chassis.process import Context
from chassis.tracing import NoTracer
from cluster_gateway.gateway import Gateway
from cluster_gateway.main import uids
from cluster_gateway.secrets import MemorySecrets
from cluster_gateway.settings import GatewaySettings
from inference_autoscaler import main
from inference_autoscaler.settings import Settings
from inference_autoscaler.sources import collector
from kube import Key, Manifest, Store, from_manifest
from tidegate import subjects
from tidegate.codec.write_draft import WriteDraft
from tidegate.gateway.v1 import gateway_pb2

TARGET = Key("Deployment.apps", "default", "web")
SCALED = Key("ScaledObject.keda.sh", "default", "web")


class System:
    """The gateway with a cluster of its own, and inference_autoscaler as its main program builds it."""

    def __init__(self) -> None:
        self.bus, clock = MemoryBus(), SteadyClock(0)
        gateway = Gateway(self.bus, clock, GatewaySettings(), MemorySecrets(), uids().__next__)
        self._gateway, self._context = gateway, Context(self.bus, clock, Measures("t"), NoTracer())
        self._tasks: list[asyncio.Task[None]] = []
        self._written = 0

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(self._gateway.run())]
        await self._gateway.ready.wait()
        parts = await main.build(Settings(), self._context)
        self._tasks += [asyncio.create_task(_run(work)) for work in parts.tasks.values()]
        await parts.ready[0].wait()

    async def stop(self) -> None:
        for task in self._tasks[::-1]:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def put(self, *manifests: Manifest) -> None:
        draft = WriteDraft()
        for manifest in manifests:
            draft.store(from_manifest(manifest), 0)
        self._written += 1
        draft.request.id, draft.request.actor = f"w{self._written}", "user"
        answer = await self.bus.request(subjects.WRITE, draft.request.SerializeToString())
        assert not gateway_pb2.WriteReply.FromString(answer).error

    def store(self) -> Store:
        fold = FactFold()
        for entry in self.bus.log(subjects.FACTS).entries(0):
            fold.take(entry)
        return fold.store

    def replicas(self) -> int:
        return int(self.store().objects[TARGET].spec["replicas"])

    def ready(self) -> tuple[str, str]:
        """Status and message of the ScaledObject's condition Ready."""
        listed = self.store().objects[SCALED].status.get("conditions") or ()
        return next(((one["status"], one["message"]) for one in listed if one["type"] == "Ready"), ("", ""))

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                await asyncio.sleep(0.05)


async def _run(work: Any) -> None:
    await work


@pytest.fixture
async def system(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[System]:
    monkeypatch.setattr(collector, "LOOK_SECONDS", 0.05)
    made = System()
    await made.start()
    yield made
    await made.stop()


def objects(port: int) -> list[Manifest]:
    """A Deployment that sleeps, the trigger that wakes it, and what lets the trigger in."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    told = {"serverAddress": f"http://127.0.0.1:{port}", "query": "sum(q)", "threshold": "5", "authModes": "bearer"}
    trigger = {"type": "prometheus", "metadata": told, "authenticationRef": {"name": "creds"}}
    scaled = {"scaleTargetRef": {"name": "web"}, "pollingInterval": 1, "triggers": [trigger]}
    creds = {"secretTargetRef": [{"parameter": "bearerToken", "name": "s", "key": "token"}]}

    def named(kind: str, api: str, name: str, **parts: Any) -> Manifest:
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **parts}

    return [
        named("Deployment", "apps/v1", "web", spec=deployment),
        named("Secret", "v1", "s", data={"token": "aHVzaA=="}),
        named("TriggerAuthentication", "keda.sh/v1alpha1", "creds", spec=creds),
        named("ScaledObject", "keda.sh/v1alpha1", "web", spec=scaled),
    ]


async def test_a_source_wakes_a_deployment_and_one_that_is_lost_holds_it(system: System) -> None:
    value, is_lost = "12", False

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer hush":
            raise web.HTTPUnauthorized()
        if is_lost:
            raise web.HTTPBadGateway()
        result = [{"metric": {}, "value": [0, value]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    async with serving(answer) as port:
        await system.put(*objects(port))
        await system.until(lambda: system.replicas() >= 1)
        await system.until(lambda: system.ready()[0] == "True")
        is_lost = True
        await system.until(lambda: system.ready()[0] == "False")
        assert f"http://127.0.0.1:{port} answers 502" in system.ready()[1]
        assert system.replicas() >= 1
    log = b"".join(entry.payload for entry in system.bus.log(subjects.FACTS).entries(0))
    assert b"hush" not in log and b"aHVzaA" not in log
