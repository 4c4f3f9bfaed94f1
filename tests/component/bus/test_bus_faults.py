"""The bus on a real server that is killed, stays away, comes back, or has forgotten a reader."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus import Entry, RequestFailed, StaleWriter, jetstream_reader
from bus.jetstream import JetStreamBus
from bus.ports import LogLost
from bus.server import ServerSettings, command, free_port, wait_until_open


class Server:
    """A NATS server that can be killed and started again on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self.settings = ServerSettings(folder, free_port(), "secret")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        silent = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*command(self.settings), stdout=silent, stderr=silent)
        await wait_until_open(self.settings.host, self.settings.port)

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    async def connect(self) -> JetStreamBus:
        return await JetStreamBus.connect(self.settings.url, "test", token="secret")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path)
    await made.start()
    yield made
    await made.kill()


@pytest.fixture
async def bus(server: Server) -> AsyncIterator[JetStreamBus]:
    connected = await server.connect()
    yield connected
    await connected.close()


async def take(reader: AsyncIterator[list[Entry]], count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += [entry.payload for entry in await anext(reader)]
    return found


async def test_an_append_waits_for_a_server_that_is_away_and_is_stored_once(server: Server, bus: JetStreamBus) -> None:
    log = bus.log("fact")
    reader = log.read(0)
    assert await log.append(b"before", expected=0, message_id="a") == 1
    await server.kill()
    appending = asyncio.ensure_future(log.append(b"meanwhile", expected=1, message_id="b"))
    await asyncio.sleep(0.5)
    assert not appending.done()
    await server.start()
    assert await asyncio.wait_for(appending, 60) == 2
    assert await log.append(b"after", expected=2, message_id="c") == 3
    assert await take(reader, 3) == [b"before", b"meanwhile", b"after"]
    await reader.aclose()


async def test_a_server_that_lost_everything_ends_its_readers_and_refuses_its_writer(
    server: Server, bus: JetStreamBus
) -> None:
    """Who went on would pass over whatever comes next, since its sequences were seen already."""
    log = bus.log("fact")
    for number in range(3):
        await log.append(b"before", expected=number, message_id=str(number))
    reader = log.read(0)
    await take(reader, 3)
    await server.kill()
    shutil.rmtree(server.settings.folder / "jetstream")
    await server.start()
    with pytest.raises(LogLost, match="read to 3, and ends at 0"):
        await asyncio.wait_for(anext(reader), 60)
    with pytest.raises(StaleWriter):
        await asyncio.wait_for(log.append(b"after", expected=3, message_id="3"), 60)
    assert await log.append(b"anew", expected=0, message_id="anew") == 1
    await reader.aclose()


async def test_a_message_of_several_parts_survives_the_server_whole(server: Server, bus: JetStreamBus) -> None:
    """It is stored whole or not at all, however the server is killed while its parts come in."""
    log, last = bus.log("fact"), 0
    reader = log.read(0)
    for number in range(4):
        payload = bytes([number]) * 3_000_000
        appending = asyncio.ensure_future(log.append(payload, expected=last, message_id=str(number)))
        await asyncio.sleep(0.003 * number)
        await server.kill()
        await server.start()
        last = await asyncio.wait_for(appending, 60)
        assert await take(reader, 1) == [payload]
    await reader.aclose()


async def test_a_request_fails_at_once_when_the_server_it_was_sent_over_is_gone(
    server: Server, bus: JetStreamBus
) -> None:
    """And the other side answers again over the connection that comes back, without serving anew."""

    async def answer(payload: bytes) -> bytes:
        if payload == b"slow":
            await asyncio.sleep(60)
        return payload

    await bus.serve("tidegate.request.a", answer)
    asked = asyncio.ensure_future(bus.request("tidegate.request.a", b"slow", timeout=600))
    await asyncio.sleep(0.2)
    await server.kill()
    await server.start()
    with pytest.raises(RequestFailed, match="connection to the bus was lost"):
        await asyncio.wait_for(asked, 60)
    assert await bus.request("tidegate.request.a", b"again") == b"again"


async def test_values_and_readers_go_on_after_the_server_was_away(server: Server, bus: JetStreamBus) -> None:
    values = bus.values("tidegate.assignment.n1")
    await bus.set_value("tidegate.assignment.n1", b"1")
    assert await anext(values) == b"1"
    await server.kill()
    setting = asyncio.ensure_future(bus.set_value("tidegate.assignment.n1", b"2"))
    await server.start()
    await asyncio.wait_for(setting, 60)
    assert await asyncio.wait_for(anext(values), 60) == b"2"
    await values.aclose()


async def test_a_lease_passes_on_when_its_holder_dies_without_a_word(server: Server, bus: JetStreamBus) -> None:
    first = await bus.lease("gang_scheduler", "a", 1.0)
    await first.wait()
    assert first._renewing is not None
    first._renewing.cancel()
    second = await bus.lease("gang_scheduler", "b", 1.0)
    async with asyncio.timeout(60):
        await second.wait()
    await second.release()


async def test_a_holder_that_was_away_for_too_long_has_lost_its_lease(server: Server, bus: JetStreamBus) -> None:
    first, second = await bus.lease("gang_scheduler", "a", 1.0), await bus.lease("gang_scheduler", "b", 1.0)
    await first.wait()
    renewing, first._renewing = first._renewing, None
    assert renewing is not None
    renewing.cancel()
    async with asyncio.timeout(60):
        await second.wait()
        first._renewing = asyncio.create_task(first._renew())
        await first.lost()
    await second.release()


async def test_a_successor_of_the_same_name_keeps_the_lease_that_was_about_to_expire(
    server: Server, bus: JetStreamBus
) -> None:
    first = await bus.lease("gang_scheduler", "only", 2.0)
    await first.wait()
    assert first._renewing is not None
    first._renewing.cancel()
    await asyncio.sleep(1.8)
    successor = await bus.lease("gang_scheduler", "only", 2.0)
    async with asyncio.timeout(60):
        await successor.wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(successor.lost(), 4.5)
    await successor.release()


async def test_a_reader_with_nothing_to_read_stays_subscribed(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_reader, "HEARTBEAT_SECONDS", 0.3)
    await bus.log("fact").append(b"first", expected=0, message_id="first")
    reader = bus.log("fact").read(1)
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0.2)
    (stream_reader,) = bus._readers
    consumer = stream_reader._consumer
    await asyncio.sleep(2.0)
    assert stream_reader._consumer == consumer
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await reader.aclose()


