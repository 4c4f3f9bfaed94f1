"""The gRPC server that every service has: standard health, reflection, and what the service itself offers."""

from collections.abc import Callable, Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection

from chassis.measures import Measures
from chassis.rpc_measures import RpcMeasures

Add = Callable[[grpc.aio.Server], None]

LIVE, STANDBY = "live", "standby"
"""What health may be asked about besides the process as a whole (""), which serves while it leads or answers: whether its
event loop turns, and whether it could take over at any moment."""


class RpcServer:
    """Listens on ``address``. Not serving until ``set_ready``."""

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
        await self.set_standby(False)
        await self._health.set(LIVE, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()

    async def set_ready(self, ready: bool) -> None:
        """What the health service answers from now on, for the process and each of its services."""
        for name in self._services:
            await self._health.set(name, _status(ready))

    async def set_standby(self, able: bool) -> None:
        """Whether the process could take over."""
        await self._health.set(STANDBY, _status(able))

    async def stop(self, grace_seconds: float = 1.0) -> None:
        """Refuse new calls, let running ones end, then stop."""
        await self._server.stop(grace_seconds)


def _status(good: bool) -> "health_pb2.HealthCheckResponse.ServingStatus":
    status = health_pb2.HealthCheckResponse
    return status.SERVING if good else status.NOT_SERVING
