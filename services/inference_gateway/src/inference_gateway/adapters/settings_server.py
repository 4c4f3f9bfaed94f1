"""What the proxy is told of clusters and routes: Envoy's discovery protocol as REST, where each question waits for something new.

The question says which version the proxy has taken in, so that nobody has to ask it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from hashlib import sha256

import orjson
from aiohttp import web

from inference_gateway.adapters.unix_site import serve
from kube import Manifest

WAIT_SECONDS = 60.0
"""How long a question waits at most."""


class _Part:
    """Clusters, or routes. ``taken`` is the version that the proxy has taken in, "" for none."""

    def __init__(self) -> None:
        self.content, self.version, self.taken, self._sent = b"", "", "", ""
        self._changed = asyncio.Event()

    def put(self, resources: Iterable[Manifest]) -> None:
        content = orjson.dumps(list(resources))
        version = sha256(content).hexdigest()[:16]
        if version != self.version:
            self.content, self.version = content, version
            self.wake()

    def wake(self) -> None:
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    async def next(self, taken: str) -> bytes | None:
        """What is to be told to a proxy that has taken in the version ``taken``; None if that is the newest for a while.

        What it has not taken in though it was sent to it is wrong, and not sent again.
        """
        self.taken = taken
        self.wake()
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_SECONDS
        while self.version == taken or not self.version or (taken and self._sent == self.version):
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), until - loop.time())
            except TimeoutError:
                return None
        self._sent = self.version
        return b'{"version_info":"%s","resources":%s}' % (self.version.encode(), self.content)

    async def is_taken_in(self) -> None:
        """Return once the proxy has the newest version."""
        while self.taken != self.version:
            await self._changed.wait()


class SettingsServer:
    """Answers one proxy."""

    def __init__(self) -> None:
        self.clusters, self.routes = _Part(), _Part()
        self._parts: Mapping[str, _Part] = {"clusters": self.clusters, "routes": self.routes}

    async def serve(self, socket: str) -> None:
        """Listen on ``socket``, for ever."""
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post("/v3/discovery:{part}", self._answer)
        await serve(application, socket)

    async def _answer(self, request: web.Request) -> web.Response:
        part = self._parts[request.match_info["part"]]
        asked = orjson.loads(await request.read())
        found = await part.next(str(asked.get("version_info") or ""))
        return web.Response(status=304) if found is None else web.Response(body=found, content_type="application/json")
