"""The probe says by its exit code whether the service beside it is ready."""

import asyncio
import os
import sys

import pytest

from chassis import probe
from chassis.measures import Measures
from chassis.rpc_server import RpcServer


async def exit_code(port: int) -> int:
    """What the probe ends with."""
    environment = {**os.environ, "TIDEGATE_HEALTH_PORT": str(port)}
    process = await asyncio.create_subprocess_exec(sys.executable, "-IS", probe.__file__, env=environment)
    return await process.wait()


@pytest.mark.parametrize("ready", [True, False])
async def test_a_service_is_healthy_while_it_is_ready(ready: bool) -> None:
    server = RpcServer("127.0.0.1:0", Measures("probed"))
    await server.start()
    try:
        await server.set_ready(ready)
        assert await exit_code(server.port) == (0 if ready else 1)
    finally:
        await server.stop()


async def test_a_service_that_is_away_is_not_healthy() -> None:
    server = RpcServer("127.0.0.1:0", Measures("probed"))
    await server.start()
    await server.stop(0)
    assert await exit_code(server.port) == 1
