"""The gRPC server that every service has: standard health, reflection, and what the service itself offers."""

from collections.abc import Callable, Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection

from chassis.measures import Measures
from chassis.rpc_measures import RpcMeasures

Add = Callable[[grpc.aio.Server], None]


class RpcServer:
    """Listens on the loopback interface. Not serving until ``set_ready``."""

    def __init__(
        self,
        address: str,
        measures: Measures,
        services: Sequence[str] = (),
        add: Sequence[Add] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self._server = grpc.aio.server(
            interceptors=[RpcMeasures(measures)],
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.max_send_message_length", 64 << 20),
            ],
        )
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for add_service in add:
            add_service(self._server)
        names = (*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        self._services = ("", *services)
        if credentials is None:
            self.port = self._server.add_insecure_port(address)
        else:
            self.port = self._server.add_secure_port(address, credentials)

    async def start(self) -> None:
        await self.set_ready(False)
        await self._server.start()

    async def set_ready(self, ready: bool) -> None:
        """What the health service answers from now on, for the process and each of its services."""
        status = health_pb2.HealthCheckResponse
        for name in self._services:
            await self._health.set(name, status.SERVING if ready else status.NOT_SERVING)

    async def stop(self, grace_seconds: float = 1.0) -> None:
        """Refuse new calls, let running ones end, then stop."""
        await self._server.stop(grace_seconds)
