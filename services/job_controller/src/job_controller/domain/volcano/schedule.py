"""Times of a cron expression in a time zone, in milliseconds since the epoch."""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from kube import rfc3339

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class ScheduleError(ValueError):
    """No cron expression, or no time zone."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression of five fields or a macro such as ``@daily``; without a ``zone`` it is meant in UTC."""

    expression: str
    zone: str = ""

    def next_after(self, at: int) -> int | None:
        """The first time after ``at``; None when there is none in the coming decades. Raises ScheduleError."""
        return self._first(at, reverse=False)

    def last_until(self, at: int) -> int | None:
        """The last time up to and including ``at``. Raises ScheduleError."""
        return self._first(at + 1000, reverse=True)

    def written(self, at: int) -> str:
        """``at`` as RFC 3339 in the schedule's own time zone."""
        return datetime.fromtimestamp(at // 1000, ZoneInfo(self.zone)).isoformat() if self.zone else rfc3339(at)

    def _first(self, at: int, *, reverse: bool) -> int | None:
        try:
            zone = ZoneInfo(self.zone) if self.zone else UTC
            moment = datetime.fromtimestamp(at // 1000, zone)
            found = next(CronSim(MACROS.get(self.expression, self.expression), moment, reverse=reverse), None)
        except (CronSimError, ZoneInfoNotFoundError, ValueError) as error:
            raise ScheduleError(f"schedule {self.expression!r}, time zone {self.zone!r}: {error}") from None
        return None if found is None else int(found.timestamp()) * 1000
