"""The world as it will be once the earlier parts of a request are stored."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kube import Key, Object, Store

Stamp = tuple[object | None, int]
AS_STORED: Stamp = (None, 0)


class Marks:
    """Which objects of a store have an annotation, looked for again only when one of their kind has changed.

    ``changed_at`` says at which revision an object of a kind changed last.
    """

    def __init__(self, changed_at: Callable[[str], int]) -> None:
        self._changed_at = changed_at
        self._found: dict[tuple[str, str], tuple[int, Sequence[str]]] = {}

    def names(self, store: Store, kind: str, annotation: str) -> Sequence[str]:
        """The names of the objects of ``kind`` that have ``annotation``, sorted."""
        changed, found = self._changed_at(kind), self._found.get((kind, annotation))
        if found is None or found[0] != changed:
            found = self._found[kind, annotation] = changed, store.annotated(kind, annotation)
        return found[1]


class Overlay:
    """A store with changes laid over it; the store itself stays as it is. ``marks`` are those of the store, if known."""

    def __init__(self, store: Store, marks: Marks | None = None) -> None:
        self._store, self._marks = store, marks
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

    def annotated(self, kind: str, annotation: str) -> Sequence[str]:
        if kind in self._changed:
            return sorted(key.name for key, item in self.of_kind(kind).items() if annotation in item.annotations)
        if self._marks is None:
            return self._store.annotated(kind, annotation)
        return self._marks.names(self._store, kind, annotation)

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
