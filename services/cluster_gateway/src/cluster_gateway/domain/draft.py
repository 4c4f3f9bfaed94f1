"""The change set that is being gathered: what each object became since the last one was written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kube import Edit, Key, Manifest, Object


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

    def created(self, items: Iterable[Object], actor: str) -> None:
        """Objects that are new."""
        edits = [
            Edit(item.key, item.uid, item.metadata, item.body, item.status, "", True, False, actor, place)
            for place, item in enumerate(items, len(self.edits))
        ]
        self.edits += edits
        self._places.update((edit.key, edit) for edit in edits)

    def removed(self, item: Object, actor: str) -> None:
        """The object is gone."""
        self.edits.append(Edit(item.key, item.uid, removed=True, actor=actor, place=len(self.edits)))
        self._places.pop(item.key, None)

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

    def bound(self, bindings: Iterable[tuple[Object, str, Manifest]], items: Iterable[Object], actor: str) -> None:
        """Each pod has a node now and a status that says so, and nothing else is new but its metadata if that is another."""
        for (pod, node, metadata), item in zip(bindings, items, strict=True):
            edit = self._of(item, actor)
            edit.status = item.status
            if metadata is not pod.metadata:
                edit.metadata = metadata
            if edit.body is not None:
                edit.body = item.body
            else:
                edit.node = node

    def statuses(self, items: Iterable[Object], actors: Iterable[str]) -> None:
        """The status of each is now that of its item; the actor in its place asked for it."""
        for item, actor in zip(items, actors, strict=True):
            self._of(item, actor).status = item.status

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

    def keep(self) -> None:
        """Nothing will be taken back any more."""
        self._mark = 0
        self._before.clear()

    def undo(self, mark: int) -> None:
        """Take the draft back to ``mark``."""
        del self.edits[mark:]
        for edit, before in reversed(self._before):
            edit.metadata, edit.body, edit.status, edit.node = before.metadata, before.body, before.status, before.node
        self.keep()
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
            edit = Edit(item.key, item.uid, None, None, None, "", False, False, actor, len(self.edits))
            self._places[item.key] = edit
            self.edits.append(edit)
        elif edit.place < self._mark:
            self._before.append((edit, replace(edit)))
        return edit
