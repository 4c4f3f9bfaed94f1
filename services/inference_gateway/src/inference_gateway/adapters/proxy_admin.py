"""The proxy's administration, over its socket: what it counts, and its end."""

import asyncio
from urllib.parse import quote

import aiohttp
import orjson

from inference_gateway.domain.envoy.layout import Layout
from inference_gateway.domain.load import STATISTICS
from kube import Manifest

_ANSWER_SECONDS = 5.0
_UNDER_WAY, _LOOK_SECONDS = "http.public.downstream_rq_active", 0.05
_SUMS = r"^http\.public\.downstream_rq_(2xx|3xx|4xx|5xx|active)$"


class ProxyAway(Exception):
    """The proxy does not answer."""


class ProxyAdmin:
    """Asks one proxy."""

    def __init__(self, layout: Layout) -> None:
        self._socket = layout.admin
        self._session: aiohttp.ClientSession | None = None

    async def statistics(self) -> Manifest:
        """What it counts of the pools. Raises ProxyAway."""
        return await self._stats(STATISTICS, "&histogram_buckets=cumulative")

    async def sums(self) -> dict[str, int]:
        """What it counts in all. Raises ProxyAway."""
        return {str(one["name"]): int(one["value"]) for one in (await self._stats(_SUMS)).get("stats") or ()}

    async def drain(self, longest_seconds: float) -> None:
        """Let it take no more connections, and return once what is under way is answered, at the latest after ``longest_seconds``.

        Raises ProxyAway.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + longest_seconds
        await self._ask("post", "/drain_listeners")
        while loop.time() < until and (await self.sums()).get(_UNDER_WAY, 0):
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _stats(self, names: str, more: str = "") -> Manifest:
        found: Manifest = orjson.loads(await self._ask("get", f"/stats?format=json&filter={quote(names)}{more}"))
        return found

    async def _ask(self, method: str, path: str) -> bytes:
        if self._session is None:
            connector = aiohttp.UnixConnector(self._socket)
            timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        try:
            async with self._session.request(method, f"http://proxy{path}") as answer:
                return await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ProxyAway(f"{type(error).__name__}: {error}") from error
