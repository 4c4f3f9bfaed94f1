"""A plug-in of container runtimes: it registers, is asked about containers, and answers what is decided about them."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.nri import wire
from node_agent.nri.plugin import Plugin, resources, serve

BATCH = {"cpu.shares": "512", "cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": "1024", "cpuset.cpus": "0-1"}


class Runtime:
    """The other side: it accepts plug-ins, and asks them."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, str]] = []
        self.news = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._stream = 1

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        try:
            while True:
                connection, length = struct.unpack(">II", await reader.readexactly(8))
                content = await reader.readexactly(length)
                size, stream, kind, _ = struct.unpack(">IIBB", content[:10])
                assert size == length - 10
                self._heard(connection, stream, kind, wire.fields(content[10:]))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _heard(self, connection: int, stream: int, kind: int, found: wire.Fields) -> None:
        if kind == 1:
            assert (connection, wire.word(found, 1), wire.word(found, 2)) == (
                2, "nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin"
            )  # fmt: skip
            asked = wire.fields(wire.inner(found, 3))
            self.registered.append((wire.word(asked, 1), wire.word(asked, 2)))
            self._send(2, stream, 2, wire.message(2, b""))
            self.news.set()
        else:
            answer = self._answers.pop(stream)
            status = wire.fields(wire.inner(found, 1))
            if wire.whole(status, 1):
                answer.set_exception(RuntimeError(f"{wire.whole(status, 1)}: {wire.word(status, 2)}"))
            else:
                answer.set_result(wire.inner(found, 2))

    def _send(self, connection: int, stream: int, kind: int, content: bytes) -> None:
        assert self._writer is not None
        message = struct.pack(">IIBB", len(content), stream, kind, 0) + content
        for part in (message[:7], message[7:]):  # a message may come in pieces
            self._writer.write(struct.pack(">II", connection, len(part)) + part)

    async def ask(self, method: str, payload: bytes = b"") -> wire.Fields:
        self._stream += 2
        answer = self._answers[self._stream] = asyncio.get_running_loop().create_future()
        service = wire.text(1, "nri.pkg.api.v1alpha1.Plugin")
        self._send(1, self._stream, 1, service + wire.text(2, method) + wire.message(3, payload))
        async with asyncio.timeout(5):
            return wire.fields(await answer)

    def hang_up(self) -> None:
        assert self._writer is not None
        self._writer.close()


@asynccontextmanager
async def running(folder: Path, decided: Any) -> AsyncIterator[Runtime]:
    runtime = Runtime()
    plugin = asyncio.create_task(serve(folder / "nri.sock", decided, again_seconds=0.02))
    await asyncio.sleep(0.05)  # there is nobody yet
    server = await asyncio.start_unix_server(runtime.take, folder / "nri.sock")
    try:
        async with asyncio.timeout(5):
            await runtime.news.wait()
        yield runtime
    finally:
        plugin.cancel()
        await asyncio.gather(plugin, return_exceptions=True)
        server.close()
        await asyncio.sleep(0.01)


def container(pod: str, name: str, identity: str = "c1") -> bytes:
    """A CreateContainerRequest or an UpdateContainerRequest."""
    sandbox = wire.text(1, "sandbox") + wire.text(3, pod) + wire.message(5, wire.text(1, "app") + wire.text(2, "x"))
    return wire.message(1, sandbox) + wire.message(2, wire.text(1, identity) + wire.text(3, name))


def told(found: bytes) -> dict[str, Any]:
    """LinuxResources in words."""
    memory, cpu = (wire.fields(wire.inner(wire.fields(found), field)) for field in (1, 2))

    def amount(fields: wire.Fields, field: int) -> int | None:
        if field not in fields:
            return None
        value = wire.whole(wire.fields(wire.inner(fields, field)), 1)
        return value - (1 << 64) if value >> 63 else value

    names = {"shares": 1, "quota": 2, "period": 3}
    return {name: amount(cpu, field) for name, field in names.items()} | {
        "cpus": wire.word(cpu, 6),
        "memory": amount(memory, 1),
    }


