"""Wakes a service when something is due without anything having come."""

import asyncio
from collections.abc import Callable, Iterable

LONGEST_SLEEP_MS = 60_000
"""A deadline is looked at again after this long at most: the machine's clock may have jumped meanwhile."""


def ticks() -> int:
    """Milliseconds of a clock that never jumps: what pauses and silences are measured with."""
    return round(asyncio.get_running_loop().time() * 1000)


class Alarm:
    """One timer: ``ring`` is called when the earliest of the times it was set to last has come."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, delays_ms: Iterable[int]) -> None:
        """Ring after the shortest of these delays, LONGEST_SLEEP_MS at most; not at all if there is none."""
        self.cancel()
        if (shortest := min(delays_ms, default=None)) is not None:
            delay_ms = min(LONGEST_SLEEP_MS, max(1, shortest))
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._ring)

    def cancel(self) -> None:
        """Ring no more until it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
