"""An event loop whose time is virtual: it jumps to the next timer when everything else is done."""

import asyncio
import heapq
import math
from asyncio import events
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, where virtual time begins."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in the order in which they became due; nothing ever waits for real.

    ``time()`` counts seconds since the epoch, so that `chassis.clock.LoopClock` gives it out as it is.
    """

    def __init__(self, start_ms: int = EPOCH_MS) -> None:
        super().__init__()
        self._now_ms = start_ms
        self._clock_resolution = 0.0005

    def time(self) -> float:
        return self._now_ms / 1000

    @property
    def now_ms(self) -> int:
        return self._now_ms

    def call_at(
        self, when: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As in any loop; a timer between two milliseconds is due at the later one."""
        due = math.ceil(round(when * 1000, 2)) / 1000
        return super().call_at(due, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], T], *args: *Arguments
    ) -> asyncio.Future[T]:
        """Work for a thread is done at once: nothing happens beside the loop."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def settle(self) -> None:
        """Run until nothing is left to do at this instant."""
        previous = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while self._ready or self._is_due():  # type: ignore[attr-defined]
                self._run_once()  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(previous)

    def advance(self, duration_ms: int) -> None:
        """Move the time on, firing every timer on the way at its own instant, and settle at each."""
        end = self._now_ms + duration_ms
        self.settle()
        while (due := self._next_due()) is not None and due <= end:
            self._now_ms = max(self._now_ms, due)
            self.settle()
        self._now_ms = end
        self.settle()

    def _next_due(self) -> int | None:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count: int = max(0, self._timer_cancelled_count - 1)
        return round(scheduled[0]._when * 1000) if scheduled else None

    def _is_due(self) -> bool:
        due = self._next_due()
        return due is not None and due <= self._now_ms
