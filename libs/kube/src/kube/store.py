"""The state that facts fold to: every object, found by key, by kind and by owner."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kube.keys import Key, Manifest
from kube.objects import Object


class Event:
    """One object changed: ``old`` is None when it is new, ``new`` is None when it is gone. Immutable.

    A plain class for the same reason as `kube.objects.Object`; ``key`` is asked for by everybody, many times.
    """

    __slots__ = ("key", "new", "old")

    def __init__(self, old: Object | None, new: Object | None) -> None:
        found = new or old
        assert found is not None, "an event has an old or a new object"
        self.old: Final = old
        self.new: Final = new
        self.key: Final = found.key

    @property
    def object(self) -> Object:
        """The newest version that there is."""
        found = self.new or self.old
        assert found is not None
        return found

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Event) and self.old is other.old and self.new is other.new

    def __hash__(self) -> int:
        return hash((id(self.old), id(self.new)))

    def __repr__(self) -> str:
        return f"<{self.old} → {self.new}>"


_NOTHING: Manifest = {}


@dataclass(slots=True)
class Store:
    """Objects by key, with the indexes that every reader needs."""

    objects: dict[Key, Object] = field(default_factory=dict)
    _kinds: dict[str, dict[Key, Object]] = field(default_factory=dict)
    _owned: dict[str, dict[Key, None]] = field(default_factory=dict)

    def get(self, key: Key) -> Object | None:
        return self.objects.get(key)

    def of_kind(self, kind: str) -> dict[Key, Object]:
        """All objects of the kind with group ``kind``, by key, in the order of their arrival."""
        return self._kinds.get(kind, {})

    def in_namespace(self, kind: str, namespace: str) -> Iterator[Object]:
        return (item for key, item in self.of_kind(kind).items() if key.namespace == namespace)

    def owned_by(self, uid: str) -> list[Object]:
        """The objects with an owner reference to ``uid``, by name."""
        return sorted((self.objects[key] for key in self._owned.get(uid, ())), key=lambda item: item.key)

    def put(self, new: Object) -> Event:
        """Store a new version; returns what changed."""
        key = new.key
        old = self.objects.get(key)
        self.objects[key] = new
        kind = self._kinds.get(key.kind)
        if kind is None:
            kind = self._kinds[key.kind] = {}
        kind[key] = new
        before = old.metadata if old is not None else _NOTHING
        if before is not new.metadata and ("ownerReferences" in before or "ownerReferences" in new.metadata):
            self._index_owners(old, new)
        return Event(old, new)

    def remove(self, key: Key) -> Event | None:
        """Forget an object; None when it was not there."""
        old = self.objects.pop(key, None)
        if old is None:
            return None
        del self._kinds[key.kind][key]
        self._index_owners(old, None)
        return Event(old, None)

    def _index_owners(self, old: Object | None, new: Object | None) -> None:
        for uid in _owner_uids(old):
            owned = self._owned.get(uid, {})
            owned.pop(old.key if old else Key("", "", ""), None)
            if not owned:
                self._owned.pop(uid, None)
        for uid in _owner_uids(new):
            assert new is not None
            self._owned.setdefault(uid, {})[new.key] = None


def _owner_uids(item: Object | None) -> Iterable[str]:
    return [owner.get("uid", "") for owner in item.metadata.get("ownerReferences") or ()] if item else ()
