"""When a CronJob is due: cron expressions in a time zone, words such as ``@daily``, and ``@every <duration>``.

Read as Kubernetes and Volcano read them (robfig/cron), but for the two nights in which clocks change: a time of day that is
skipped comes when the clock has jumped, where robfig/cron leaves it out, and one that comes twice counts once, not twice.
All times are milliseconds since the epoch.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from kube.times import parse_duration, rfc3339

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY = "@every "
MINUTE_MS = 60_000


class ScheduleError(ValueError):
    """No schedule, or no time zone."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule; without a ``zone`` it is meant in UTC. All methods raise ScheduleError where it makes no sense."""

    expression: str
    zone: str = ""

    def check(self) -> None:
        """Raise ScheduleError unless the schedule and its zone can be read."""
        self.next_after(0, 0)

    def next_after(self, since: int, now: int) -> int | None:
        """The first time after ``now``; None when there is none in the coming decades.

        ``@every`` counts from ``since``, the last time that was served or the birth of the CronJob.
        """
        if pause := self._pause():
            return since + ((now - since) // pause + 1) * pause
        return self._first(now, reverse=False)

    def due(self, since: int, now: int) -> int | None:
        """The newest time after ``since`` that has come by ``now``; None when none has. Older ones are passed over."""
        if pause := self._pause():
            return since + (now - since) // pause * pause if now - since >= pause else None
        latest = self._first(now + 1000, reverse=True)
        return latest if latest is not None and latest > since else None

    def written(self, at: int) -> str:
        """``at`` as RFC 3339 in the schedule's own time zone."""
        return datetime.fromtimestamp(at // 1000, ZoneInfo(self.zone)).isoformat() if self.zone else rfc3339(at)

    def _pause(self) -> int:
        """The pause of an ``@every`` in whole seconds, at least one; 0 for any other schedule."""
        if not self.expression.startswith(EVERY):
            return 0
        try:
            return max(1, parse_duration(self.expression.removeprefix(EVERY).strip()) // 1000) * 1000
        except ValueError as error:
            raise self._error(error) from None

    def _first(self, at: int, *, reverse: bool) -> int | None:
        expression = WORDS.get(self.expression, self.expression).replace("?", "*")
        try:
            zone = ZoneInfo(self.zone) if self.zone else UTC
            found = next(CronSim(expression, datetime.fromtimestamp(at // 1000, zone), reverse=reverse), None)
        except (CronSimError, ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise self._error(error) from None
        return None if found is None else int(found.timestamp()) * 1000

    def _error(self, error: Exception) -> ScheduleError:
        return ScheduleError(f"schedule {self.expression!r}, time zone {self.zone!r}: {error}")


def run_name(cron: str, due: int) -> str:
    """What the job of ``due`` is called: the minutes since the epoch, with the seconds where the time has some."""
    seconds = due % MINUTE_MS // 1000
    return f"{cron}-{due // MINUTE_MS}{seconds:02d}" if seconds else f"{cron}-{due // MINUTE_MS}"
