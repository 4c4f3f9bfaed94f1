"""The world as it will be once the earlier parts of a request are stored."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from kube import Key, Object, Store

Stamp = tuple[object | None, int]
AS_STORED: Stamp = (None, 0)


class Overlay:
    """A store with changes laid over it; the store itself stays as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[str, dict[Key, Object | None]] = {}
        self._merged: dict[str, Mapping[Key, Object]] = {}
        self._counts: dict[str, int] = {}
        self._myself = object()

    def get(self, key: Key) -> Object | None:
        changed = self._changed.get(key.kind)
        return changed[key] if changed is not None and key in changed else self._store.get(key)

    def of_kind(self, kind: str) -> Mapping[Key, Object]:
        changed = self._changed.get(kind)
        if changed is None:
            return self._store.of_kind(kind)
        if kind not in self._merged:
            both = {**self._store.of_kind(kind), **changed}
            self._merged[kind] = {key: item for key, item in both.items() if item is not None}
        return self._merged[kind]

    def stamp(self, kinds: AbstractSet[str]) -> Stamp:
        """The same as long as the objects of ``kinds`` are the same, for one store at one revision."""
        if kinds.isdisjoint(self._changed):
            return AS_STORED
        return self._myself, sum(self._counts.get(kind, 0) for kind in kinds)

    def put(self, item: Object) -> None:
        self._change(item.key, item)

    def remove(self, key: Key) -> None:
        self._change(key, None)

    def base_revision(self, key: Key) -> int:
        """The revision of the stored version; 0 where there is none."""
        below = self._store.get(key)
        return below.revision if below is not None else 0

    def _change(self, key: Key, item: Object | None) -> None:
        self._changed.setdefault(key.kind, {})[key] = item
        self._counts[key.kind] = self._counts.get(key.kind, 0) + 1
        self._merged.pop(key.kind, None)
