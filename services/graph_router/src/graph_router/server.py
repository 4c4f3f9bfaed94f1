"""The router as an HTTP server: requests come in, steps are asked, the graph's answer goes out."""

import asyncio
import json
import re
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

from graph_router.evaluation import Answer, Evaluation, Stopped
from graph_router.graph import Graph

READY = "/readyz"
_LARGEST_BYTES = 64 << 20
_KEPT_SECONDS = 1.0
"""How long a connection is kept without a request: servers hang up after 2 s or more, and what is on its way then is lost."""
_IN_CLUSTER = (".svc", ".svc.cluster.local")


class Router:
    """Serves one graph. ``gateway`` is the address that requests to Services of the cluster go to, "" for their own.

    An address with a port is asked itself: without Services' ports it can only be a pod's.
    """

    def __init__(self, graph: Graph, gateway: str = "", propagated: Sequence[re.Pattern[str]] = ()) -> None:
        self.is_draining = False
        self._graph, self._gateway, self._propagated = graph, gateway, propagated
        self._session: ClientSession | None = None

    def application(self) -> web.Application:
        """What an HTTP server runs."""
        app = web.Application(client_max_size=_LARGEST_BYTES)
        app.router.add_get(READY, self._ready)
        app.router.add_route("*", "/{path:.*}", self._serve)
        app.on_startup.append(self._open)
        app.on_cleanup.append(self._close)
        return app

    async def _open(self, _: web.Application) -> None:
        timeout, connector = (
            ClientTimeout(total=self._graph.timeout_seconds),
            TCPConnector(keepalive_timeout=_KEPT_SECONDS),
        )
        self._session = ClientSession(timeout=timeout, connector=connector)

    async def _close(self, _: web.Application) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=503, text="shutting down") if self.is_draining else web.Response()

    async def _serve(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = self._passed_on(request.headers)

        async def send(url: str, content: bytes) -> Answer:
            return await self._send(url, content, headers)

        try:
            answer = await Evaluation(self._graph, send, _together, _drawn).answer(body)
        except Stopped as error:
            told = {"error": "Failed to process request", "cause": str(error)}
            return web.json_response(told, status=error.status)
        kind = "application/json" if _is_json(answer.body) else "application/octet-stream"
        return web.Response(status=answer.status, body=answer.body, content_type=kind)

    async def _send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        assert self._session is not None
        target, sent = URL(url), dict(headers)
        if self._gateway and target.is_default_port() and str(target.host).endswith(_IN_CLUSTER):
            sent["Host"] = str(target.host)
            target = URL(f"http://{self._gateway}").join(target.relative())
        try:
            async with self._session.post(target, data=body, headers=sent) as response:
                return Answer(response.status, await response.read())
        except (ClientError, TimeoutError) as error:
            raise Stopped(500, f"{url}: {type(error).__name__}: {error}") from error

    def _passed_on(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The kind of the content, and those headers that somebody asked for."""
        found = {name: value for name, value in headers.items() if any(one.search(name) for one in self._propagated)}
        found.setdefault("Content-Type", "application/json")
        return found


async def _together(*runs: Coroutine[Any, Any, Answer]) -> list[Answer]:
    """Where one has no answer the others are given up."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_caught(run)) for run in runs]
    answers = [task.result() for task in tasks]
    for answer in answers:
        if isinstance(answer, Stopped):
            raise answer
    return [answer for answer in answers if isinstance(answer, Answer)]


async def _caught(run: Coroutine[Any, Any, Answer]) -> Answer | Stopped:
    try:
        return await run
    except Stopped as error:
        return error


def _drawn() -> int:
    return secrets.randbelow(100)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True
