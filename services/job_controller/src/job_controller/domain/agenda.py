"""Which jobs to look at, and when: those that something changed for, and those whose time has come."""

import heapq
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kube import Key


@dataclass(slots=True)
class Agenda:
    """Jobs that are due now, and alarms in milliseconds since the epoch: one per job and purpose."""

    due: dict[Key, None] = field(default_factory=dict)
    _alarms: dict[Key, int] = field(default_factory=dict)
    _holds: dict[Key, int] = field(default_factory=dict)
    _heap: list[tuple[int, Key]] = field(default_factory=list)

    def mark(self, key: Key) -> None:
        """Something changed for the job."""
        self.due[key] = None

    def wake(self, key: Key, at: int | None) -> None:
        """Look at the job again at ``at``; this takes the place of what was set before, None clears it."""
        if at is None:
            self._alarms.pop(key, None)
        elif self._alarms.get(key) != at:
            self._alarms[key] = at
            heapq.heappush(self._heap, (at, key))

    def hold(self, key: Key, until: int) -> None:
        """Leave the job alone until ``until``, whatever changes, and look at it then."""
        self._holds[key] = until
        heapq.heappush(self._heap, (until, key))

    def release(self, key: Key) -> None:
        """Leave the job alone no longer."""
        self._holds.pop(key, None)

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self.due.pop(key, None)
        self._alarms.pop(key, None)
        self._holds.pop(key, None)

    def take(self, now: int, except_for: AbstractSet[Key]) -> list[Key]:
        """The jobs to look at now, in order of their keys; those in ``except_for`` stay due."""
        while self._heap and self._heap[0][0] <= now:
            self._ring(*heapq.heappop(self._heap))
        ready = sorted(key for key in self.due if key not in except_for and key not in self._holds)
        for key in ready:
            del self.due[key]
        return ready

    def next_time(self) -> int | None:
        """When the next alarm rings; None when none is set."""
        while self._heap and not self._stands(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def alarm(self, key: Key) -> int | None:
        """When the job will be looked at though nothing changes."""
        return self._alarms.get(key)

    def _stands(self, at: int, key: Key) -> bool:
        return self._alarms.get(key) == at or self._holds.get(key) == at

    def _ring(self, at: int, key: Key) -> None:
        if self._alarms.get(key) == at:
            del self._alarms[key]
            self.due[key] = None
        if self._holds.get(key) == at:
            del self._holds[key]
            self.due[key] = None
