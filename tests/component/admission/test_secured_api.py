"""The API over TLS: only whoever shows a certificate of the known authority is talked to, and it changes without a restart."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from cryptography import x509

from admission.secured_api import SecuredApi
from admission.webhooks.certificate_keeper import CertificateKeeper, MountedFolder, NotKept
from admission.webhooks.certificates import Certificates, make
from bus.server import free_port
from chassis.measures import Measures
from tidegate.client import Client, Endpoint, Unavailable, find_endpoint
from tidegate_cli.port_forward import Kubectl

NAMES = ("localhost", "127.0.0.1")


@dataclass
class Mount:
    """A folder in which somebody renews a certificate."""

    folder: Path
    known: Certificates | None = None
    served: list[bytes] = field(default_factory=list)

    def renew(self) -> Certificates:
        self.known = made = make(NAMES, datetime.datetime.now(datetime.UTC), self.known)
        for name, content in (("tls.crt", made.serving), ("tls.key", made.serving_key), ("ca.crt", made.authority)):
            (self.folder / name).write_bytes(content)
        return made


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    made = Mount(tmp_path)
    made.renew()
    return made


@pytest.fixture
async def port(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """Where the API is served, and asked by nobody."""
    monkeypatch.setattr(MountedFolder, "look_seconds", 0.02)
    keeper = CertificateKeeper(MountedFolder(mount.folder))
    keeper.renewed.append(lambda serving: mount.served.append(serving.chain))
    chosen = free_port()
    secured = SecuredApi(f"127.0.0.1:{chosen}", keeper, Measures("admission"), (), ())
    tasks = [asyncio.create_task(work) for work in (keeper.run(), secured.run())]
    await secured.ready.wait()
    yield chosen
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def failure(endpoint: Endpoint) -> str:
    """Why a call fails: there is no service behind this API, which only a server that is trusted can say."""
    async with Client(endpoint, timeout_seconds=3.0, patience_seconds=0) as client:
        try:
            await client.whoami()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def shown(port: int) -> x509.Certificate:
    """What the server shows to a new connection."""
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode())


async def test_a_server_that_the_authority_vouches_for_is_talked_to_and_no_other(mount: Mount, port: int) -> None:
    assert mount.known is not None
    stranger = make(NAMES, datetime.datetime.now(datetime.UTC))

    trusted = await failure(find_endpoint(f"127.0.0.1:{port}", "t", ca=mount.folder / "ca.crt"))
    untrusted = await failure(Endpoint(f"127.0.0.1:{port}", "t", stranger.authority))
    in_the_clear = await failure(Endpoint(f"127.0.0.1:{port}", "t"))

    assert not trusted.startswith("Unavailable")
    assert untrusted.startswith("Unavailable")
    assert in_the_clear.startswith("Unavailable")


async def test_a_renewed_certificate_is_shown_without_a_restart(mount: Mount, port: int) -> None:
    before = await asyncio.to_thread(shown, port)

    fresh = mount.renew()
    while len(mount.served) < 2 or mount.served[-1] != fresh.serving:
        await asyncio.sleep(0.01)

    after = await asyncio.to_thread(shown, port)
    assert after.serial_number != before.serial_number
    assert after == x509.load_pem_x509_certificate(fresh.serving)


async def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotKept, match=r"No such file or directory: .*tls\.crt"):
        await MountedFolder(tmp_path).current()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"ca\.crt: No such file"):
        find_endpoint("127.0.0.1:1", "t", ca=tmp_path / "ca.crt")


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A kubectl that does what ``script`` says."""
    file = folder / "kubectl"
    file.write_text(f'#!/bin/sh\necho "$@" > {folder}/asked\n{script}\n')
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


async def test_a_server_behind_a_way_that_kubectl_keeps_open_is_trusted_by_what_it_shows(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f'echo "Forwarding from 127.0.0.1:{port} -> 7443"\nexec sleep 60')

    with_flags = Kubectl(("--context", "lab"))
    way = with_flags.forwarded("tidegate-system", "tidegate-admission", 7443)
    server, authority = await asyncio.to_thread(way.__enter__)
    said = await failure(find_endpoint(server, "t", ca=authority))
    await asyncio.to_thread(way.__exit__, None, None, None)

    assert said and not said.startswith("Unavailable"), said
    assert (tmp_path / "asked").read_text().split() == [
        "--context", "lab", "--namespace", "tidegate-system", "port-forward", "--address", "127.0.0.1",
        "service/tidegate-admission", ":7443",
    ]  # fmt: skip
    assert not authority.exists()


def test_what_kubectl_says_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "Error: services tidegate-admission not found" >&2\nexit 1')

    with (
        pytest.raises(click.ClickException, match="not found; is Tidegate installed there"),
        Kubectl().forwarded("tidegate-system", "tidegate-admission", 7443),
    ):
        pass


def test_without_kubectl_it_is_said_what_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(click.ClickException, match="with --server none is needed"):
        Kubectl().says("version")
