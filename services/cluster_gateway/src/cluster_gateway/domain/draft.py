"""The change set that is being gathered: what each object became since the last one was written."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kube import Edit, Key, Object


@dataclass(slots=True)
class Draft:
    """Edits in their order. Later edits of an object are laid over its earlier one."""

    edits: list[Edit] = field(default_factory=list)
    _places: dict[Key, Edit] = field(default_factory=dict)
    _mark: int = 0
    _before: list[tuple[Edit, Edit]] = field(default_factory=list)
    """Edits from before the mark that grew since, each with what it was."""

    def __bool__(self) -> bool:
        return bool(self.edits)

    def created(self, item: Object, actor: str) -> None:
        """The object is new."""
        self._append(Edit(item.key, item.uid, item.metadata, item.body, item.status, fresh=True, actor=actor))

    def removed(self, item: Object, actor: str) -> None:
        """The object is gone."""
        self._append(Edit(item.key, item.uid, removed=True, actor=actor))
        del self._places[item.key]

    def changed(
        self, item: Object, actor: str, *, metadata: bool = False, body: bool = False, status: bool = False
    ) -> None:
        """The named parts of the object are now those of ``item``."""
        edit = self._of(item, actor)
        if metadata:
            edit.metadata = item.metadata
        if body:
            edit.body, edit.node = item.body, ""
        if status:
            edit.status = item.status

    def bound(self, item: Object, node: str, actor: str, *, metadata: bool) -> None:
        """The pod has a node now and a status that says so; nothing else is new, but for its metadata where that is said."""
        edit = self._of(item, actor)
        edit.status = item.status
        if metadata:
            edit.metadata = item.metadata
        if edit.body is not None:
            edit.body = item.body
        else:
            edit.node = node

    def take(self) -> Sequence[Edit]:
        """The edits so far; the draft begins anew."""
        edits, self.edits = self.edits, []
        self._places, self._mark = {}, 0
        return edits

    def mark(self) -> int:
        """A point to which the draft can be taken back; the newest one counts."""
        self._mark = len(self.edits)
        self._before.clear()
        return self._mark

    def undo(self, mark: int) -> None:
        """Take the draft back to ``mark``."""
        del self.edits[mark:]
        for edit, before in reversed(self._before):
            edit.metadata, edit.body, edit.status, edit.node = before.metadata, before.body, before.status, before.node
        self._before.clear()
        self._places = {}
        for edit in self.edits:
            if edit.removed:
                self._places.pop(edit.key, None)
            else:
                self._places[edit.key] = edit

    def _of(self, item: Object, actor: str) -> Edit:
        """The edit of an object, a new one if it has none yet."""
        edit = self._places.get(item.key)
        if edit is None:
            edit = Edit(item.key, item.uid, actor=actor)
            self._append(edit)
        elif edit.place < self._mark:
            self._before.append((edit, replace(edit)))
        return edit

    def _append(self, edit: Edit) -> None:
        edit.place = len(self.edits)
        self._places[edit.key] = edit
        self.edits.append(edit)
