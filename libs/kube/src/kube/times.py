"""Time as integers: milliseconds since the epoch in decisions, RFC 3339 in manifests, durations as Kubernetes writes them."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_SECOND = 253_402_300_799
_UNITS_NS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")


def rfc3339(now_ms: int) -> str:
    """``now_ms`` as Kubernetes prints times, to the second, in UTC; what is after the year 9999 is its last second."""
    return _second(min(now_ms // 1000, _LAST_SECOND))


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_milli(now_ms: int) -> str:
    """``now_ms`` to the millisecond, as ``kubectl logs --timestamps`` prints times."""
    return f"{_second(min(now_ms // 1000, _LAST_SECOND))[:-1]}.{now_ms % 1000:03d}Z"


def rfc3339_micro(now_ms: int) -> str:
    """``now_ms`` as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{now_ms % 1000:03d}000Z"


def parse_time(text: str) -> int:
    """An RFC 3339 time as milliseconds since the epoch; raises ValueError when it is none."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; write it as 2026-01-31T12:00:00Z")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_duration(text: str) -> int:
    """A duration such as ``500ms``, ``30s``, ``1h30m``, ``0`` as milliseconds, in Go's syntax without a sign.

    What is finer than a millisecond is dropped. Raises ValueError when it is none.
    """
    total, position = 0, 0
    for match in _DURATION.finditer(text):
        whole, fraction, unit = match.groups()
        if match.start() != position or not (whole or fraction):
            break
        digits = fraction or ""
        total += int(whole + digits) * _UNITS_NS[unit] // 10 ** len(digits)
        position = match.end()
    if text != "0" and (position != len(text) or not text):
        raise ValueError(f"{text!r} is not a duration such as 500ms, 30s or 1h30m")
    return total // 1_000_000
