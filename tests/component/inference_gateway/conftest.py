"""The service as a real process with a real proxy, on a real bus; model servers that answer real requests."""

import asyncio
import contextlib
import io
import itertools
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from kube import Edit, Key, Manifest
from tidegate import subjects
from tidegate.codec import facts
from tidegate.codec.blobs import BlobReader
from tidegate.codec.facts import FactSet
from tidegate.gateway.v1 import gateway_pb2

SERVICE = "InferenceService.serving.kserve.io"
NAMESPACE, DOMAIN = "team", "example.com"
PATIENCE_SECONDS = 60.0
_addresses = itertools.count(2)
_NETWORK = f"127.77.{os.getpid() % 250}"
"""Another one for another run of the tests: all replicas listen at the same port."""


@dataclass(slots=True)
class ModelServer:
    """A replica: it notes who asked, and answers as ``answer`` says."""

    name: str
    address: str
    port: int = 8080
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
    requests: Counter[str] = field(default_factory=Counter)
    active: int = 0
    most: int = 0
    _runner: web.AppRunner | None = None

    async def start(self) -> "ModelServer":
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self.address, self.port).start()
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def kill(self) -> None:
        """End it as a signal does that nobody handles: whatever it is at breaks."""
        assert self._runner is not None and self._runner.server is not None
        for site in [*self._runner.sites]:
            await site.stop()
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests[request.headers.get("x-id", request.path)] += 1
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            if self.answer is not None:
                return await self.answer(request)
            body = await request.read()
            told = {"by": self.name, "path": request.path, "method": request.method, "length": len(body)}
            return web.json_response({**told, "headers": dict(request.headers)})
        finally:
            self.active -= 1


