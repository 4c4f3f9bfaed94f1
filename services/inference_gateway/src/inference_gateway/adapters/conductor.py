"""Tells the proxy what the facts say, in an order in which no request is lost, and knows what it has taken in."""

import asyncio
import logging
from collections.abc import Mapping

from inference_gateway.adapters.endpoint_stream import EndpointStream
from inference_gateway.adapters.proxy_admin import ProxyAdmin, ProxyAway
from inference_gateway.adapters.proxy_files import ProxyFiles
from inference_gateway.domain.configuration import configuration
from inference_gateway.domain.envoy.layout import Layout
from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool

log = logging.getLogger(__name__)
GATHER_SECONDS = 0.02
"""How long changes gather: what the kubelets say of ten pods comes in as many facts."""
LOOK_SECONDS, PATIENCE_SECONDS = 0.005, 2.0
"""How often it is looked whether the proxy has read a file, and how long that is waited for."""


class Conductor:
    """Writes the proxy's files; ``ready`` is set once it has read those of the present state for the first time."""

    def __init__(
        self,
        directory: Directory,
        layout: Layout,
        endpoints: EndpointStream,
        admin: ProxyAdmin,
        proxy_up: asyncio.Event,
    ) -> None:
        self._directory, self._layout, self._endpoints = directory, layout, endpoints
        self._admin, self._up = admin, proxy_up
        self._files = ProxyFiles(layout)
        self._changed = asyncio.Event()
        self._told = asyncio.Event()
        self.routable: frozenset[Pool] = frozenset()
        """The pools that requests go to by what the proxy has taken in."""
        self.ready = asyncio.Event()
        self.written = asyncio.Event()
        """Whether the files that a proxy begins with are there."""

    def change(self) -> None:
        """The directory has changed."""
        self._changed.set()

    async def news(self) -> None:
        """Return once the proxy has taken in something new."""
        await self._told.wait()

    async def run(self) -> None:
        """Tell the proxy whatever changes, for ever."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._tell()
            self.ready.set()
            await asyncio.sleep(GATHER_SECONDS)

    async def _tell(self) -> None:
        """First where the replicas are, then who is sent there; so no route leads to what the proxy does not know yet."""
        told = configuration(self._directory, self._layout)
        self._endpoints.put(self._files.write_clusters(told, asyncio.get_running_loop().time()))
        if self.ready.is_set():
            await self._taken_in({name: one for name, one in self._files.versions.items() if "rds" not in name})
        self._files.write_routes(told)
        self.written.set()
        await self._up.wait()
        await self._taken_in(self._files.versions)
        self.routable = told.routable
        before, self._told = self._told, asyncio.Event()
        before.set()

    async def _taken_in(self, versions: Mapping[str, str]) -> None:
        """Wait until the proxy has read the files. One that is not there reads them when it comes back."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_SECONDS
        while loop.time() < until:
            try:
                if self._endpoints.is_taken_in and await self._admin.has_taken_in(versions):
                    return
            except ProxyAway:
                pass
            await asyncio.sleep(LOOK_SECONDS)
        log.error("proxy_behind", extra={"versions": dict(versions)})
