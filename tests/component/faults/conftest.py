"""A real NATS server of the tests' own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[JetStreamBus]:
    server = ServerSettings(tmp_path / "nats", free_port(), "secret")
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command(server), stdout=silent, stderr=silent)
    await wait_until_open(server.host, server.port)
    made = await JetStreamBus.connect(server.url, "test", token="secret")
    yield made
    await made.close()
    process.kill()
    await process.wait()
