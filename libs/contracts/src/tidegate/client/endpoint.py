"""Where the server is and who is asking: from flags, from the environment, or from the data folder of a running Tidegate."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tidegate.client.errors import Denied, Unavailable

FOLDER = ".tidegate"


class NoServer(Unavailable):
    """Nothing says where the server is."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address (``HOST:PORT``) and the token to show there.

    With ``authority`` (certificates in PEM) the server is talked to over TLS, and has to be vouched for by one of them.
    """

    server: str
    token: str = ""
    authority: bytes = b""

    def __post_init__(self) -> None:
        # gRPC headers are ASCII; its own error does not say which one was wrong.
        if not self.token.isascii() or any(letter < " " for letter in self.token):
            raise Denied("the token has characters that no token has; copy it again from users.yaml")


def find_endpoint(
    server: str | None = None,
    token: str | None = None,
    data_dir: Path | None = None,
    user: str | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    ca: Path | None = None,
) -> Endpoint:
    """The server to ask, as user ``user`` of the data folder's ``users.yaml`` (the first one if None).

    What is given here wins over TIDEGATE_SERVER, TIDEGATE_TOKEN and TIDEGATE_DATA_DIR, and those over the data folder
    ``.tidegate`` here or in a parent folder. ``ca`` (else TIDEGATE_CA) is a file with who vouches for the server; without it
    the server is talked to in the clear. Raises NoServer where none is found, and Denied when the user is unknown.
    """
    authority = _authority(ca or Path(environment.get("TIDEGATE_CA") or ""))
    server = server or environment.get("TIDEGATE_SERVER")
    token = token or environment.get("TIDEGATE_TOKEN")
    if server and data_dir is None and user is None:
        # A token from a data folder is for the server that wrote it, not for just any address.
        return Endpoint(_checked(server), token or "", authority)
    folder = data_dir or _folder(environment)
    described = {} if server else _described(folder)
    server = server or str(described.get("server", ""))
    if not token or user is not None:
        token = _token(folder / str(described.get("token_file", "users.yaml")), user)
    return Endpoint(_checked(server), token, authority)


def _authority(file: Path) -> bytes:
    if not file.name:
        return b""
    try:
        return file.read_bytes()
    except OSError as error:
        raise NoServer(f"{file}: {error.strerror}; --ca names the certificate of who vouches for the server") from None


def _folder(environment: Mapping[str, str]) -> Path:
    if environment.get("TIDEGATE_DATA_DIR"):
        return Path(environment["TIDEGATE_DATA_DIR"])
    here = Path.cwd()
    return next((place / FOLDER for place in (here, *here.parents) if (place / FOLDER).is_dir()), here / FOLDER)


def _described(folder: Path) -> dict[str, Any]:
    file = folder / "endpoint.json"
    try:
        described = json.loads(file.read_text())
    except FileNotFoundError:
        raise NoServer(
            f"no Tidegate runs from {folder}; start one with `tidegate up`, or say where it is with --server HOST:PORT"
        ) from None
    except (OSError, ValueError) as error:
        raise NoServer(f"{file} cannot be read: {error}; `tidegate up` writes it anew") from None
    if not isinstance(described, dict) or not described.get("server"):
        raise NoServer(f"{file} names no server; `tidegate up` writes it anew")
    return described


def _token(file: Path, user: str | None) -> str:
    entries = [entry for entry in _users(file) if isinstance(entry, dict) and entry.get("name") and entry.get("token")]
    if user is None:
        return str(entries[0]["token"]) if entries else ""
    found = next((entry for entry in entries if entry["name"] == user), None)
    if found is None:
        names = ", ".join(str(entry["name"]) for entry in entries) or "nobody"
        raise Denied(f"{file} has no user {user!r}; it has {names}")
    return str(found["token"])


def _users(file: Path) -> list[Any]:
    try:
        users = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        return []
    except PermissionError:
        raise Denied(f"{file} is not yours to read; ask its owner for a token and pass it with --token") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise Denied(f"{file} cannot be read: {error}") from None
    return users if isinstance(users, list) else []


def _checked(server: str) -> str:
    host, colon, port = server.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise NoServer(f"{server!r} is no address of a server; write it as HOST:PORT")
    return server
