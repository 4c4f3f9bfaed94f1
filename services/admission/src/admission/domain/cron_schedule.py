"""The syntax of cron schedules: five fields, or a word such as @hourly."""

import re
from collections.abc import Iterable

from admission.domain.errors import FieldError
from kube import parse_duration
from kube.cron import EVERY, WORDS, Schedule, ScheduleError

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
# Field → its lowest and highest number and the names that stand for numbers from the lowest on.
FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_TIME_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*")


def check_schedule(path: str, text: str) -> Iterable[FieldError]:
    """``text`` is a schedule, and names no time zone in itself."""
    if "TZ" in text:
        yield FieldError(path, text, "must not name a time zone; use spec.timeZone for it")
        return
    if text in WORDS:
        return
    if text.startswith(EVERY):
        try:
            if not parse_duration(text.removeprefix(EVERY).strip()):
                yield FieldError(path, text, "must have a pause of at least a second, as @every 5m")
        except ValueError as error:
            yield FieldError(path, text, f"{error}, as in @every 1h30m")
        return
    if text.startswith("@"):
        yield FieldError(path, text, f"must be one of {', '.join(WORDS)}, or @every and a duration, as @every 1h30m")
        return
    parts = text.split()
    if len(parts) != len(FIELDS):
        yield FieldError(path, text, f"must have {len(FIELDS)} fields (minute hour day month weekday) or be as @hourly")
        return
    for part, (name, low, high, words) in zip(parts, FIELDS, strict=True):
        if not all(_is_item(item, low, high, words) for item in part.split(",")):
            yield FieldError(
                path, text, f"the {name} {part!r} must be *, numbers from {low} to {high}, or a range or step"
            )
            return
    try:
        Schedule(text).check()
    except ScheduleError:
        yield FieldError(path, text, "never comes: no month that it names has such a day")


def check_time_zone(path: str, name: str | None) -> Iterable[FieldError]:
    """The name of a zone, as in the time zone database."""
    if name is None:
        return
    if name == "Local" or not _TIME_ZONE.fullmatch(name):
        yield FieldError(path, name, "must be the name of a time zone such as Europe/Rome or UTC")
        return
    try:
        Schedule("@daily", name).check()
    except ScheduleError:
        yield FieldError(path, name, "is no time zone that is known here; write it as Europe/Rome or UTC")


def _is_item(text: str, low: int, high: int, words: list[str]) -> bool:
    body, slash, step = text.partition("/")
    if slash and not (step.isdigit() and int(step) > 0):
        return False
    if body in ("*", "?"):
        return True
    numbers = [_number(word, low, words) for word in body.split("-")]
    if len(numbers) > 2 or any(number is None or not low <= number <= high for number in numbers):
        return False
    first, last = numbers[0], numbers[-1]
    return first is not None and last is not None and first <= last


def _number(word: str, low: int, words: list[str]) -> int | None:
    if word.lower() in words:
        return words.index(word.lower()) + low
    return int(word) if word.isdigit() and word.isascii() else None
