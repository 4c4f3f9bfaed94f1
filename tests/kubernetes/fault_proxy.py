"""A proxy in front of an API server that misbehaves as it is told: slow, overloaded, broken, cut off."""

import asyncio
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from aiohttp import web
from control_plane import ControlPlane

from apiserver.connections import Connections
from chassis.endings import end

DROPPED = ("host", "transfer-encoding", "content-length", "connection")
SILENCE_SECONDS = 600.0


@dataclass(slots=True)
class Fault:
    """What befalls the requests whose ``METHOD path`` matches ``pattern``, so many ``times`` (for ever where that is negative).

    They wait for ``seconds`` first. Then they are answered with ``code``, or cut off where ``is_reset``, or go their way.
    With ``is_lost`` they reach the server, and their answers do not come back.
    """

    pattern: str
    times: int = -1
    seconds: float = 0.0
    code: int = 0
    message: str = "the proxy says no"
    retry_after: int = 0
    is_reset: bool = False
    is_lost: bool = False
    met: int = 0

    def takes(self, request: str) -> bool:
        if not self.times or not re.search(self.pattern, request):
            return False
        self.times -= 1
        self.met += 1
        return True


@dataclass(slots=True)
class FaultProxy:
    """Runs in a thread of its own. ``faults`` are looked through in their order at each request; the first that fits counts."""

    plane: ControlPlane
    faults: list[Fault] = field(default_factory=list)
    address: str = ""
    kubeconfig: Path = Path()
    most_in_flight: int = 0
    _in_flight: int = 0
    _streams: "dict[int, tuple[web.Request, web.StreamResponse]]" = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop | None = None
    _connections: Connections | None = None

    def add(self, pattern: str, **parts: object) -> Fault:
        self.faults.append(Fault(pattern, **parts))  # type: ignore[arg-type]
        return self.faults[-1]

    def cut_watches(self) -> int:
        """Break off all watches in the middle of an object; how many there were."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    async def _cut(self) -> int:
        streams = list(self._streams.values())
        for request, response in streams:
            with suppress(ConnectionError):
                await response.write(b'{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"ha')
            if request.transport is not None:
                request.transport.abort()
        return len(streams)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        fault = next((one for one in self.faults if one.takes(f"{request.method} {request.path_qs}")), None)
        if fault is not None:
            await asyncio.sleep(fault.seconds)
            if fault.is_reset and request.transport is not None:
                request.transport.abort()
            if fault.code:
                headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
                status = {"kind": "Status", "code": fault.code, "message": fault.message, "reason": "Fault"}
                return web.json_response(status, status=fault.code, headers=headers)
            if fault.is_reset:
                return web.Response(status=500)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return await self._forward(request, fault)
        finally:
            self._in_flight -= 1

    async def _forward(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        assert self._connections is not None
        lines = "".join(
            f"{name}: {value}\r\n" for name, value in request.headers.items() if name.lower() not in DROPPED
        )
        try:
            if "watch=1" in request.query_string:
                return await self._pass_on(request, self._connections, lines)
            reply = await self._connections.ask(request.method, request.path_qs, lines, await request.read())
        except (OSError, EOFError):
            return self._broken_off(request)
        if fault is not None and fault.is_lost:
            return self._broken_off(request)
        told = {name.decode(): value.decode() for name, value in reply.headers.items()}
        kept = {name: value for name, value in told.items() if name not in DROPPED}
        return web.Response(status=reply.code, headers=kept, body=reply.body)

    async def _pass_on(self, request: web.Request, connections: Connections, lines: str) -> web.StreamResponse:
        async with connections.stream(request.path_qs, lines, SILENCE_SECONDS) as (code, pieces):
            response = web.StreamResponse(status=code, headers={"Content-Type": "application/json"})
            await response.prepare(request)
            self._streams[id(request)] = (request, response)
            try:
                with suppress(ConnectionError):
                    async for piece in pieces:
                        await response.write(piece)
                    await response.write_eof()
            finally:
                self._streams.pop(id(request), None)
        return response

    @staticmethod
    def _broken_off(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    async def _serve(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        context = ssl.create_default_context(cafile=str(self.plane.folder / "ca.crt"))
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        server = urlsplit(self.plane.address)
        self._connections = Connections(server.hostname or "", server.port or 443, server.netloc, context)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.address = str(site.name)
        ready()
        await stop.wait()
        await runner.cleanup()
        await end(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
        await self._connections.close()


@contextmanager
def fault_proxy(plane: ControlPlane, folder: Path) -> Iterator[FaultProxy]:
    """A proxy without faults; its ``kubeconfig`` leads to it."""
    proxy, ready = FaultProxy(plane), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(proxy._serve(ready.set, stop),), daemon=True)
    thread.start()
    assert ready.wait(20)
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["clusters"][0]["cluster"] = {"server": proxy.address}
    proxy.kubeconfig = folder / "proxied-kubeconfig"
    proxy.kubeconfig.write_text(yaml.safe_dump(content))
    proxy.kubeconfig.chmod(0o600)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
