"""The API on a port of its own, over TLS, with a certificate that changes without a restart."""

import asyncio
from collections.abc import Sequence

import grpc

from admission.webhooks.certificate_keeper import CertificateKeeper
from chassis.measures import Measures
from chassis.rpc_server import Add, RpcServer


class SecuredApi:
    """Serves what ``add`` adds at ``address`` (``HOST:PORT``) with the certificate that ``keeper`` has."""

    def __init__(
        self, address: str, keeper: CertificateKeeper, measures: Measures, names: Sequence[str], add: Sequence[Add]
    ) -> None:
        self._address, self._keeper, self._measures = address, keeper, measures
        self._names, self._add = names, add
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve for ever."""
        await self._keeper.ready.wait()
        credentials = grpc.dynamic_ssl_server_credentials(self._current(), self._current)
        server = RpcServer(self._address, self._measures, self._names, self._add, credentials)
        await server.start()
        await server.set_ready(True)
        self.ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            await server.stop()

    def _current(self) -> grpc.ServerCertificateConfiguration:
        """What a new connection is shown. Called by gRPC's own thread."""
        serving = self._keeper.serving
        return grpc.ssl_server_certificate_configuration([(serving.key, serving.chain)])
