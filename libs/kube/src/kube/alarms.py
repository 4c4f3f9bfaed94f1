"""Moments at which somebody has to be looked at though nothing changes: one for each key."""

import heapq
from dataclasses import dataclass, field

from kube.keys import Key


@dataclass(slots=True)
class Alarms:
    """Times are milliseconds since the epoch."""

    _at: dict[Key, int] = field(default_factory=dict)
    _heap: list[tuple[int, Key]] = field(default_factory=list)

    def set(self, key: Key, at: int | None) -> None:
        """Ring for ``key`` at ``at``, instead of when that was set before; None: not at all."""
        if at is None:
            self._at.pop(key, None)
        elif self._at.get(key) != at:
            self._at[key] = at
            heapq.heappush(self._heap, (at, key))

    def take(self, now: int) -> list[Key]:
        """Those whose time has come, in its order; their alarms are done with."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                found.append(key)
        return found

    @property
    def next(self) -> int | None:
        """When the next one rings."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
