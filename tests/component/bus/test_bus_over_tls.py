"""A bus that is reached over TLS: whoever it cannot prove to be is told nothing."""

import asyncio
import datetime
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from admission.webhooks.certificates import Certificates, make
from bus.jetstream import JetStreamBus
from bus.reloader import SERVER, content, look
from bus.server import binary, free_port, free_ports, wait_until_open

NAMES = ("127.0.0.1", "localhost")


def certificates(*names: str) -> Certificates:
    return make(names, datetime.datetime.now(datetime.UTC))


def trust(folder: Path, made: Certificates) -> Path:
    """The file of whom services trust."""
    file = folder / "ca.crt"
    file.write_bytes(made.authority)
    return file


def show(folder: Path, made: Certificates) -> None:
    """The certificate that a server reads is this one from now on."""
    (folder / "tls").mkdir(exist_ok=True)
    (folder / "tls" / "tls.crt").write_bytes(made.serving)
    (folder / "tls" / "tls.key").write_bytes(made.serving_key)


@asynccontextmanager
async def served(folder: Path, port: int, made: Certificates, monitor: int = 0) -> AsyncIterator[str]:
    """A server with this certificate, which tells of itself at ``monitor`` where that is not 0; its address."""
    show(folder, made)
    file = folder / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:{port}"\nauthorization {{ token: secret }}\njetstream {{ store_dir: "{folder}/data" }}\n'
        f'tls {{ cert_file: "{folder}/tls/tls.crt", key_file: "{folder}/tls/tls.key" }}\n'
        + (f'http: "127.0.0.1:{monitor}"\n' if monitor else "")
    )
    with (folder / "nats.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(binary(), "-c", str(file), stdout=log, stderr=log)
    (folder / "proc" / str(process.pid)).mkdir(parents=True)
    (folder / "proc" / str(process.pid) / "comm").write_text(f"{SERVER}\n")
    try:
        await wait_until_open("127.0.0.1", port)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def connect(url: str, authority: Path | None) -> JetStreamBus:
    return await asyncio.wait_for(JetStreamBus.connect(url, "test", token="secret", authority=authority), 60)


async def test_a_bus_for_which_the_authority_vouches_is_used(tmp_path: Path) -> None:
    made = certificates(*NAMES)
    async with served(tmp_path, free_port(), made) as url:
        bus = await connect(url, trust(tmp_path, made))
        assert await bus.log("fact").append(b"one", expected=0, message_id="a") == 1
        await bus.close()


@pytest.mark.parametrize("case", ["of another authority", "for another name"])
async def test_a_bus_that_cannot_prove_what_it_is_is_waited_for_and_the_reason_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    made = certificates("elsewhere.example") if case == "for another name" else certificates(*NAMES)
    authority = trust(tmp_path, certificates(*NAMES) if case == "of another authority" else made)
    async with served(tmp_path, free_port(), made) as url:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connect(url, authority), 1)
    (told,) = {record.__dict__["error"] for record in caplog.records if record.message == "bus_not_trusted"}
    assert "certificate verify failed" in told


@pytest.mark.parametrize("by", ["authority", "address"])
async def test_nothing_is_told_to_a_server_that_says_it_has_no_tls(tmp_path: Path, by: str) -> None:
    """Somebody between the two may change what the server says of itself, which comes in clear."""
    heard = asyncio.get_running_loop().create_future()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"server_id": "x", "version": "2.15.0", "max_payload": 1 << 20, "auth_required": True}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        said = await reader.read(1 << 16)
        if not heard.done():
            heard.set_result(said)
        writer.close()

    port = free_port()
    async with await asyncio.start_server(pretend, "127.0.0.1", port):
        url, authority = f"nats://127.0.0.1:{port}", trust(tmp_path, certificates(*NAMES))
        if by == "address":
            url, authority = url.replace("nats:", "tls:"), None
        connecting = asyncio.ensure_future(connect(url, authority))
        try:
            assert await asyncio.wait_for(heard, 60) == b""
        finally:
            connecting.cancel()
            await asyncio.wait({connecting})


async def test_a_new_authority_is_trusted_without_a_restart(tmp_path: Path) -> None:
    first, second = certificates(*NAMES), certificates(*NAMES)
    port, authority = free_port(), trust(tmp_path, first)
    async with served(tmp_path, port, first) as url:
        bus = await connect(url, authority)
        assert await bus.log("fact").append(b"before", expected=0, message_id="a") == 1
    trust(tmp_path, second)
    async with served(tmp_path, port, second):
        appending = bus.log("fact").append(b"after", expected=1, message_id="b")
        assert await asyncio.wait_for(appending, 60) == 2
        await bus.close()


async def test_a_server_is_told_of_a_new_certificate_and_keeps_its_connections(tmp_path: Path) -> None:
    """As the reloader beside it in a pod does it; new connections are served with the new one."""
    made, (port, monitor) = certificates(*NAMES), free_ports(2)
    async with served(tmp_path, port, made, monitor) as url:
        known = content(mounted := tmp_path / "tls")
        first = await connect(url, trust(tmp_path, made))
        show(tmp_path, renewed := certificates(*NAMES))

        async with asyncio.timeout(30):
            while known != content(mounted):
                known = await asyncio.to_thread(look, mounted, known, monitor, tmp_path / "proc")

        second = await connect(url, trust(tmp_path, renewed))
        assert await second.log("fact").append(b"by the second", expected=0, message_id="a") == 1
        assert await first.log("fact").append(b"by the first", expected=1, message_id="b") == 2
        await first.close()
        await second.close()


@pytest.mark.parametrize("case", ["the signal is passed over", "the server does not answer"])
async def test_a_server_that_has_not_read_a_new_certificate_is_to_be_told_again(tmp_path: Path, case: str) -> None:
    port, monitor, nobody = free_ports(3)
    async with served(tmp_path, port, certificates(*NAMES), monitor):
        known = content(mounted := tmp_path / "tls")
        show(tmp_path, certificates(*NAMES))
        (unheard := tmp_path / "unheard").mkdir()
        at = monitor if case == "the signal is passed over" else nobody
        assert await asyncio.to_thread(look, mounted, known, at, unheard) == known != content(mounted)
