"""Who may write and read where: named users with their tokens and namespaces."""

import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from admission.authors import is_part
from admission.callers import READING, Ask, Denied, Sight
from kube import Key
from tidegate.gateway.v1 import gateway_pb2

EVERYWHERE = "*"
ADMIN = "admin"
"""The user that there is at first."""


@dataclass(frozen=True, slots=True)
class User:
    """A user. ``namespaces`` are those that may be written; ``*`` stands for all, and for what has no namespace.

    ``reads`` are those that may be read besides; ``*`` stands for all. Nodes, queues and the like have no namespace and may
    be read by everybody, but not what tells of the pods of all namespaces.
    """

    name: str
    token: str
    namespaces: tuple[str, ...] = (EVERYWHERE,)
    reads: tuple[str, ...] = (EVERYWHERE,)

    def may_write(self, namespace: str) -> bool:
        return EVERYWHERE in self.namespaces or (namespace != "" and namespace in self.namespaces)

    @property
    def reads_all(self) -> bool:
        """Whether nothing is kept from the user."""
        return EVERYWHERE in self.reads or EVERYWHERE in self.namespaces

    @property
    def readable(self) -> tuple[str, ...]:
        """The namespaces that may be read; ``*`` for all."""
        return (EVERYWHERE,) if self.reads_all else tuple(dict.fromkeys((*self.reads, *self.namespaces)))

    def may_read_in(self, namespace: str) -> bool:
        return self.reads_all or namespace in self.reads or namespace in self.namespaces

    def may_read(self, key: Key) -> bool:
        """Whether the user may see the object of ``key``."""
        if self.reads_all:
            return True
        if key.kind == "Namespace":
            return self.may_read_in(key.name)
        return self.may_read_in(key.namespace) if key.namespace else key.kind not in _OF_ALL

    @property
    def identity(self) -> gateway_pb2.Identity | None:
        """Nobody of a cluster: what is written is carried to it with the gateway's own rights."""
        return None

    @property
    def sight(self) -> Sight:
        """What the user sees of lists; None for everything."""
        return None if self.reads_all else self.may_read

    @property
    def places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The namespaces that may be written, and those that may be read."""
        return self.namespaces, self.readable

    async def check(self, *asks: Ask) -> None:
        """Raises Denied unless the user may do all of it."""
        for ask in asks:
            if ask.verb in READING:
                self.check_read(ask.key)
            else:
                self.check_write(ask.namespace)

    async def overview(self) -> Sight:
        """What the user sees of what tells of the whole system."""
        return self.sight

    def check_write(self, namespace: str) -> None:
        """Raises Denied unless the user may write in ``namespace``."""
        if not self.may_write(namespace):
            where = f"in namespace {namespace}" if namespace else "objects without a namespace"
            allowed = ", ".join(self.namespaces) or 'nothing, for users.yaml gives no namespaces; ["*"] stands for all'
            raise Denied(f"user {self.name} may not write {where}; allowed: {allowed}")

    def check_read(self, key: Key) -> None:
        """Raises Denied unless the user may see the object of ``key``; of all those of a kind where it has no name."""
        if key.name and not self.may_read(key):
            where = f"in namespace {key.namespace}" if key.namespace else f"{key.kind} {key.name}"
        elif not key.name and key.namespace and not self.may_read_in(key.namespace):
            where = f"in namespace {key.namespace}"
        else:
            return
        raise Denied(f"user {self.name} may not read {where}; allowed: {', '.join(self.readable)}")


_OF_ALL = frozenset(["NodeMetric.slo.koordinator.sh"])
"""Kinds without a namespace that name pods of all namespaces."""


class Users:
    """The users of a file (YAML: a list of ``{name, token, namespaces, reads}``); a missing file is made with one ``admin``.

    Who is given no ``namespaces`` writes nowhere; who is given no ``reads`` reads everything. Where the token of ``admin`` comes
    from elsewhere, the file is of the others, and may be missing.
    """

    def __init__(self, users: Iterable[User]) -> None:
        self._users = tuple(users)

    @classmethod
    def load(cls, file: Path, admin_token: str = "") -> "Users":
        """Raises ValueError naming the file and the entry that is wrong."""
        if not file.exists() and not admin_token:
            _write_new(file)
        entries = (yaml.safe_load(file.read_text()) or []) if file.exists() else []
        try:
            users = [
                User(
                    str(entry["name"]),
                    str(entry["token"]),
                    _listed("namespaces", entry.get("namespaces", [])),
                    _listed("reads", entry.get("reads", [EVERYWHERE])),
                )
                for entry in entries
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{file}: each user is {{name, token, namespaces, reads}}; {error!r} is missing or wrong"
            ) from None
        for user in users:
            if is_part(user.name):
                raise ValueError(f"{file}: no user may be called {user.name!r}: a part of the system is")
            if admin_token and user.name == ADMIN:
                raise ValueError(f"{file}: {ADMIN} has the token of the setting admin_token; it takes no other one")
        return cls([User(ADMIN, admin_token), *users] if admin_token else users)

    def find(self, token: str) -> User | None:
        """The user of a token."""
        return next((user for user in self._users if token and _equal(user.token, token)), None)


def _equal(known: str, given: str) -> bool:
    return hmac.compare_digest(known.encode(), given.encode())


def _listed(field: str, namespaces: object) -> tuple[str, ...]:
    """The names in a list; a bare text is no list, and its letters are no namespaces."""
    if not isinstance(namespaces, list):
        raise TypeError(f"{field}: {namespaces!r} is no list")
    return tuple(str(name) for name in namespaces)


def _write_new(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_dump([{"name": ADMIN, "token": secrets.token_urlsafe(24), "namespaces": [EVERYWHERE]}])
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(content)
