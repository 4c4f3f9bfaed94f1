"""A loop whose time jumps."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis import LoopClock
from chassis.virtual_time import EPOCH_MS, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


delays = st.lists(st.integers(0, 100_000), max_size=12)


@given(delays, st.lists(st.integers(0, 30_000), max_size=6))
@settings(max_examples=50)
def test_every_timer_fires_at_its_own_instant_however_the_time_is_advanced(due: list[int], steps: list[int]) -> None:
    loop, fired = VirtualLoop(), list[int]()
    for delay in due:
        loop.call_later(delay / 1000, lambda: fired.append(loop.now_ms - EPOCH_MS))
    for step in [*steps, 100_000]:
        loop.advance(step)
    assert fired == sorted(due)
    assert loop.now_ms == EPOCH_MS + sum(steps) + 100_000
    loop.close()


@given(st.floats(0, 0.02))
@settings(max_examples=100)
def test_a_timer_between_two_milliseconds_fires_at_the_later_one(delay: float) -> None:
    loop, fired = VirtualLoop(), list[int]()
    loop.call_later(delay, lambda: fired.append(loop.now_ms - EPOCH_MS))
    loop.advance(25)
    assert len(fired) == 1
    assert delay * 1000 - 0.01 <= fired[0] < delay * 1000 + 1.01
    loop.close()


def test_half_a_millisecond_does_not_hold_the_loop_up(loop: VirtualLoop) -> None:
    fired: list[int] = []
    for half in (0.0005, 0.0015, 0.0025):
        loop.call_later(half, lambda: fired.append(loop.now_ms - EPOCH_MS))
    loop.settle()
    loop.advance(3)
    assert fired == [1, 2, 3]


def test_what_becomes_due_on_the_way_is_done_on_the_way(loop: VirtualLoop) -> None:
    seen: list[tuple[str, int]] = []

    async def worker(name: str, pause: float, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(pause)
            seen.append((name, loop.now_ms - EPOCH_MS))

    tasks = [loop.create_task(worker("a", 0.2, 4)), loop.create_task(worker("b", 0.3, 2))]
    loop.advance(800)
    assert [at for _, at in seen] == [200, 300, 400, 600, 600, 800]
    assert all(task.done() for task in tasks)


def test_settling_does_not_move_the_time(loop: VirtualLoop) -> None:
    task = loop.create_task(asyncio.sleep(0, "done"))
    loop.settle()
    assert task.result() == "done" and loop.now_ms == EPOCH_MS


def test_a_cancelled_timer_is_none(loop: VirtualLoop) -> None:
    fired: list[str] = []
    loop.call_later(1, fired.append, "kept")
    loop.call_later(0.5, fired.append, "cancelled").cancel()
    loop.advance(2_000)
    assert fired == ["kept"]


def test_timeouts_count_virtual_time(loop: VirtualLoop) -> None:
    async def wait() -> str:
        try:
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        except TimeoutError:
            return f"gave up after {loop.now_ms - EPOCH_MS}"
        return "never"

    task = loop.create_task(wait())
    loop.advance(59_999)
    assert not task.done()
    loop.advance(1)
    assert task.result() == "gave up after 60000"


def test_work_for_a_thread_is_done_at_once_in_this_thread(loop: VirtualLoop) -> None:
    async def work() -> tuple[int, str]:
        failed = ""
        try:
            await asyncio.to_thread(lambda: 1 // 0)
        except ZeroDivisionError as error:
            failed = str(error)
        return await asyncio.to_thread(threading.get_ident), failed

    task = loop.create_task(work())
    loop.settle()
    assert task.result() == (threading.get_ident(), "integer division or modulo by zero")


def test_the_clock_gives_out_whole_milliseconds(loop: VirtualLoop) -> None:
    async def now() -> int:
        return LoopClock().now()

    loop.advance(1_234_567)
    task = loop.create_task(now())
    loop.settle()
    assert task.result() == EPOCH_MS + 1_234_567
