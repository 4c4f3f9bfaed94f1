"""When reports for people may be written: when nothing else goes on, or once a second while things never come to rest."""

from dataclasses import dataclass

_INTERVAL_MS = 1000


@dataclass(slots=True)
class ReportTimes:
    """At one and the same instant a report is brought up to date at once, as time that stands still cannot heal it."""

    last: int = -_INTERVAL_MS
    waits_since: int | None = None

    def next_time(self, now: int, busy: bool) -> int:
        """When to write what is old: now at the earliest. ``busy`` says that other decisions are on their way."""
        if self.waits_since is None:
            self.waits_since = now
        if self.last < now < self.last + _INTERVAL_MS:
            return self.last + _INTERVAL_MS
        if busy and now < self.waits_since + _INTERVAL_MS:
            return self.waits_since + _INTERVAL_MS
        return now

    def written(self, now: int) -> None:
        """A report was written."""
        self.last, self.waits_since = now, None