async def test_a_slow_reader_slows_the_delivery_and_not_the_memory(bus: JetStreamBus) -> None:
    """What is not taken waits in the log; in memory only as much as the server sends without being asked again."""
    log, entry = bus.log("fact"), b"x" * 500_000
    for number in range(200):
        await log.append(entry, expected=number, message_id=str(number))
    reader = log.read(0)
    taken = len(await anext(reader))
    await asyncio.sleep(1.0)
    (stream_reader,) = bus._readers
    waiting = len(stream_reader._inbox) * len(entry)
    assert waiting < 20_000_000, f"{waiting:,} bytes of 100,000,000 wait in memory"
    assert len(await take(reader, 200 - taken)) == 200 - taken
    await reader.aclose()


async def test_a_reader_whose_consumer_the_server_forgot_reads_on(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_reader, "HEARTBEAT_SECONDS", 0.3)
    log = bus.log("fact")
    reader = log.read(0)
    await log.append(b"1", expected=0, message_id="a")
    assert await take(reader, 1) == [b"1"]
    (stream_reader,) = bus._readers
    await bus._js.delete_consumer("FACTS", stream_reader._consumer)
    await log.append(b"2", expected=1, message_id="b")
    assert await take(reader, 1) == [b"2"]
    await reader.aclose()


async def test_two_writers_at_once_never_both_write(server: Server, bus: JetStreamBus) -> None:
    other = await server.connect()
    results = await asyncio.gather(
        bus.log("fact").append(b"mine", expected=0, message_id="a"),
        other.log("fact").append(b"theirs", expected=0, message_id="b"),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, StaleWriter) for result in results) == [False, True]
    assert await bus.log("fact").last() == 1
    await other.close()


async def test_a_request_that_is_cancelled_as_its_answer_comes_is_cancelled(bus: JetStreamBus) -> None:
    async def answer(payload: bytes) -> bytes:
        return payload

    await bus.serve("tidegate.request.a", answer)
    asking = asyncio.create_task(bus.request("tidegate.request.a", b"1"))
    while not bus._client._resp_map:
        await asyncio.sleep(0)
    (waiting,) = bus._client._resp_map.values()
    waiting.add_done_callback(lambda _: asking.cancel())
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_what_is_read_waits_for_a_server_that_is_away(server: Server, bus: JetStreamBus) -> None:
    log = bus.log("fact")
    await log.append(b"1", expected=0, message_id="a", topic="state")
    await log.put_snapshot(1, b"state of all")
    await server.kill()
    asked = [
        asyncio.ensure_future(work)
        for work in (log.last(), log.first(), log.last_of("state"), log.snapshot(), log.put_snapshot(2, b"more"))
    ]
    await asyncio.sleep(0.5)
    assert not any(one.done() for one in asked)
    await server.start()
    last, first, newest, snapshot, _ = await asyncio.wait_for(asyncio.gather(*asked), 60)
    assert (last, first, newest.payload) == (1, 1, b"1")
    assert snapshot in ((1, b"state of all"), (2, b"more")) and await log.snapshot() == (2, b"more")


async def test_a_snapshot_survives_the_server_whole(server: Server, bus: JetStreamBus) -> None:
    """Killed while one is written or read, in the end each is there or not, and never a part of one."""
    log, content = bus.log("fact"), random.Random(1).randbytes(6_000_000)
    for number in range(1, 4):
        putting = asyncio.ensure_future(log.put_snapshot(number, content + bytes([number])))
        await asyncio.sleep(0.01 * number)
        await server.kill()
        await server.start()
        await asyncio.wait_for(putting, 30)
        reading = asyncio.ensure_future(log.snapshot())
        await asyncio.sleep(0.004 * number)
        await server.kill()
        await server.start()
        assert await asyncio.wait_for(reading, 30) == (number, content + bytes([number]))
