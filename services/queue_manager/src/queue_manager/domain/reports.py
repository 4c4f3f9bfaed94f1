"""Reports for people: which are old, and when they may be written.

A report may be a moment old: it is written when nothing else goes on, or once a second while things never come to rest. At one
and the same instant it is brought up to date at once, as time that stands still cannot heal it.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kube import Decision, Key, Mutation

_INTERVAL_MS = 1000

Name = TypeVar("Name", str, Key)
"""What reports of one kind are named by."""


@dataclass(slots=True)
class Reports(Generic[Name]):
    """When reports of one kind are written: decisions ``name``. ``dirty`` names what they are old about."""

    name: str
    reason: str
    dirty: dict[Name, None] = field(default_factory=dict)
    due: int | None = None
    """When write() should be called again; None when every report is up to date."""

    _sent: dict[Name, None] = field(default_factory=dict)
    _last: int = -_INTERVAL_MS
    _waits_since: int | None = None

    def refused(self) -> None:
        """The last reports were not taken: write them again."""
        self.dirty.update(self._sent)

    def write(
        self,
        now: int,
        busy: bool,
        in_flight: AbstractSet[Key],
        changes: Callable[[Iterable[Name]], list[Mutation]],
        words: Callable[[int], str],
    ) -> Decision | None:
        """The reports that changed, as one decision, if this is a time for them.

        ``changes`` makes them, ``words`` says how many there are; one of the objects gives its name to the decision.
        ``busy`` says that other decisions are on their way: there will be a next look when they have come to an outcome.
        """
        self.due = self._next_time(now, busy) if self.dirty else None
        if not self.dirty or self.due != now:
            return None
        self._sent = dict(self.dirty)
        self.dirty.clear()
        self.due = self._waits_since = None
        mutations = changes(sorted(self._sent))
        subject = next((mutation for mutation in mutations if mutation.key not in in_flight), None)
        if subject is None:
            self.dirty.update(self._sent if mutations else {})
            return None
        self._last = now
        return Decision(self.name, subject.key, subject.uid, self.reason, words(len(mutations)), tuple(mutations))

    def _next_time(self, now: int, busy: bool) -> int:
        """When to write: now at the earliest."""
        if self._waits_since is None:
            self._waits_since = now
        if self._last < now < self._last + _INTERVAL_MS:
            return self._last + _INTERVAL_MS
        if busy and now < self._waits_since + _INTERVAL_MS:
            return self._waits_since + _INTERVAL_MS
        return now
