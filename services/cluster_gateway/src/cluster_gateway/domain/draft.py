"""The change set that is being gathered: what each object became since the last one was written."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kube import Key, Manifest, Object


@dataclass(frozen=True, slots=True)
class Edit:
    """What one object became: the parts that are new (None: as before), or that it is gone. ``actor`` asked for it."""

    key: Key
    uid: str
    metadata: Manifest | None = None
    body: Manifest | None = None
    status: Manifest | None = None
    node: str = ""
    fresh: bool = False
    removed: bool = False
    actor: str = ""


@dataclass(slots=True)
class Draft:
    """Edits in their order. Later edits of an object are laid over its earlier one."""

    edits: list[Edit] = field(default_factory=list)
    _places: dict[Key, int] = field(default_factory=dict)
    _undo: list[tuple[Key, int | None, Edit | None]] = field(default_factory=list)
    """Of each step back: the object, the place that its newest edit had, and the edit there (None: there was one less)."""

    def __bool__(self) -> bool:
        return bool(self.edits)

    def created(self, item: Object, actor: str) -> None:
        """The object is new."""
        self._append(Edit(item.key, item.uid, item.metadata, item.body, item.status, fresh=True, actor=actor))

    def removed(self, item: Object, actor: str) -> None:
        """The object is gone."""
        place = self._places.get(item.key)
        self._append(Edit(item.key, item.uid, removed=True, actor=actor))
        del self._places[item.key]
        self._undo[-1] = (item.key, place, None)

    def changed(
        self, item: Object, actor: str, *, metadata: bool = False, body: bool = False, status: bool = False
    ) -> None:
        """The named parts of the object are now those of ``item``."""
        parts = {
            **({"metadata": item.metadata} if metadata else {}),
            **({"body": item.body, "node": ""} if body else {}),
            **({"status": item.status} if status else {}),
        }
        self._lay(Edit(item.key, item.uid, actor=actor), parts)

    def bound(self, item: Object, node: str, actor: str) -> None:
        """The pod has a node now, and nothing else of its body is new."""
        place = self._places.get(item.key)
        if place is not None and self.edits[place].body is not None:
            self._lay(Edit(item.key, item.uid, actor=actor), {"body": item.body})
        else:
            self._lay(Edit(item.key, item.uid, actor=actor), {"node": node})

    def take(self) -> Sequence[Edit]:
        """The edits so far; the draft begins anew."""
        edits, self.edits = self.edits, []
        self._places = {}
        self._undo.clear()
        return edits

    def mark(self) -> int:
        """A point to which undo() goes back."""
        return len(self._undo)

    def undo(self, mark: int) -> None:
        """Forget what was noted since ``mark``."""
        while len(self._undo) > mark:
            key, place, edit = self._undo.pop()
            if edit is None:
                self.edits.pop()
                self._places.pop(key, None)
                if place is not None:
                    self._places[key] = place
            elif place is not None:
                self.edits[place] = edit

    def _lay(self, base: Edit, parts: Manifest) -> None:
        place = self._places.get(base.key)
        if place is None:
            self._append(replace(base, **parts))
        else:
            self._undo.append((base.key, place, self.edits[place]))
            self.edits[place] = replace(self.edits[place], **parts)

    def _append(self, edit: Edit) -> None:
        self._undo.append((edit.key, self._places.get(edit.key), None))
        self._places[edit.key] = len(self.edits)
        self.edits.append(edit)
