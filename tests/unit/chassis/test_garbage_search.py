"""The search for cyclic garbage: short steps while there is work, everything when there is none."""

import asyncio
import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from chassis import garbage
from chassis.virtual_time import VirtualLoop


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The search as it was before."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    gc.collect()
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class Cycle:
    def __init__(self) -> None:
        self.myself = self


def cycle() -> "tuple[Cycle, weakref.ref[Cycle]]":
    made = Cycle()
    return made, weakref.ref(made)


def collections() -> list[int]:
    return [int(generation["collections"]) for generation in gc.get_stats()]


def test_what_is_new_is_looked_through_once_and_nothing_a_second_time() -> None:
    garbage.search_in_steps()
    before, frozen = collections(), gc.get_freeze_count()
    state = [[number] for number in range(20 * garbage.STEP)]
    young, older, oldest = collections()
    assert young - before[0] >= 19 and [older, oldest] == before[1:]
    assert gc.get_freeze_count() - frozen > len(state) - 2 * garbage.STEP


def test_a_cycle_that_has_ended_is_found_in_the_next_step() -> None:
    garbage.search_in_steps()
    made, seen = cycle()
    del made
    state = [[number] for number in range(2 * garbage.STEP)]
    assert seen() is None and state


def test_a_cycle_that_ended_later_is_found_when_the_process_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage.search_in_steps()
    made, seen = cycle()
    state = [[number] for number in range(2 * garbage.STEP)]
    del made
    monkeypatch.setattr(garbage, "MANY_STEPS", 2)
    loop, used = VirtualLoop(), iter([0.0, garbage.QUIET_SECONDS / 2])
    monkeypatch.setattr(garbage.time, "process_time", lambda: next(used, garbage.QUIET_SECONDS / 2))
    task = loop.create_task(garbage.search_when_quiet())
    loop.settle()
    state += [[number] for number in range(3 * garbage.STEP)]
    loop.advance(31_000)
    assert seen() is not None, "the process was busy"
    loop.advance(30_000)
    assert seen() is None
    task.cancel()
    loop.settle()
    loop.close()
    asyncio.set_event_loop(None)


def test_a_process_that_is_never_quiet_looks_through_everything_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage.search_in_steps()
    made, seen = cycle()
    state = [[number] for number in range(2 * garbage.STEP)]
    del made
    monkeypatch.setattr(garbage, "MANY_STEPS", 2)
    busy = itertools.count(0.0, garbage.QUIET_SECONDS)
    monkeypatch.setattr(garbage.time, "process_time", lambda: next(busy))
    loop = VirtualLoop()
    task = loop.create_task(garbage.search_when_quiet())
    loop.settle()
    state += [[number] for number in range(3 * garbage.STEP)]
    loop.advance(int(garbage.OVERDUE_SECONDS - garbage.QUIET_SECONDS) * 1000)
    assert seen() is not None
    loop.advance(int(2 * garbage.QUIET_SECONDS) * 1000)
    assert seen() is None
    task.cancel()
    loop.settle()
    loop.close()
    asyncio.set_event_loop(None)
