"""Where services get the time from."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A source of the time in milliseconds since the epoch."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class LoopClock:
    """The event loop's time, for loops whose time is virtual and counts from the epoch."""

    def now(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)
