"""Types of the vectors over nodes, and the log that says which of their places changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.intp] | slice
"""Which places of a vector are meant: some of them by number, or all of them."""

ALL = slice(None)

_PART = 32_768
"""So many places of a vector are computed at once, so that what comes in between stays in the processor's cache."""


def parts(size: int) -> Iterator[slice]:
    """All places of a vector, part by part."""
    for start in range(0, size, _PART):
        yield slice(start, min(size, start + _PART))


@dataclass(slots=True)
class ChangeLog:
    """Slots in the order in which they changed, so that each cached vector catches up on its own."""

    end: int = 0
    """The position behind the newest change."""

    limit: int = 65_536
    _slots: Ints = field(default_factory=lambda: np.empty(64, np.int64))
    _start: int = 0

    def add(self, slot: int) -> None:
        """``slot`` changed."""
        at = self.end - self._start
        if at == len(self._slots):
            at = self._make_place()
        self._slots[at] = slot
        self.end += 1

    def since(self, position: int) -> list[int] | None:
        """The distinct slots that changed from ``position`` on, in no order; None when the log has forgotten some."""
        if position == self.end:
            return []
        if position < self._start:
            return None
        return list(set(self._slots[position - self._start : self.end - self._start].tolist()))

    def entries(self, position: int) -> Ints | None:
        """All that was logged from ``position`` on, as often as it was; None when the log has forgotten some. Not to be kept."""
        if position < self._start:
            return None
        return self._slots[position - self._start : self.end - self._start]

    def forget(self) -> None:
        """Everything may have changed: every reader starts from the whole vector."""
        self._start = self.end = self.end + 1

    def _make_place(self) -> int:
        """Twice as much, up to the limit, from which on the older half is forgotten; returns the next place."""
        size = len(self._slots)
        kept = self._slots if size < self.limit else self._slots[size // 2 :]
        self._slots = np.concatenate([kept, np.empty_like(kept)])
        self._start += size - len(kept)
        return len(kept)
