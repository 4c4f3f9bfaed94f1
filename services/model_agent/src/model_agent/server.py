"""The agent as an HTTP server: what comes in goes on to the model's server, by way of batches and events."""

import asyncio
import json
import uuid
from collections.abc import Mapping

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from model_agent.batches import Answer, Batches
from model_agent.events import REQUEST, RESPONSE, Events

_LARGEST_BYTES = 256 << 20
_DRAIN_SECONDS = 5.0
_KEPT_SECONDS = 1.0
"""How long a connection to the server is kept without a request: servers hang up after 2 s or more, and a request that is
on its way then is lost."""
_OF_ONE_LINE = frozenset(["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"])
_OF_BODY = frozenset(["content-length", "content-encoding"])
"""Of the form in which a body came: requests are read and unpacked here, answers go on as they come."""
_PREDICT = ":predict"


class Agent:
    """Stands before the server at ``host:port``. ``batching`` is the size of a batch and its latency, None for no batches."""

    def __init__(self, host: str, port: int, batching: tuple[int, float] | None, events: Events | None) -> None:
        self._host, self._port, self._events = host, port, events
        self._url = f"http://{host}:{port}"
        self._batches = None if batching is None else Batches(self._predict, *batching)
        self._session: ClientSession | None = None
        self._telling: asyncio.Task[None] | None = None

    def application(self) -> web.Application:
        """What an HTTP server runs."""
        app = web.Application(client_max_size=_LARGEST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        app.on_startup.append(self._open)
        app.on_shutdown.append(self._shut_down)
        app.on_cleanup.append(self._close)
        return app

    async def drain(self, seconds: float) -> None:
        """Answer what was gathered, and tell what is to be told."""
        if self._batches is not None:
            await self._batches.drain()
        if self._events is not None:
            await self._events.drain(seconds)

    async def _open(self, _: web.Application) -> None:
        timeout, connector = ClientTimeout(total=None, sock_connect=10), TCPConnector(keepalive_timeout=_KEPT_SECONDS)
        self._session = ClientSession(timeout=timeout, auto_decompress=False, connector=connector)
        if self._events is not None:
            self._telling = asyncio.create_task(self._events.run())

    async def _shut_down(self, _: web.Application) -> None:
        await self.drain(_DRAIN_SECONDS)

    async def _close(self, _: web.Application) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("K-Network-Probe") == "queue":
            return await self._probed()
        if self._batches is not None and request.method == "POST" and request.path.endswith(_PREDICT):
            return await self._batched(request, self._batches)
        return await self._passed_on(request)

    async def _probed(self) -> web.Response:
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(self._host, self._port), 1)
        except (OSError, TimeoutError):
            return web.Response(status=503, text="the server does not listen yet")
        writer.close()
        return web.Response(text="queue")

    async def _batched(self, request: web.Request, batches: Batches) -> web.Response:
        try:
            instances = json.loads(await request.read())["instances"]
        except (ValueError, KeyError, TypeError):
            return web.Response(status=400, text="the body is no JSON object with instances")
        if not isinstance(instances, list) or not instances:
            return web.Response(status=400, text="no instances in the request")
        status, body = await batches.ask(request.raw_path, instances)
        return web.Response(status=status, body=body, content_type="application/json")

    async def _predict(self, path: str, body: bytes) -> Answer:
        assert self._session is not None
        number, headers = str(uuid.uuid4()), {"Content-Type": "application/json"}
        self._tell(REQUEST, number, headers, body)
        async with self._session.post(self._to(path), data=body, headers=headers) as answer:
            said = await answer.read()
        if answer.status == 200:
            self._tell(RESPONSE, number, headers, said)
        return answer.status, said

    async def _passed_on(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None
        body = await request.read()
        number = request.headers.get("Ce-Id") or str(uuid.uuid4())
        self._tell(REQUEST, number, request.headers, body)
        dropped = _OF_ONE_LINE | _OF_BODY
        kept = {name: value for name, value in request.headers.items() if name.lower() not in dropped}
        try:
            async with self._session.request(
                request.method, self._to(request.raw_path), data=body or None, headers=kept, allow_redirects=False
            ) as answer:
                back = web.StreamResponse(status=answer.status, reason=answer.reason)
                for name, value in answer.headers.items():
                    if name.lower() not in _OF_ONE_LINE:
                        back.headers.add(name, value)
                await back.prepare(request)
                said = bytearray()
                async for piece in answer.content.iter_any():
                    await back.write(piece)
                    if self._events is not None:
                        said += piece
                await back.write_eof()
        except (ClientError, ConnectionError) as error:
            return web.Response(status=502, text=f"the server does not answer: {error}")
        if back.status == 200:
            self._tell(RESPONSE, number, request.headers, bytes(said))
        return back

    def _to(self, path: str) -> URL:
        """The address of ``path`` at the server, every byte of it as it came."""
        return URL(self._url + path, encoded=True)

    def _tell(self, kind: str, number: str, headers: Mapping[str, str], body: bytes) -> None:
        if self._events is not None:
            self._events.tell(kind, number, headers, body)
