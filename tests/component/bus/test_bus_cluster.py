"""Three servers: what is kept on all of them survives the loss of one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest

from bus.jetstream import JetStreamBus
from bus.ports import Parked
from bus.server import binary, free_ports, wait_until_open

pytestmark = pytest.mark.timeout(300)


class Servers:
    """Three servers that form one; each can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder, ports = folder, free_ports(6)
        self.clients, self.routes = ports[:3], ports[3:]
        self.processes: list[asyncio.subprocess.Process] = []

    @property
    def urls(self) -> str:
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.clients)

    async def start(self) -> None:
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes)
        for number, (client, route) in enumerate(zip(self.clients, self.routes, strict=True)):
            file = self.folder / f"{number}.conf"
            file.write_text(
                f'server_name: s{number}\nlisten: "127.0.0.1:{client}"\n'
                f'jetstream {{ store_dir: "{self.folder / str(number)}" }}\n'
                f'cluster {{ name: c, listen: "127.0.0.1:{route}", routes: [{routes}] }}\n'
            )
            silent = asyncio.subprocess.DEVNULL
            made = await asyncio.create_subprocess_exec(binary(), "-c", str(file), stdout=silent, stderr=silent)
            self.processes.append(made)
        for port in self.clients:
            await wait_until_open("127.0.0.1", port)

    async def kill(self, number: int) -> None:
        self.processes[number].kill()
        await self.processes[number].wait()


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    made = Servers(tmp_path)
    await made.start()
    yield made
    for process in made.processes:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def write_everything(bus: JetStreamBus, expected: int) -> None:
    """Something into every stream and bucket, into all at once: each has to find its new leader, which takes seconds."""

    async def hold() -> None:
        lease = await bus.lease("any", "one")
        await lease.wait()
        await lease.release()

    await asyncio.gather(
        bus.log("fact").append(b"x", expected=expected, message_id=str(expected)),
        bus.log("fact").put_snapshot(expected + 1, b"state"),
        bus.set_value("tidegate.assignment.n", b"x"),
        bus.park(Parked(0, "any", "", "error", b"")),
        hold(),
    )


async def replicas(servers: Servers) -> dict[str, int]:
    client = await nats.connect(servers.urls.split(","))
    found = {str(info.config.name): info.config.num_replicas or 0 for info in await client.jetstream().streams_info()}
    await client.close()
    return found


async def test_what_one_server_kept_is_kept_by_three_once_that_is_wanted(servers: Servers) -> None:
    alone = await JetStreamBus.connect(servers.urls, "test", replicas=1)
    await write_everything(alone, 0)
    await alone.close()
    assert set((await replicas(servers)).values()) == {1}

    bus = await JetStreamBus.connect(servers.urls, "test", replicas=3)
    await write_everything(bus, 1)
    found = await replicas(servers)
    assert found.keys() == {"FACTS", "TIDEGATE_VALUES", "TIDEGATE_DEAD", "KV_TIDEGATE_LEASES", "OBJ_TIDEGATE_SNAPSHOTS"}
    assert set(found.values()) == {3}
    await bus.close()


async def test_a_log_goes_on_when_one_of_three_servers_is_lost(servers: Servers) -> None:
    bus = await JetStreamBus.connect(servers.urls, "test", replicas=3)
    log = bus.log("fact")
    for number in range(5):
        await log.append(b"before", expected=number, message_id=str(number))
    reader = log.read(0)
    read = 0
    while read < 5:
        read += len(await anext(reader))

    await servers.kill(0)

    for number in range(5, 10):
        await asyncio.wait_for(log.append(b"after", expected=number, message_id=str(number)), 90)
    async with asyncio.timeout(90):
        while read < 10:
            read += len(await anext(reader))
    await write_everything(bus, 10)
    await reader.aclose()
    await bus.close()
