"""kill -9 of each service, and of the bus, in the middle of a gang's start, of its restart and of its deletion.

Each case has several gangs at different stages of the same course when the process dies. Afterwards every gang is whole
or absent, no process is orphaned, no pod doubled, and the statuses are right. ``TIDEGATE_LONG=1`` adds many more moments.
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from tidegate_system_gangs import clean, fail_one, is_empty, is_whole, ring

from tidegate.services import SERVICES

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

PARTS = ("nats", *SERVICES)
LONG = bool(os.environ.get("TIDEGATE_LONG"))
# How long before the kill each gang sets out, in milliseconds. Undisturbed, a gang starts in about 120 and goes in about 60.
COURSES = {"start": (5, 30, 60, 110), "restart": (5, 30, 70, 140), "delete": (0, 15, 35, 65)}
SHIFTS = range(0, 80, 8) if LONG else (0,)


def moments(course: str, shift: int) -> list[int]:
    """When the gangs of a case set out, milliseconds before the kill."""
    return [moment + shift for moment in COURSES[course]]


def disturbed(system, part: str, moments: Sequence[int], actions: Sequence[Callable[[], None]]) -> None:
    """Begin each action so many milliseconds before ``part`` is killed."""
    kill_at = time.monotonic() + max(moments) / 1000 + 0.02

    def begin(action: Callable[[], None], moment: int) -> None:
        time.sleep(max(0.0, kill_at - moment / 1000 - time.monotonic()))
        action()

    with ThreadPoolExecutor(len(actions)) as threads:
        begun = [threads.submit(begin, action, moment) for action, moment in zip(actions, moments, strict=True)]
        time.sleep(max(0.0, kill_at - time.monotonic()))
        system.kill(part)
        for one in begun:
            one.result()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_starting_is_whole(system, part: str, shift: int) -> None:
    names = [f"start-{part.replace('_', '-')}-{number}" for number in range(4)]
    disturbed(system, part, moments("start", shift), [lambda name=name: system.apply(ring(name)) for name in names])
    system.finally_right(lambda: is_whole(system, names))
    clean(system, names)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_being_restarted_is_whole_again_and_was_restarted_once(system, part: str, shift: int) -> None:
    names = [f"again-{part.replace('_', '-')}-{number}" for number in range(4)]
    for name in names:
        system.apply(ring(name))
    system.finally_right(lambda: is_whole(system, names))
    victims = system.pod_processes()
    disturbed(system, part, moments("restart", shift), [lambda name=name: fail_one(system, name) for name in names])
    system.finally_right(lambda: is_whole(system, names, restarts=1))
    assert not victims.keys() & system.pod_processes().keys(), "a pod of before the restart runs on"
    clean(system, names)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_being_deleted_is_gone(system, part: str, shift: int) -> None:
    names = [f"gone-{part.replace('_', '-')}-{number}" for number in range(4)]
    for name in names:
        system.apply(ring(name))
    system.finally_right(lambda: is_whole(system, names))
    disturbed(system, part, moments("delete", shift), [lambda name=name: system.delete("job", name) for name in names])
    system.finally_right(lambda: is_empty(system))
