"""Who may write where: named users with their tokens and namespaces."""

import hmac
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from kube import Manifest, UnknownKind, find_kind

EVERYWHERE = "*"


class Denied(Exception):
    """The caller is unknown, or may not do that; the text names the user and the namespace."""


@dataclass(frozen=True, slots=True)
class User:
    """A user. ``namespaces`` are those that may be written; ``*`` stands for all, and for what has no namespace."""

    name: str
    token: str
    namespaces: tuple[str, ...] = (EVERYWHERE,)

    def may_write(self, namespace: str) -> bool:
        return EVERYWHERE in self.namespaces or (namespace != "" and namespace in self.namespaces)


class Users:
    """The users of a file (YAML: a list of ``{name, token, namespaces}``); a missing file is made with one ``admin``."""

    def __init__(self, users: Iterable[User]) -> None:
        self._users = tuple(users)

    @classmethod
    def load(cls, file: Path) -> "Users":
        """Raises ValueError naming the file and the entry that is wrong."""
        if not file.exists():
            _write_new(file)
        entries = yaml.safe_load(file.read_text()) or []
        try:
            return cls(
                User(str(entry["name"]), str(entry["token"]), _listed(entry.get("namespaces", [EVERYWHERE])))
                for entry in entries
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{file}: each user is {{name, token, namespaces}}; {error!r} is missing or wrong"
            ) from None

    def authenticate(self, header: str) -> User:
        """The user of an ``authorization`` header (``Bearer TOKEN``). Raises Denied."""
        token = header.removeprefix("Bearer ").strip()
        for user in self._users:
            if token and hmac.compare_digest(user.token.encode(), token.encode()):
                return user
        raise Denied("the token is missing or unknown; `tidegate` reads it from the data folder, or pass --token")


def _listed(namespaces: object) -> tuple[str, ...]:
    """The names in a list; a bare text is no list, and its letters are no namespaces."""
    if not isinstance(namespaces, list):
        raise TypeError(f"namespaces: {namespaces!r} is no list")
    return tuple(str(name) for name in namespaces)


def places(manifest: Manifest) -> Iterator[str]:
    """The namespaces that one has to be allowed to write for ``manifest``; "" for what has none.

    A Command is carried out for whoever wrote it, so what it is meant for counts as well.
    """
    metadata = manifest.get("metadata")
    given = metadata.get("namespace") if isinstance(metadata, dict) else None
    own = str(given or "default")
    target = manifest.get("target")
    for meant in (manifest, target if isinstance(target, dict) else {}):
        try:
            yield own if find_kind(f"{meant.get('kind')}").namespaced else ""
        except UnknownKind:
            continue


def _write_new(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_dump([{"name": "admin", "token": secrets.token_urlsafe(24), "namespaces": [EVERYWHERE]}])
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(content)
