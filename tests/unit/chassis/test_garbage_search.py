"""The search for cyclic garbage: short steps while there is work, everything when there is none."""

import asyncio
import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from bus import Entry
from chassis import garbage
from chassis.fact_fold import FactFold
from chassis.virtual_time import VirtualLoop
from kube import Edit, Key
from tidegate.codec.facts import FactSet, encode


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


def test_what_takes_the_place_of_something_else_is_looked_through_in_steps_too() -> None:
    garbage.search_in_steps()
    state = [[number] for number in range(20 * garbage.STEP)]
    made, seen = cycle()
    del made
    renewal, (before, *_) = garbage.Renewal(), collections()
    for number in range(len(state)):
        state[number] = [-number]
    assert collections()[0] == before and seen() is not None, "Python sees nothing new"
    renewal.count(garbage.STEP_CHANGES - 1)
    assert seen() is not None
    renewal.count(1)
    assert seen() is None and collections()[0] == before + 1


def test_samples_that_replace_each_other_are_looked_through_as_they_are_folded() -> None:
    garbage.search_in_steps()
    fold, key, (before, *_) = FactFold(), Key("MetricReading.tidegate.dev", "default", "m"), collections()
    for revision in range(1, 2 * garbage.STEP_CHANGES + 1):
        edit = Edit(key, "u", metadata={}, body={"spec": {"value": str(revision)}}, fresh=revision == 1)
        fold.take(Entry(revision, encode(FactSet(revision, (edit,))), {}))
    assert collections()[0] - before >= 2


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
