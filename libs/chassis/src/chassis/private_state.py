"""The private state of a core between its commits: one text, or parts of which a commit carries those that changed.

Specification: the state is what the newest commit that is whole says, with what later ones say of single parts laid over
it. A whole one is written where there is none, and when the changes since then have become as large as it was: so all that
is ever written is at most twice what changed, and what is read at the start at most twice the state.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Self

from chassis.core import Core, Piecemeal, Remembering
from tidegate.codec.decisions import Private
from tidegate.decision.v1 import decision_pb2

LEAST_BYTES = 1 << 16
"""Changes of fewer bytes than this are never a reason to write everything."""

_ALL = ""
"""The name of the only part of a state that is one text."""


class PrivateState:
    """As of the last commit that was taken."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}
        self._whole_bytes: int | None = None
        self._changed_bytes = 0

    @classmethod
    def of(cls, commits: Iterable[decision_pb2.Commit]) -> Self:
        """What all of ``commits``, in their order, say together."""
        state = cls()
        for commit in commits:
            state.take(private_of(commit))
        return state

    def take(self, private: Private) -> None:
        """Lay over it what a commit carries."""
        parts = {_ALL: private.content} if private.content else private.parts
        if private.is_whole:
            self._parts, self._whole_bytes, self._changed_bytes = {}, _size(parts), 0
        else:
            self._changed_bytes += _size(parts)
        for name, content in parts.items():
            if content:
                self._parts[name] = content
            else:
                self._parts.pop(name, None)

    def give(self, core: Core) -> None:
        """Let a core that is new take it up."""
        if isinstance(core, Piecemeal):
            if self._parts:
                core.restore_parts(self._parts)
        elif isinstance(core, Remembering) and _ALL in self._parts:
            core.restore(self._parts[_ALL])

    def next(self, changed: Mapping[str, bytes]) -> Private:
        """What a commit with the parts ``changed`` has to carry."""
        if self._whole_bytes is not None and self._changed_bytes <= max(LEAST_BYTES, self._whole_bytes):
            return Private(parts=changed, is_whole=False)
        together = {**self._parts, **changed}
        return Private(parts={name: content for name, content in together.items() if content})


Ask = Callable[[PrivateState], Private | None]
"""What the next commit has to carry beyond what is committed, None for nothing."""


def asking(core: Core) -> Ask:
    """How ``core`` is asked what it has to remember. To be called once: to find out what a core can takes long."""
    if isinstance(core, Piecemeal):
        parts = core.remember_parts
        return lambda state: state.next(changed) if (changed := parts()) else None
    if isinstance(core, Remembering):
        whole = core.remember
        return lambda state: None if (content := whole()) is None else Private(content)
    return lambda state: None


def private_of(commit: decision_pb2.Commit) -> Private:
    """What ``commit`` carries of a private state."""
    parts = {part.name: part.content for part in commit.private_parts}
    return Private(commit.private_state, parts, commit.private_whole or bool(commit.private_state))


def _size(parts: Mapping[str, bytes]) -> int:
    return sum(len(name) + len(content) for name, content in parts.items())
