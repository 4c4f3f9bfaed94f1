"""A whole system for a benchmark: real processes on the real bus, and eyes on its log of facts."""

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import psutil
import yaml

from bus.jetstream import JetStreamBus
from tidegate.api.v1 import api_pb2, api_pb2_grpc
from tidegate.client.gathering import gathered, stream_answers
from tidegate.fact.v1 import fact_pb2
from tidegate_cli.supervisor import endpoint
from tidegate_cli.supervisor.plan import UpSettings
from tidegate_cli.supervisor.supervisor import Supervisor

LARGE = [("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 64 << 20)]


@dataclass(slots=True)
class Facts:
    """When each pod was first seen bound, and first seen running, in the log of facts (seconds of perf_counter)."""

    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, bus: JetStreamBus, after: int) -> None:
        async for entries in bus.log("fact").read(after):
            now = time.perf_counter()
            for entry in entries:
                self._take(fact_pb2.ChangeSet.FromString(entry.payload), now)
            grown, self._grown = self._grown, asyncio.Event()
            grown.set()

    def _take(self, change_set: fact_pb2.ChangeSet, now: float) -> None:
        runs = {number for number, blob in enumerate(change_set.blobs, 1) if b'"phase":"Running"' in blob}
        for change in change_set.changes:
            names = change.names or (change.name,)
            if change.node or change.nodes:
                self.bound.update(dict.fromkeys(names, now))
            if change.status in runs:
                self.running.update(dict.fromkeys(names, now))

    async def until(self, seen: dict[str, float], names: list[str], timeout: float = 60.0) -> float:
        """When the last of ``names`` was seen; raises TimeoutError."""
        waiting = list(names)
        async with asyncio.timeout(timeout):
            while True:
                while waiting and waiting[-1] in seen:
                    waiting.pop()
                if not waiting:
                    return max(seen[name] for name in names)
                await self._grown.wait()


@dataclass(slots=True)
class System:
    """A running system: its gRPC stub, its facts, its processes."""

    folder: Path
    ready_seconds: float
    stub: Any
    metadata: tuple[tuple[str, str], ...]
    facts: Facts

    def request(self, manifests: list[dict[str, Any]]) -> api_pb2.ApplyRequest:
        return api_pb2.ApplyRequest(manifests=[json.dumps(manifest).encode() for manifest in manifests])

    async def apply(self, request: api_pb2.ApplyRequest) -> None:
        """Apply; raises RuntimeError when anything is refused."""
        _check(await self.stub.Apply(request, metadata=self.metadata))

    async def apply_stream(self, requests: list[api_pb2.ApplyRequest]) -> None:
        """All of them one by one on one open stream, as the client does it, without waiting for answers in between."""

        async def sending() -> AsyncIterator[api_pb2.ApplyRequest]:
            for request in requests:
                yield request

        async for response in self.stub.ApplyStream(gathered(sending()), metadata=self.metadata):
            for answer in stream_answers(response):
                _check(answer)

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object of the namespace ``default``."""
        await self.stub.Delete(
            api_pb2.DeleteRequest(names=[api_pb2.ObjectName(kind=kind, namespace="default", name=name)]),
            metadata=self.metadata,
        )

    async def nodes(self) -> list[str]:
        """The names of the nodes."""
        answer = await self.stub.List(api_pb2.ListRequest(kind="node"), metadata=self.metadata)
        return sorted(json.loads(one)["metadata"]["name"] for one in answer.manifests)

    def processes(self) -> list[psutil.Process]:
        found = endpoint.read(self.folder)
        assert found is not None
        return [psutil.Process(pid) for pid in found.children.values()]


def _check(response: api_pb2.ApplyResponse) -> None:
    refused = [result.message for result in response.results if result.outcome == "refused"]
    if refused:
        raise RuntimeError(refused[0])


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[System]:
    """Start a system in a folder of its own, and stop it."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as name:
        folder = Path(name)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        supervisor = Supervisor(UpSettings(folder, **options), print)
        task = asyncio.create_task(supervisor.run(ready.set_result))
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        took = time.perf_counter() - began
        try:
            async with _connected(folder, await ready, took) as system:
                yield system
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _connected(folder: Path, server: str, ready_seconds: float) -> AsyncIterator[System]:
    configuration = (folder / "nats" / "nats.conf").read_text()
    url = re.search(r'listen: "([^"]+)"', configuration)
    token = re.search(r'token: "([^"]+)"', configuration)
    assert url is not None and token is not None
    bus = await JetStreamBus.connect(f"nats://{url[1]}", "bench", token=token[1])
    facts = Facts()
    following = asyncio.create_task(facts.follow(bus, await bus.log("fact").last()))
    user = yaml.safe_load((folder / "users.yaml").read_text())[0]
    try:
        async with grpc.aio.insecure_channel(server, options=LARGE) as channel:
            stub = api_pb2_grpc.TidegateServiceStub(channel)
            yield System(folder, ready_seconds, stub, (("authorization", f"Bearer {user['token']}"),), facts)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await bus.close()
