"""The bus in both makes: in memory, and on a real NATS server of its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus import Bus, MemoryBus
from bus.jetstream import JetStreamBus
from bus.server import ServerSettings, command, free_port, wait_until_open


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bus]:
    if request.param == "memory":
        yield MemoryBus()
        return
    settings = ServerSettings(tmp_path, free_port(), "secret")
    process = await asyncio.create_subprocess_exec(
        *command(settings), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await wait_until_open(settings.host, settings.port)
    connected = await JetStreamBus.connect(settings.url, "test", token="secret")
    try:
        yield connected
    finally:
        await connected.close()
        process.kill()
        await process.wait()