class Rig:
    """A gateway, and the cluster that it is told of."""

    def __init__(self, folder: Path, bus: JetStreamBus, url: str) -> None:
        self.folder, self.bus, self._url = folder, bus, url
        self.port, self.metrics_port = free_port(), free_port()
        self.settings: dict[str, object] = {}
        self.samples: list[Manifest] = []
        self.servers: list[ModelServer] = []
        self._process: asyncio.subprocess.Process | None = None
        self._log, self._revision = bus.log(subjects.FACTS), 0
        self._made: set[Key] = set()

    # --- the service -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start it, and return once requests can come in."""
        flags = {
            "nats-url": self._url,
            "data-dir": self.folder,
            "gateway-port": self.port,
            "metrics-port": self.metrics_port,
            **self.settings,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        environment = {**os.environ, "TIDEGATE_NATS_TOKEN": "secret"}
        with (self.folder / "gateway.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "inference_gateway.main", *words), env=environment, stdout=log, stderr=log
            )
        await self.eventually(self._takes_requests)

    def kill(self) -> None:
        """Kill the service, not its proxy."""
        assert self._process is not None
        self._process.kill()

    async def stop(self) -> None:
        """End it as a supervisor does."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)

    @property
    def proxy_pid(self) -> int:
        return int(json.loads((self.folder / "inference_gateway/proxy.json").read_text())["pid"])

    def kill_proxy(self) -> None:
        os.kill(self.proxy_pid, signal.SIGKILL)

    def is_alive(self, pid: int) -> bool:
        """Whether there is a process of this id that is more than a remainder."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    async def _takes_requests(self) -> bool:
        assert self._process is not None and self._process.returncode is None, self.said()
        try:
            status, _ = await self.ask("nobody.example.com")
        except aiohttp.ClientError:
            return False
        return status == 404

    def said(self) -> str:
        """What the service and its proxy wrote."""
        files = (self.folder / "gateway.log", self.folder / "inference_gateway/proxy.log")
        return "\n".join(file.read_text() for file in files if file.exists())

    # --- the cluster -----------------------------------------------------------------------------------------------

    async def fact(self, *edits: Edit) -> None:
        """Something that became so."""
        self._revision += 1
        payload = facts.encode(FactSet(self._revision, edits))
        await self._log.append(payload, expected=self._revision - 1, message_id=f"fact-{self._revision}")

    def _edit(self, key: Key, metadata: Manifest, body: Manifest, status: Manifest) -> Edit:
        fresh = key not in self._made
        self._made.add(key)
        return Edit(key, f"uid-{key.name}", metadata, body, status, fresh=fresh)

    async def service(
        self,
        name: str,
        split: dict[str, int] | None = None,
        annotations: dict[str, str] | None = None,
        **predictor: Any,
    ) -> None:
        """There is an InferenceService with these shares of its revisions; without any it is in standard mode."""
        traffic = [{"revisionName": revision, "percent": percent} for revision, percent in (split or {}).items()]
        mode = "Standard" if split is None else "Knative"
        status = {"deploymentMode": mode, "components": {"predictor": {"traffic": traffic}}}
        spec = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}, **predictor}}
        metadata = {"annotations": annotations or {}}
        await self.fact(self._edit(Key(SERVICE, NAMESPACE, name), metadata, {"spec": spec}, status))

    async def replica(
        self, pool: str, *, serve: bool = True, answer: Any = None, containers: list[Manifest] | None = None
    ) -> ModelServer:
        """A pod of ``pool`` became ready, with a server that answers."""
        number = next(_addresses)
        server = ModelServer(f"{pool}-{number}", f"{_NETWORK}.{number}", answer=answer)
        if serve:
            await server.start()
        self.servers.append(server)
        await self.pod(server, pool, containers=containers)
        return server

    async def pod(
        self,
        server: ModelServer,
        pool: str,
        *,
        ready: bool = True,
        deleted: str = "",
        containers: list[Manifest] | None = None,
    ) -> None:
        """What is known of the pod of ``server``; it is to go since ``deleted``."""
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "podIP": server.address, "conditions": [condition]}
        metadata: Manifest = {"labels": {"app": f"isvc.{pool}"}}
        if deleted:
            metadata["deletionTimestamp"] = deleted
        spec = {"containers": containers or [{"name": "kserve-container", "ports": [{"containerPort": server.port}]}]}
        key = Key("Pod", NAMESPACE, server.name)
        await self.fact(self._edit(key, metadata, {"spec": spec}, status))

    async def deleted(self, server: ModelServer, pool: str) -> None:
        """The pod of ``server`` is to go."""
        await self.pod(server, pool, deleted="2026-01-01T00:00:00Z")

    async def gone(self, server: ModelServer) -> None:
        """The pod of ``server`` is there no more."""
        key = Key("Pod", NAMESPACE, server.name)
        self._made.discard(key)
        await self.fact(Edit(key, f"uid-{server.name}", removed=True))

    # --- whoever asks ----------------------------------------------------------------------------------------------

    async def ask(
        self, host: str, path: str = "/v1/models/m:predict", data: bytes = b"{}", method: str = "POST", id: str = ""
    ) -> tuple[int, Any]:
        """One request on a connection of its own: the status, and the body as JSON."""
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            return await self.ask_on(session, host, path, data, method, id)

    async def ask_on(
        self,
        session: aiohttp.ClientSession,
        host: str,
        path: str = "/v1/models/m:predict",
        data: bytes = b"{}",
        method: str = "POST",
        id: str = "",
    ) -> tuple[int, Any]:
        headers = {"Host": host, **({"x-id": id} if id else {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with session.request(
            method, url, data=io.BytesIO(data) if method == "POST" else None, headers=headers
        ) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else text

    async def routed(self, host: str) -> Any:
        """Ask until somebody answers; who it was."""
        found: list[Any] = []

        async def answered() -> bool:
            found[:] = await self.ask(host)
            return found[0] == 200

        await self.eventually(answered)
        return found[1]

    async def eventually(self, true: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS) -> None:
        """Return once it is true."""
        until = asyncio.get_running_loop().time() + seconds
        while not await true():
            assert asyncio.get_running_loop().time() < until, self.said()
            await asyncio.sleep(0.02)

    async def figure(self, name: str) -> float:
        """One figure of the service's own metrics."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer,
        ):
            lines = (await answer.text()).splitlines()
        return float(next(line for line in lines if line.startswith(f"tidegate_inference_gateway_{name} ")).split()[1])

    async def until_figure(self, name: str, value: float) -> None:
        """Return once the figure has come to ``value``."""

        async def there() -> bool:
            return await self.figure(name) == value

        await self.eventually(there)

    async def until_sample(self, fits: Callable[[Manifest], bool]) -> Manifest:
        """The first sample handed in that ``fits``."""

        async def there() -> bool:
            return any(map(fits, self.samples))

        await self.eventually(there)
        return next(filter(fits, self.samples))

    async def take_samples(self, payload: bytes) -> bytes:
        request = gateway_pb2.WriteRequest.FromString(payload)
        blobs = BlobReader(request.blobs)
        for write in request.writes:
            for name in write.names or [write.name]:
                self.samples.append({"object": name, **blobs.get(write.body)["spec"]})
        return gateway_pb2.WriteReply(revision=1).SerializeToString()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """A gateway that has not been started yet."""
    server = ServerSettings(tmp_path / "nats", free_port(), "secret")
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command(server), stdout=silent, stderr=silent)
    await wait_until_open(server.host, server.port)
    bus = await JetStreamBus.connect(server.url, "test", token="secret")
    made = Rig(tmp_path, bus, server.url)
    await bus.serve(subjects.SAMPLES, made.take_samples)
    yield made
    await made.stop()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(made.proxy_pid, signal.SIGKILL)  # of a service that a test killed
    await asyncio.gather(*(one.stop() for one in made.servers))
    await bus.close()
    process.kill()
    await process.wait()
