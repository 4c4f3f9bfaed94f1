"""The world as it will be once the earlier parts of a request are stored."""

from collections.abc import Mapping

from kube import Key, Object, Store


class Overlay:
    """A store with changes laid over it; the store itself stays as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[Key, Object | None] = {}

    def get(self, key: Key) -> Object | None:
        return self._changed[key] if key in self._changed else self._store.get(key)

    def of_kind(self, kind: str) -> Mapping[Key, Object]:
        below = self._store.of_kind(kind)
        above = {key: item for key, item in self._changed.items() if key.kind == kind}
        if not above:
            return below
        merged = {**below, **{key: item for key, item in above.items() if item is not None}}
        return {key: item for key, item in merged.items() if above.get(key, item) is not None}

    def put(self, item: Object) -> None:
        self._changed[item.key] = item

    def remove(self, key: Key) -> None:
        self._changed[key] = None

    def base_revision(self, key: Key) -> int:
        """The revision of the stored version; 0 where there is none."""
        below = self._store.get(key)
        return below.revision if below is not None else 0
