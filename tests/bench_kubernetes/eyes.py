"""Eyes on an API server: when each pod was bound. The same for every scheduler."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
from tests.bench_kubernetes.cluster import PODS, Cluster, Manifest

_SELECTOR = "fieldSelector=spec.nodeName!%3D"
"""Only bound pods are told of: each of them once, when it is bound."""

_TOLD = ("ADDED", "MODIFIED")


@dataclass(slots=True)
class Eyes:
    """``bound`` is when each pod was seen bound (seconds of perf_counter), in the order in which they were."""

    bound: dict[str, float] = field(default_factory=dict)
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, cluster: Cluster, version: str) -> None:
        """Watch from ``version`` on, for ever: a server that has no time for a watch ends it, and it goes on from there."""
        while True:
            path = f"{cluster.plane.address}{PODS}?watch=1&{_SELECTOR}&resourceVersion={version}"
            async with cluster.session.get(path) as response:
                rest = b""
                async for chunk in response.content.iter_any():
                    now = time.perf_counter()
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        version = self._take(orjson.loads(line), now)
                    self._grown.set()

    def _take(self, event: Manifest, now: float) -> str:
        """Note a bound pod; the version of the event. Raises RuntimeError when the server has forgotten the version."""
        item = event["object"]
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch of bound pods broke: {item.get('message')}")
        if event["type"] in _TOLD:
            self.bound.setdefault(item["metadata"]["name"], now)
        return str(item["metadata"]["resourceVersion"])

    async def until(self, names: Collection[str], seconds: float) -> None:
        """Return when all of ``names`` are bound. Raises RuntimeError when they are not within ``seconds``."""
        waiting, end = list(names), time.perf_counter() + seconds
        while True:
            self._grown.clear()
            while waiting and waiting[-1] in self.bound:
                waiting.pop()
            if not waiting:
                return
            try:
                await asyncio.wait_for(self._grown.wait(), max(0.0, end - time.perf_counter()))
            except TimeoutError:
                raise RuntimeError(f"{len(self.bound)} of {len(names)} pods are bound after {seconds:g} s") from None


@asynccontextmanager
async def watching(cluster: Cluster) -> AsyncIterator[Eyes]:
    """Eyes that are open from now on."""
    version = (await cluster.send("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    eyes = Eyes()
    following = asyncio.create_task(eyes.follow(cluster, version))
    try:
        yield eyes
    finally:
        if following.done():
            following.result()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
