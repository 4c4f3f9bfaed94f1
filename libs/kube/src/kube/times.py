"""Time as integers: milliseconds since the epoch in decisions, RFC 3339 in manifests, durations as Kubernetes writes them."""

import re
from datetime import UTC, datetime

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DURATION = re.compile(r"(\d+)(?:\.(\d{1,3}))?(ms|s|m|h)")


def rfc3339(now_ms: int) -> str:
    """``now_ms`` as Kubernetes prints times, to the second, in UTC."""
    return datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(now_ms: int) -> str:
    """``now_ms`` as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{now_ms % 1000:03d}000Z"


def parse_time(text: str) -> int:
    """An RFC 3339 time as milliseconds since the epoch; raises ValueError when it is none."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; write it as 2026-01-31T12:00:00Z")
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def parse_duration(text: str) -> int:
    """A duration such as ``500ms``, ``30s``, ``1h30m`` as milliseconds; raises ValueError when it is none."""
    total, position = 0, 0
    for match in _DURATION.finditer(text):
        if match.start() != position:
            break
        whole, fraction, unit = match.groups()
        total += int(whole) * _UNITS_MS[unit] + int((fraction or "0").ljust(3, "0")) * _UNITS_MS[unit] // 1000
        position = match.end()
    if position != len(text) or not text:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 30s or 1h30m")
    return total
