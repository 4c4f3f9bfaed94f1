"""A real NATS server that can be killed and started again on its data, and processes of Tidegate beside it."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open
from chassis import SystemClock
from cluster_gateway.gateway import Gateway
from cluster_gateway.secrets import FileSecrets
from cluster_gateway.settings import GatewaySettings


class ProcessEnded(Exception):
    """The process of a gateway would have ended with this text."""


async def _run(gateway: Gateway) -> None:
    """A loop ends with the first SystemExit in it: here only the gateway does."""
    try:
        await gateway.run()
    except SystemExit as end:
        raise ProcessEnded(str(end)) from None


class Town:
    """The server, and gateways that are started and killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.settings = GatewaySettings(services=("toy", "job_controller"))
        self._server = ServerSettings(folder / "nats", free_port(), "secret")
        self._process: asyncio.subprocess.Process | None = None
        self._buses: list[JetStreamBus] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._uids = itertools.count(1)

    async def start_server(self) -> None:
        silent = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*command(self._server), stdout=silent, stderr=silent)
        await wait_until_open(self._server.host, self._server.port)

    async def kill_server(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    async def connect(self) -> JetStreamBus:
        self._buses.append(await JetStreamBus.connect(self._server.url, "test", token="secret"))
        return self._buses[-1]

    async def start_gateway(self, bus: JetStreamBus) -> Gateway:
        secrets = FileSecrets(self._folder / "secrets")
        gateway = Gateway(bus, SystemClock(), self.settings, secrets, lambda: f"uid-{next(self._uids)}")
        self.tasks.append(asyncio.create_task(_run(gateway)))
        async with asyncio.timeout(20):
            await gateway.ready.wait()
        return gateway

    async def kill(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError, ProcessEnded):
            await task

    async def close(self) -> None:
        for task in self.tasks:
            await self.kill(task)
        for bus in self._buses:
            await bus.close()
        await self.kill_server()


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    made = Town(tmp_path)
    await made.start_server()
    yield made
    await made.close()
