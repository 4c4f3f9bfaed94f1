"""The values of Secrets. They never enter the log: only the names of their keys are facts."""

import base64
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import orjson
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kube import Key

GENERATE = "tidegate.dev/generate"
SSH_KEYPAIR = "ssh-keypair"


class SecretsNotKept(Exception):
    """Values cannot be written down; the text says which, where, why, and what to do. Nothing of it was done."""


class Secrets(Protocol):
    """Where values are kept, by the key of their Secret."""

    def get(self, key: Key) -> Mapping[str, bytes] | None: ...

    def put_all(self, values: Mapping[Key, Mapping[str, bytes]]) -> None:
        """Keep ``values`` in the place of what was kept: all of it, or nothing. Raises SecretsNotKept."""

    def drop(self, key: Key) -> None: ...


class MemorySecrets:
    """Values in memory, for virtual time."""

    def __init__(self) -> None:
        self._data: dict[Key, dict[str, bytes]] = {}

    def get(self, key: Key) -> Mapping[str, bytes] | None:
        return self._data.get(key)

    def put_all(self, values: Mapping[Key, Mapping[str, bytes]]) -> None:
        self._data.update({key: dict(data) for key, data in values.items()})

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

    def put_all(self, values: Mapping[Key, Mapping[str, bytes]]) -> None:
        files = [(key, self._file(key), dict(data)) for key, data in values.items()]
        try:
            for _, file, data in files:
                _write(_fresh(file), data)
            for _, file, _ in files:
                _fresh(file).replace(file)
        except OSError as error:
            for _, file, _ in files:
                with suppress(OSError):
                    _fresh(file).unlink(missing_ok=True)
            names = ", ".join(f"{key.namespace}/{key.name}" for key, _, _ in files)
            raise SecretsNotKept(
                f"the values of Secret {names} cannot be kept in {self._folder}: {error.strerror or error}; nothing was"
                " changed, make room there and try again"
            ) from error

    def drop(self, key: Key) -> None:
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: Key) -> Path:
        return self._folder / f"{key.namespace}_{key.name}.json"


def _fresh(file: Path) -> Path:
    """What takes the file's place once it is complete."""
    return file.with_suffix(".new")


def _write(file: Path, data: Mapping[str, bytes]) -> None:
    """Values as a file that the owner alone may read, on the disk and not only on its way there."""
    file.touch(mode=0o600)
    with file.open("wb") as stream:
        stream.write(orjson.dumps({name: base64.b64encode(value).decode() for name, value in data.items()}))
        stream.flush()
        os.fsync(stream.fileno())


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
