"""Asking a process over gRPC whether it is ready."""

import asyncio

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

PAUSE_SECONDS = 0.05


async def is_ready(port: int, timeout_seconds: float = 1.0) -> bool:
    """Whether the process behind ``port`` says that it serves."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=timeout_seconds
            )
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def wait_ready(port: int) -> None:
    """Return once the process behind ``port`` is ready."""
    while not await is_ready(port):
        await asyncio.sleep(PAUSE_SECONDS)
