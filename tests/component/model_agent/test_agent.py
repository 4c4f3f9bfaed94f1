"""The agent before a server: batches, events, and what passes through."""

import asyncio
import gzip
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from model_agent import events as telling
from model_agent.events import Events, Told
from model_agent.main import main
from model_agent.server import Agent


class Model:
    """A server that doubles, echoes and streams, and notes what came."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.go_on = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/stream", self._stream)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.came.append((request.method, request.raw_path, body, dict(request.headers)))
        if request.path.endswith(":predict"):
            return web.json_response({"predictions": [2 * one for one in json.loads(body)["instances"]]})
        if request.path == "/packed":
            return web.Response(body=gzip.compress(b"packed"), headers={"Content-Encoding": "gzip"})
        return web.Response(status=418 if request.path == "/teapot" else 200, body=body, headers={"X-Own": "1"})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b"data: 1\n\n")
        await self.go_on.wait()
        await answer.write(b"data: 2\n\n")
        return answer


class Listener:
    """Who is told of what goes by."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, str], bytes]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/", self._hear)
        return app

    async def _hear(self, request: web.Request) -> web.Response:
        await self.go_on.wait()
        self.told.append((dict(request.headers), await request.read()))
        return web.Response()


@asynccontextmanager
async def before(
    model: Model, batching: tuple[int, float] | None = None, listener: Listener | None = None, mode: str = "all"
) -> AsyncIterator[tuple[Agent, Callable[..., Any]]]:
    """An agent before ``model``, and a way to ask it."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TestServer(model.application()))
        events = None
        if listener is not None:
            hearing = await stack.enter_async_context(TestServer(listener.application()))
            events = Events(
                Told(
                    str(hearing.make_url("/")),
                    mode,
                    "pod-1",
                    "iris",
                    "team",
                    "iris-predictor",
                    "predictor",
                    ("X-User",),
                )
            )
        agent = Agent("127.0.0.1", int(server.port or 0), batching, events)
        front = await stack.enter_async_context(TestServer(agent.application()))
        session = await stack.enter_async_context(ClientSession())
        yield agent, lambda method, path, **more: session.request(method, front.make_url(path), **more)


async def test_what_is_no_prediction_passes_through_as_it_is() -> None:
    model = Model()
    async with before(model, batching=(10, 3600)) as (_, ask):
        async with ask("POST", "/v2/models/a%2Fb/infer?a=1", data=b"\x00\x01", headers={"X-Given": "y"}) as answer:
            assert (answer.status, await answer.read(), answer.headers["X-Own"]) == (200, b"\x00\x01", "1")
        async with ask("GET", "/teapot") as answer:
            assert answer.status == 418
        async with ask("GET", "/packed") as answer:
            assert await answer.read() == b"packed"
        packed = {"Content-Encoding": "gzip"}
        async with ask("POST", "/x", data=gzip.compress(b"plain"), headers=packed) as answer:
            assert await answer.read() == b"plain"
    method, path, _, headers = model.came[0]
    assert (method, path, headers["X-Given"]) == ("POST", "/v2/models/a%2Fb/infer?a=1", "y")


async def test_a_stream_goes_by_piece_by_piece() -> None:
    model = Model()
    async with before(model) as (_, ask), ask("GET", "/stream") as answer:
        assert await answer.content.readline() == b"data: 1\n"
        model.go_on.set()
        assert (await answer.read()).endswith(b"data: 2\n\n")


async def test_predictions_are_asked_for_in_batches() -> None:
    model = Model()

    async def one(ask: Callable[..., Any], number: int) -> Any:
        async with ask("POST", "/v1/models/m:predict", json={"instances": [number]}) as answer:
            return (await answer.json())["predictions"]

    async with before(model, batching=(8, 3600)) as (_, ask):
        assert await asyncio.gather(*(one(ask, number) for number in range(8))) == [[2 * n] for n in range(8)]
        assert len(model.came) == 1
        for wrong in ("{", "{}", '{"instances": []}', '{"instances": 3}', "[]"):
            async with ask("POST", "/v1/models/m:predict", data=wrong) as answer:
                assert answer.status == 400
    assert len(model.came) == 1


@pytest.mark.parametrize(
    ("mode", "kinds"), [("all", ["request", "response"]), ("request", ["request"]), ("response", ["response"])]
)
async def test_requests_and_answers_are_told_as_events(mode: str, kinds: list[str]) -> None:
    model, listener = Model(), Listener()
    async with before(model, listener=listener, mode=mode) as (agent, ask):
        headers = {"Ce-Id": "7", "X-User": "me", "X-Other": "no", "Content-Type": "application/json"}
        async with ask("POST", "/v2/models/m/infer", data=b"{}", headers=headers) as answer:
            await answer.read()
        await agent.drain(10)
    assert [told["ce-type"].rpartition(".")[2] for told, _ in listener.told] == kinds
    told, body = listener.told[0]
    assert body == b"{}" and told["ce-id"] == "7" and told["ce-type"].startswith("org.kubeflow.serving.inference.")
    own = {
        name: told[f"ce-{name}"] for name in ("source", "inferenceservicename", "namespace", "endpoint", "component")
    }
    assert own == {
        "source": "pod-1", "inferenceservicename": "iris", "namespace": "team", "endpoint": "iris-predictor",
        "component": "predictor",
    }  # fmt: skip
    assert json.loads(told["ce-metadata"]) == {"X-User": ["me"]}


async def test_an_answer_that_is_no_success_is_not_told() -> None:
    listener = Listener()
    async with before(Model(), listener=listener, mode="response") as (agent, ask):
        async with ask("GET", "/teapot") as answer:
            assert answer.status == 418
        await agent.drain(10)
    assert listener.told == []


async def test_who_does_not_listen_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "QUEUED", 2)
    listener = Listener()
    listener.go_on.clear()
    async with before(Model(), listener=listener, mode="request") as (agent, ask):
        for _ in range(5):
            async with ask("POST", "/x", data=b"{}") as answer:
                assert answer.status == 200
        assert agent._events is not None and agent._events.dropped >= 2
        listener.go_on.set()


async def test_the_probe_says_whether_the_server_listens() -> None:
    probe = {"K-Network-Probe": "queue"}
    async with before(Model()) as (_, ask), ask("GET", "/", headers=probe) as answer:
        assert (answer.status, await answer.text()) == (200, "queue")
    agent = Agent("127.0.0.1", 9, None, None)
    async with TestServer(agent.application()) as front, ClientSession() as session:
        async with session.get(front.make_url("/"), headers=probe) as answer:
            assert answer.status == 503
        async with session.get(front.make_url("/v2")) as answer:
            assert answer.status == 502


async def test_what_was_gathered_is_answered_when_the_program_is_told_to_end() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    async with TestServer(Model().application()) as server, ClientSession() as session:
        words = [
            "--port",
            str(port),
            "--component-port",
            str(server.port),
            "--enable-batcher",
            "--max-latency",
            "3600000",
        ]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "model_agent.main", *words),
            env={**os.environ, "POD_IP": "127.0.0.1"},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert (await asyncio.wait_for(process.stdout.readline(), 30)).startswith(b"listening at 127.0.0.1")
        asked = asyncio.create_task(
            session.post(f"http://127.0.0.1:{port}/v1/models/m:predict", json={"instances": [4]})
        )
        await asyncio.sleep(0.5)
        assert not asked.done()
        process.send_signal(signal.SIGTERM)
        async with await asyncio.wait_for(asked, 30) as answer:
            assert (answer.status, (await answer.json())["predictions"]) == (200, [8])
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_no_connection_to_the_server_is_kept_for_long() -> None:
    """A server that hangs up on one that is idle must not meet a request there."""
    came: list[asyncio.Transport] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        came.append(request.transport)
        return web.Response()

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server:
        agent = Agent("127.0.0.1", int(server.port or 0), None, None)
        async with TestServer(agent.application()) as front, ClientSession() as session:
            for _ in range(2):
                async with session.post(front.make_url("/"), data=b"x") as told:
                    assert told.status == 200
            assert came[0] is came[1]
            async with asyncio.timeout(4):
                while not came[0].is_closing():
                    await asyncio.sleep(0.1)


def test_a_store_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log-url", "s3://bucket/logs"]) == 1
    assert "http:// and https:// only" in capsys.readouterr().err
