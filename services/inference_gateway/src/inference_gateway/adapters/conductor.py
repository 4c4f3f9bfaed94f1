"""Tells the proxy what the facts say, in an order in which no request is lost, and knows what it has taken in."""

import asyncio
import logging
from collections.abc import Coroutine

from inference_gateway.adapters.endpoint_stream import EndpointStream
from inference_gateway.adapters.settings_server import SettingsServer
from inference_gateway.domain.configuration import Known, configuration
from inference_gateway.domain.envoy.layout import Layout
from inference_gateway.domain.lingering import Lingering
from inference_gateway.domain.serving.directory import Directory
from inference_gateway.domain.serving.replica import Pool

log = logging.getLogger(__name__)
GATHER_SECONDS = 0.02
"""How long changes gather: what the kubelets say of ten pods comes in as many facts."""
PATIENCE_SECONDS = 5.0
"""How long the proxy is waited for."""


class Conductor:
    """``ready`` is set once the proxy has taken in the present state for the first time."""

    def __init__(
        self, directory: Directory, layout: Layout, settings: SettingsServer, endpoints: EndpointStream
    ) -> None:
        self._directory, self._layout = directory, layout
        self._settings, self._endpoints = settings, endpoints
        self._known, self._lingering = Known(), Lingering(layout)
        self._changed = asyncio.Event()
        self._told = asyncio.Event()
        self.routable: frozenset[Pool] = frozenset()
        """The pools that requests go to by what the proxy has taken in."""
        self.ready = asyncio.Event()

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
        told = configuration(self._directory, self._layout, self._known)
        clusters, places = self._lingering.add(told, asyncio.get_running_loop().time())
        self._endpoints.put(places)
        self._settings.clusters.put(clusters)
        await self._taken_in(self._settings.clusters.is_taken_in(), self._endpoints.is_taken_in())
        self._settings.routes.put([told.routes])
        await self._taken_in(self._settings.routes.is_taken_in())
        self.routable = told.routable
        before, self._told = self._told, asyncio.Event()
        before.set()

    async def _taken_in(self, *parts: Coroutine[object, object, None]) -> None:
        """Wait until the proxy has all of it. One that is not there asks for it when it comes back."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*parts)
        except TimeoutError:
            log.error("proxy_behind", extra={"patience_seconds": PATIENCE_SECONDS})