async def decided(uid: str, name: str) -> Mapping[str, str]:
    if name == "fails":
        raise RuntimeError("nobody knows")
    if name == "waits":
        await asyncio.sleep(0.5)
    return BATCH if (uid, name) == ("uid-crunch", "main") else {}


async def test_it_registers_and_asks_to_be_asked_about_containers(tmp_path: Path) -> None:
    async with running(tmp_path, decided) as runtime:
        assert runtime.registered == [("tidegate", "50")]
        assert wire.whole(await runtime.ask("Configure"), 2) == 0b1000_1000
        assert await runtime.ask("Synchronize") == {}
        assert wire.whole(await runtime.ask("Synchronize", wire.number(3, 1)), 2) == 1


async def test_a_container_is_made_with_what_is_decided_about_it(tmp_path: Path) -> None:
    async with running(tmp_path, decided) as runtime:
        found = await runtime.ask("CreateContainer", container("uid-crunch", "main"))
        linux = wire.fields(wire.inner(wire.fields(wire.inner(found, 1)), 6))
        assert told(wire.inner(linux, 2)) == {
            "shares": 512, "quota": 50_000, "period": 100_000, "cpus": "0-1", "memory": 1024
        }  # fmt: skip
        assert await runtime.ask("CreateContainer", container("uid-other", "main")) == {}


async def test_what_a_kubelet_changes_stays_what_is_decided_and_names_its_container(tmp_path: Path) -> None:
    """Without the id nothing would be changed (koordinator#3129)."""
    async with running(tmp_path, decided) as runtime:
        found = await runtime.ask("UpdateContainer", container("uid-crunch", "main", "c7"))
        update = wire.fields(wire.inner(found, 1))
        assert wire.word(update, 1) == "c7"
        assert told(wire.inner(wire.fields(wire.inner(update, 2)), 1))["quota"] == 50_000


async def test_what_is_not_known_or_fails_is_an_error_and_nothing_else_waits_for_it(tmp_path: Path) -> None:
    async with running(tmp_path, decided) as runtime:
        with pytest.raises(RuntimeError, match="12: Dance"):
            await runtime.ask("Dance")
        with pytest.raises(RuntimeError, match="13: RuntimeError: nobody knows"):
            await runtime.ask("CreateContainer", container("uid-crunch", "fails"))
        slow = asyncio.create_task(runtime.ask("CreateContainer", container("uid-crunch", "waits")))
        await runtime.ask("CreateContainer", container("uid-crunch", "main"))
        assert not slow.done()
        await slow


async def test_a_runtime_that_went_away_is_joined_again(tmp_path: Path) -> None:
    async with running(tmp_path, decided) as runtime:
        runtime.news.clear()
        runtime.hang_up()
        async with asyncio.timeout(5):
            await runtime.news.wait()
        assert len(runtime.registered) == 2
        assert await runtime.ask("StateChange") == {}


async def test_without_limits_the_runtime_is_told_so() -> None:
    assert told(resources({"cpu.max": "max 100000", "memory.max": "max"})) == {
        "shares": None, "quota": -1, "period": 100_000, "cpus": "", "memory": -1
    }  # fmt: skip
    assert await Plugin(decided).answer("Shutdown", b"") == resources({"cpu.idle": "1"}) == b""


@given(st.integers(0, (1 << 64) - 1), st.text(max_size=300), st.integers(1, 5000))
def test_what_is_written_can_be_read(value: int, words: str, field: int) -> None:
    content = wire.number(field, value) + wire.text(field + 1, words) + wire.message(field + 2, b"x")
    found = wire.fields(content)
    assert (wire.whole(found, field), wire.word(found, field + 1), wire.inner(found, field + 2)) == (value, words, b"x")


@given(st.binary(max_size=60))
def test_nonsense_is_no_message_or_one_that_is_read_to_its_end(content: bytes) -> None:
    try:
        wire.fields(content)
    except ValueError:
        pass
