"""The router as a process: requests over HTTP, steps on servers of their own, and its end."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

SOURCES = Path(__file__).resolve().parents[3]


class Steps:
    """A server whose paths answer as steps do; what it was asked, with the host that was meant."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any, str]] = []
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        traced = request.headers.get("X-Trace", "")
        self.asked.append((request.host, request.path, await request.json(), traced))
        if request.path == "/slow":
            await asyncio.sleep(0.3)
        return web.json_response({"from": request.path}, status=503 if request.path == "/sick" else 200)


@pytest.fixture
async def steps() -> AsyncIterator[Steps]:
    found, app = Steps(), web.Application()
    app.router.add_post("/{path:.*}", found.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


class Routed:
    """The router's process, once it listens."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.url = process, f"http://127.0.0.1:{port}"

    @classmethod
    async def start(cls, nodes: dict[str, Any], **variables: str) -> "Routed":
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = int(held.getsockname()[1])
        words = ["-m", "graph_router.main", "--graph-json", json.dumps({"nodes": nodes}), "--drain-seconds", "0.5"]
        environment = {**os.environ, "POD_IP": "127.0.0.1", "PORT": str(port), **variables}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, env=environment, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        assert line.startswith(b"listening"), line
        return cls(process, port)

    async def end(self) -> int:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(self.process.communicate(), 30)
        return int(self.process.returncode or 0)


async def test_requests_go_through_the_graph_to_its_end(steps: Steps) -> None:
    base = f"http://127.0.0.1:{steps.port}"
    many = [{"name": name, "serviceUrl": f"{base}/{name}"} for name in ("a", "b")]
    nodes = {
        "root": {
            "routerType": "Sequence",
            "steps": [{"nodeName": "many"}, {"serviceUrl": f"{base}/end", "data": "$response"}],
        },
        "many": {"routerType": "Ensemble", "steps": many},
    }
    routed = await Routed.start(nodes, PROPAGATE_HEADERS="(?i)^x-trace$")
    try:
        async with (
            ClientSession() as session,
            session.post(f"{routed.url}/v1/x", json={"in": 1}, headers={"X-Trace": "t"}) as found,
        ):
            assert (found.status, await found.json()) == (200, {"from": "/end"})
        both = {"a": {"from": "/a"}, "b": {"from": "/b"}}
        assert steps.asked[-1] == (f"127.0.0.1:{steps.port}", "/end", both, "t")
        assert sorted(one[1] for one in steps.asked) == ["/a", "/b", "/end"]
    finally:
        assert await routed.end() == 0


async def test_names_of_services_alone_are_asked_at_the_gateway_and_who_is_gone_is_an_error(steps: Steps) -> None:
    root: Any = {
        "routerType": "Switch",
        "steps": [{"serviceUrl": "http://m.team.svc.cluster.local/v1", "condition": "in"}],
    }
    root["steps"].append({"serviceUrl": f"http://127.0.0.1:{steps.port}/itself", "condition": "other"})
    routed = await Routed.start({"root": root}, INFERENCE_GATEWAY=f"localhost:{steps.port}")
    try:
        async with ClientSession() as session:
            async with session.post(routed.url, json={"in": 1}) as found:
                assert found.status == 200
            assert steps.asked[0][:2] == ("m.team.svc.cluster.local", "/v1")
            async with session.post(routed.url, json={"other": 1}) as found:
                assert found.status == 200
            assert steps.asked[1][:2] == (f"127.0.0.1:{steps.port}", "/itself")
            async with session.post(routed.url, json={"out": 1}) as found:
                assert (found.status, (await found.json())["error"]) == (404, "Failed to process request")
    finally:
        await routed.end()
    gone = await Routed.start({"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://127.0.0.1:1/"}]}})
    try:
        async with ClientSession() as session, session.post(gone.url, json={}) as found:
            assert found.status == 500 and "127.0.0.1:1" in (await found.json())["cause"]
    finally:
        await gone.end()


async def test_it_serves_on_while_it_ends(steps: Steps) -> None:
    slow = {"serviceUrl": f"http://127.0.0.1:{steps.port}/slow"}
    routed = await Routed.start({"root": {"routerType": "Sequence", "steps": [slow]}})
    async with ClientSession() as session:
        async with session.get(f"{routed.url}/readyz") as found:
            assert found.status == 200
        first = asyncio.create_task(session.post(routed.url, json={}))
        await asyncio.sleep(0.1)
        routed.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        async with session.get(f"{routed.url}/readyz") as found:
            assert found.status == 503
        async with await first as answer:
            assert answer.status == 200
    assert await routed.end() == 0
