"""The values of Secrets. They never enter the log: only the names of their keys are facts."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import orjson
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kube import Key

GENERATE = "tidegate.dev/generate"
SSH_KEYPAIR = "ssh-keypair"


class Secrets(Protocol):
    """Where values are kept, by the key of their Secret."""

    def get(self, key: Key) -> Mapping[str, bytes] | None: ...

    def put(self, key: Key, data: Mapping[str, bytes]) -> None:
        """Keep ``data`` in the place of what was kept."""

    def drop(self, key: Key) -> None: ...


class MemorySecrets:
    """Values in memory, for virtual time."""

    def __init__(self) -> None:
        self._data: dict[Key, dict[str, bytes]] = {}

    def get(self, key: Key) -> Mapping[str, bytes] | None:
        return self._data.get(key)

    def put(self, key: Key, data: Mapping[str, bytes]) -> None:
        self._data[key] = dict(data)

    def drop(self, key: Key) -> None:
        self._data.pop(key, None)


class FileSecrets:
    """Values in one file each, readable by the owner only, replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, key: Key) -> Mapping[str, bytes] | None:
        file = self._file(key)
        if not file.exists():
            return None
        return {name: base64.b64decode(value) for name, value in orjson.loads(file.read_bytes()).items()}

    def put(self, key: Key, data: Mapping[str, bytes]) -> None:
        file = self._file(key)
        fresh = file.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_bytes(orjson.dumps({name: base64.b64encode(value).decode() for name, value in data.items()}))
        fresh.replace(file)

    def drop(self, key: Key) -> None:
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: Key) -> Path:
        return self._folder / f"{key.namespace}_{key.name}.json"


SSH_AUTH = "kubernetes.io/ssh-auth"


def private_key_name(secret_type: str) -> str:
    """Under which key a Secret of this type holds its private key."""
    return "ssh-privatekey" if secret_type == SSH_AUTH else "id_rsa"


def ssh_keypair(secret_type: str = "") -> dict[str, bytes]:
    """A fresh RSA key pair (2048 bits): in the files that ssh expects, or under the names of the ssh-auth type."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    if secret_type == SSH_AUTH:
        return {"ssh-privatekey": private, "ssh-publickey": public}
    return {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
