"""The state that facts fold to: every object, found by key, by kind and by owner."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final, cast

from kube.keys import Key, Manifest
from kube.objects import Object


class Event:
    """One object changed: ``old`` is None when it is new, ``new`` is None when it is gone. Immutable.

    A plain class for the same reason as `kube.objects.Object`; ``key`` is asked for by everybody, many times.
    """

    __slots__ = ("key", "new", "old")

    def __init__(self, old: Object | None, new: Object | None) -> None:
        found = old if new is None else new
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
_NO_OBJECTS: dict[Key, Object] = {}


class _All(Mapping[Key, Object]):
    """The objects of all kinds: kind by kind, in the order of their arrival."""

    __slots__ = ("_kinds",)

    def __init__(self, kinds: Mapping[str, Mapping[Key, Object]]) -> None:
        self._kinds = kinds

    def __getitem__(self, key: Key) -> Object:
        return self._kinds[key.kind][key]

    def __iter__(self) -> Iterator[Key]:
        return chain.from_iterable(self._kinds.values())

    def __len__(self) -> int:
        return sum(map(len, self._kinds.values()))


class Store:
    """Objects by key, with the indexes that every reader needs."""

    __slots__ = ("_kinds", "_owned", "objects")

    def __init__(self) -> None:
        self._kinds: dict[str, dict[Key, Object]] = {}
        self._owned: dict[str, dict[Key, None]] = {}
        self.objects: Final[Mapping[Key, Object]] = _All(self._kinds)

    def get(self, key: Key) -> Object | None:
        kind = self._kinds.get(key[0])
        return None if kind is None else kind.get(key)

    def found(self, kind: str, namespace: str, names: Iterable[str]) -> Iterable[Object | None]:
        """What there is under each of ``names``."""
        # A plain tuple finds what its Key does, and is made in a fraction of the time.
        there = cast("Mapping[tuple[str, str, str], Object]", self._kinds.get(kind, _NO_OBJECTS))
        return map(there.get, zip(repeat(kind), repeat(namespace), names))

    def of_kind(self, kind: str) -> dict[Key, Object]:
        """All objects of the kind with group ``kind``, by key, in the order of their arrival."""
        return self._kinds.get(kind, {})

    def in_namespace(self, kind: str, namespace: str) -> Iterator[Object]:
        return (item for key, item in self.of_kind(kind).items() if key.namespace == namespace)

    def annotated(self, kind: str, annotation: str) -> list[str]:
        """The names of the objects of ``kind`` that have ``annotation``, sorted."""
        return sorted(key.name for key, item in self.of_kind(kind).items() if annotation in item.annotations)

    def owned_by(self, uid: str) -> list[Object]:
        """The objects with an owner reference to ``uid``, by name."""
        return sorted((self.objects[key] for key in self._owned.get(uid, ())), key=lambda item: item.key)

    def put(self, new: Object) -> Event:
        """Store a new version; returns what changed."""
        key = new.key
        kind = self._kinds.get(key[0])
        if kind is None:
            kind = self._kinds[key[0]] = {}
        old = kind.get(key)
        kind[key] = new
        before = _NOTHING if old is None else old.metadata
        if before is not new.metadata and ("ownerReferences" in before or "ownerReferences" in new.metadata):
            self._index_owners(old, new)
        return Event(old, new)

    def put_all(self, kind: str, versions: Sequence[Object]) -> list[Event]:
        """``put`` for objects of one kind, in less time."""
        there = self._kinds.setdefault(kind, {})
        keys = [new.key for new in versions]
        if len(set(keys)) < len(keys):
            return [self.put(new) for new in versions]
        olds = list(map(there.get, keys))
        there.update(zip(keys, versions, strict=True))
        unowned: Manifest | None = None
        for old, new in zip(olds, versions, strict=True):
            metadata = new.metadata
            before = unowned if old is None else old.metadata
            if metadata is before:
                continue
            if "ownerReferences" in metadata or (old is not None and "ownerReferences" in old.metadata):
                self._index_owners(old, new)
            else:
                unowned = metadata
        return list(map(Event, olds, versions))

    def remove(self, key: Key) -> Event | None:
        """Forget an object; None when it was not there."""
        old = self._kinds.get(key[0], _NO_OBJECTS).pop(key, None)
        if old is None:
            return None
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
