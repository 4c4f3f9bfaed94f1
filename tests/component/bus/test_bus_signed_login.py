"""A bus whose users are signed by an account: a service logs in with the file that NATS's tools make, and no other key does."""

import asyncio
import base64
import hashlib
import json
import time
from binascii import crc_hqx
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bus.jetstream import JetStreamBus
from bus.server import binary, free_port, wait_until_open

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3
"""The first bytes of keys, which become their first letters: O, A, U, S."""


def written(data: bytes) -> str:
    return base64.b32encode(data + crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


@dataclass(frozen=True)
class Key:
    """As the tool `nk` makes them."""

    kind: int
    private: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> str:
        return written(bytes([self.kind]) + self.private.public_key().public_bytes_raw())

    @property
    def seed(self) -> str:
        return written(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]) + self.private.private_bytes_raw())

    def signs(self, subject: str, name: str, claims: dict[str, Any]) -> str:
        body = {"iss": self.public, "sub": subject, "name": name, "iat": int(time.time()), "nats": claims}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        parts = [{"typ": "JWT", "alg": "ed25519-nkey"}, body]
        text = ".".join(_plain(json.dumps(part).encode()) for part in parts)
        return f"{text}.{_plain(self.private.sign(text.encode()))}"


def _plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def credentials(folder: Path, account: Key, user: Key, proof: Key) -> Path:
    """A folder with `user.creds`."""
    claims = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2}
    jwt = account.signs(user.public, "service", claims)
    folder.mkdir()
    (folder / "user.creds").write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{proof.seed}\n------END USER NKEY SEED------\n"
    )
    return folder


@pytest.fixture
async def signed(tmp_path: Path) -> AsyncIterator[tuple[str, Key]]:
    """A server that trusts an operator, and an account of its."""
    operator, account, system, port = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT), free_port()
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
    limits |= {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "wildcards": True}
    claims = {"limits": limits, "type": "account", "version": 2}
    trusted = operator.signs(operator.public, "operator", {"type": "operator", "version": 2})
    # That of the system itself may keep no streams.
    of_system = {"limits": {**limits, "mem_storage": 0, "disk_storage": 0}, "type": "account", "version": 2}
    known = {account: operator.signs(account.public, "account", claims)}
    known[system] = operator.signs(system.public, "system", of_system)
    preloaded = ", ".join(f"{one.public}: {jwt}" for one, jwt in known.items())
    file = tmp_path / "nats.conf"
    file.write_text(
        f'listen: "127.0.0.1:{port}"\noperator: {trusted}\nresolver: MEMORY\nsystem_account: {system.public}\n'
        f'resolver_preload: {{ {preloaded} }}\njetstream {{ store_dir: "{tmp_path}/data" }}\n'
    )
    log = (tmp_path / "nats.log").open("wb")
    process = await asyncio.create_subprocess_exec(binary(), "-c", str(file), stdout=log, stderr=log)
    try:
        await wait_until_open("127.0.0.1", port)
        yield f"nats://127.0.0.1:{port}", account
    finally:
        process.kill()
        await process.wait()
        log.close()


async def test_a_service_works_with_a_signed_login(signed: tuple[str, Key], tmp_path: Path) -> None:
    url, account = signed
    user = Key(USER)
    folder = credentials(tmp_path / "login", account, user, user)
    bus = await asyncio.wait_for(JetStreamBus.connect(url, "test", credentials=folder), 60)
    assert await bus.log("fact").append(b"one", expected=0, message_id="a") == 1
    await bus.close()


async def test_the_signed_user_is_nothing_without_its_key(signed: tuple[str, Key], tmp_path: Path) -> None:
    url, account = signed
    folder = credentials(tmp_path / "login", account, Key(USER), Key(USER))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(JetStreamBus.connect(url, "test", credentials=folder), 1.5)
