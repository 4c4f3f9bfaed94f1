"""HTTP/1.1, HTTP/2 and gRPC come through as they are, and answers come piece by piece."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc
from aiohttp import web

_INFER, _STREAM = "/inference.GRPCInferenceService/ModelInfer", "/inference.GRPCInferenceService/ModelStreamInfer"


async def test_events_come_one_by_one(rig: Any) -> None:
    """The proxy keeps nothing back of an answer that goes on: each event is there before the next one is made."""
    seen = asyncio.Event()

    async def tokens(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for number in range(3):
            await answer.write(f"data: {number}\n\n".encode())
            await asyncio.wait_for(seen.wait(), 10)
            seen.clear()
        return answer

    await rig.service("iris")
    await rig.replica("iris-predictor", answer=tokens)
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    url = f"http://127.0.0.1:{rig.port}/v2/models/iris/generate_stream"
    async with aiohttp.ClientSession() as session, session.post(url, data=b"{}") as answer:
        for number in range(3):
            assert await answer.content.readuntil(b"\n\n") == f"data: {number}\n\n".encode()
            seen.set()


class GrpcModel:
    """A replica that speaks gRPC; messages are plain bytes."""

    def __init__(self) -> None:
        self.server = grpc.aio.server()
        self.active = self.most = 0
        handlers = {
            "ModelInfer": grpc.unary_unary_rpc_method_handler(self._infer),
            "ModelStreamInfer": grpc.stream_stream_rpc_method_handler(self._stream),
        }
        generic = grpc.method_handlers_generic_handler("inference.GRPCInferenceService", handlers)
        self.server.add_generic_rpc_handlers((generic,))

    async def _infer(self, request: bytes, context: Any) -> bytes:
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(0.02)
        self.active -= 1
        return b"answer to " + request

    async def _stream(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield b"answer to " + request


async def test_grpc_is_carried_held_and_limited(rig: Any) -> None:
    """Calls that wait for a replica are answered by it, streams go both ways, and a replica takes as many calls as it may."""
    await rig.service("iris", {"iris-predictor-00001": 100}, containerConcurrency=3)
    await rig.start()
    options = [("grpc.default_authority", "iris.team.example.com")]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{rig.port}", options=options) as channel:
        infer = channel.unary_unary(_INFER)
        waiting = [asyncio.ensure_future(infer(b"%d" % number, timeout=60)) for number in range(5)]
        await rig.until_figure("held_requests", 5)
        model = GrpcModel()
        replica = await rig.replica("iris-predictor-00001", serve=False, containers=_PORTS)
        model.server.add_insecure_port(f"{replica.address}:9000")
        await model.server.start()
        try:
            assert await asyncio.gather(*waiting) == [b"answer to %d" % number for number in range(5)]
            call = channel.stream_stream(_STREAM)(timeout=60)
            for word in (b"one", b"two"):
                await call.write(word)
                assert await call.read() == b"answer to " + word
            await call.done_writing()
            answers = await asyncio.gather(*(infer(b"x", timeout=60) for _ in range(30)))
            assert answers == [b"answer to x"] * 30 and model.most == 3
        finally:
            await model.server.stop(None)


_PORTS = [
    {
        "name": "kserve-container",
        "args": ["tritonserver", "--grpc-port=9000", "--http-port=8080"],
        "ports": [{"containerPort": 8080}],
    }
]


async def test_a_grpc_client_is_told_in_its_own_words(rig: Any) -> None:
    """What is not answered has a status of gRPC and the reason."""
    rig.settings["hold-seconds"] = 1
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    options = [("grpc.default_authority", "iris.team.example.com")]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{rig.port}", options=options) as channel:
        try:
            await channel.unary_unary(_INFER)(b"x", timeout=60)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            assert "no replica of iris-predictor-00001 became ready within 1 s" in str(error.details())
        else:
            raise AssertionError("there was nobody to answer")
