"""Who calls, and what they want to do, in the terms in which Kubernetes grants it: the same questions whoever answers them."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from kube import Key, Manifest, UnknownKind, find_kind, kind_id
from tidegate.gateway.v1 import gateway_pb2

READING = frozenset(("get", "list", "watch"))
EVERYTHING = "*"


class Denied(Exception):
    """The caller is unknown, or may not do that; the text names the user and what is allowed."""


class Ask(NamedTuple):
    """One thing to do: ``create``, ``update``, ``delete``, ``get``, ``list`` or ``watch``.

    ``kind`` is a kind with its group, or ``*`` for all; ``namespace`` is "" for what has none and for all of them, ``name`` for
    all objects.
    """

    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        return Key("" if self.kind == EVERYTHING else self.kind, self.namespace, self.name)


Sight = Callable[[Key], bool] | None
"""Whether one sees an object; None for all of them."""


class Caller(Protocol):
    """Somebody who is known."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> gateway_pb2.Identity | None:
        """As whom an API server is to take what they write; None for whoever carries it there."""

    @property
    def sight(self) -> Sight:
        """What they see of a list or of events that they may ask for."""

    @property
    def places(self) -> tuple[Sequence[str], Sequence[str]]:
        """The namespaces that they may write and read, where that is known: ``*`` for all."""

    async def check(self, *asks: Ask) -> None:
        """Raises Denied unless they may do all of it."""

    async def overview(self) -> Sight:
        """What they see of what tells of the whole system."""


class Callers(Protocol):
    """Those who are known by their tokens."""

    async def caller(self, token: str) -> Caller:
        """Whose token it is. Raises Denied."""


def apply_asks(manifest: Manifest, exists: Callable[[Key], bool], name: str = "") -> Iterator[Ask]:
    """What it takes to store ``manifest`` (as ``name``, where one is given); nothing for what is of no kind, and refused for that.

    A Command is carried out for whoever wrote it, so what it is meant for counts as well.
    """
    metadata = manifest.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    namespace, name = str(given.get("namespace") or "default"), name or str(given.get("name") or "")
    kind = kind_id(str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or ""))
    key = _key(kind, namespace, name)
    if key is not None:
        yield Ask("update" if name and exists(key) else "create", *key)
    target = manifest.get("target")
    if isinstance(target, dict):
        meant = _key(f"{target.get('kind')}", namespace, str(target.get("name") or ""))
        if meant is not None:
            yield Ask("update", *meant)


def _key(kind: str, namespace: str, name: str) -> Key | None:
    try:
        info = find_kind(kind)
    except UnknownKind:
        return None
    return Key(info.id, namespace if info.namespaced else "", name)
