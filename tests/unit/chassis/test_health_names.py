"""What health says of a process: whether it lives, could take over, and leads or answers."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.measures import Measures
from chassis.rpc_server import LIVE, STANDBY, RpcServer

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


async def health(port: int) -> dict[str, int]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return {
            name: (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status for name in ("", LIVE, STANDBY)
        }


@pytest.mark.parametrize(
    ("ready", "standby"), [(False, False), (False, True), (True, True)], ids=["starting", "standing by", "leading"]
)
async def test_a_process_is_live_from_its_start_and_tells_standing_by_from_leading(ready: bool, standby: bool) -> None:
    server = RpcServer("127.0.0.1:0", Measures("any"))
    await server.start()
    await server.set_ready(ready)
    await server.set_standby(standby)
    found = await health(server.port)
    await server.stop(0)
    assert found == {
        "": SERVING if ready else NOT_SERVING,
        LIVE: SERVING,
        STANDBY: SERVING if standby else NOT_SERVING,
    }
