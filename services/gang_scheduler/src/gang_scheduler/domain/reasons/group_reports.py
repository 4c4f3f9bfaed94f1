"""Statuses of groups that follow their pods: who decides goes before who reports.

A status may be a moment old: it is written when nothing else is decided or on its way, or OLDEST_MS later while things never
come to rest. What many pods of a group report one after the other is then told at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gang_scheduler.domain.terms.gang_terms import GroupId

OLDEST_MS = 500


@dataclass(slots=True)
class GroupReports:
    """The groups whose status may be old, in the order in which they changed."""

    _old: dict[GroupId, None] = field(default_factory=dict)
    _since: int | None = None

    def note(self, groups: Iterable[GroupId], now: int) -> None:
        """The pods of these changed."""
        self._old.update(dict.fromkeys(groups))
        if self._old and self._since is None:
            self._since = now

    def drop(self, groups: Iterable[GroupId]) -> None:
        """These were told of otherwise."""
        if self._old:
            for group in groups:
                self._old.pop(group, None)

    def take(self, now: int, *, busy: bool) -> list[GroupId]:
        """The groups to look at now; none while there is something else to do and time to wait."""
        if not self._old or (busy and now < (self._since or now) + OLDEST_MS):
            return []
        taken = list(self._old)
        self._old.clear()
        self._since = None
        return taken

    def deadline(self) -> int | None:
        """When they have to be told, whatever else goes on."""
        return self._since + OLDEST_MS if self._old and self._since is not None else None
