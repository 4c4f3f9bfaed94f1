"""Where services get the time from."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """A source of the time in milliseconds since the epoch."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


def _wall() -> int:
    return time.time_ns() // 1_000_000


def _ticks() -> int:
    """Milliseconds since the machine was started, sleep included: it never jumps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


CATCHING_UP = 10
"""One part in so many of the time that passes goes into catching up with the machine's time."""


class SteadyClock:
    """The machine's time as it was at the beginning, and what has passed since: it never jumps, and never goes back.

    When the machine's time is set, this one runs a tenth faster or slower until it has it again. Durations that are
    measured with it are right within a tenth, whatever is done to the machine's time.
    """

    def __init__(self, base_ms: int = 0, wall: Callable[[], int] = _wall, ticks: Callable[[], int] = _ticks) -> None:
        """``base_ms`` is the ``base`` of another such clock on this machine, to agree with it; 0 for the machine's time."""
        self._wall, self._ticks = wall, ticks
        self._set_at = ticks()
        self._base = base_ms or wall() - self._set_at

    @property
    def base(self) -> int:
        """What the clock shows less the milliseconds since the machine was started."""
        return self.now() - self._ticks()

    def now(self) -> int:
        ticks = self._ticks()
        step = (ticks - self._set_at) // CATCHING_UP
        if step:
            self._base += max(-step, min(step, self._wall() - self._base - ticks))
            self._set_at = ticks
        return self._base + ticks


class LoopClock:
    """The event loop's time, for loops whose time is virtual and counts from the epoch."""

    def now(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)
