"""The world as it will be once the earlier parts of a request are stored."""

from collections.abc import Mapping

from kube import Key, Object, Store


class Overlay:
    """A store with changes laid over it; the store itself stays as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[str, dict[Key, Object | None]] = {}
        self._merged: dict[str, Mapping[Key, Object]] = {}

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
        self._merged.pop(key.kind, None)
