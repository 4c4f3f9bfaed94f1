"""Python's search for cyclic garbage, in steps so short that nobody waits for one.

State is large, lives long, and nearly none of it is in cycles. So what is new is looked through once, and what is still
there then is kept: it is freed when nobody refers to it, like everything. The few cycles that end later are found when the
process has nothing to do.

Python counts by how many objects there are more than at the last step. What takes the place of something else is none more, and
would be looked through who knows when, all of it at once. So whoever folds facts counts what they change, too (`Renewal`).
"""

import asyncio
import gc
import time
from typing import Any

STEP = 10_000
"""So many new objects are looked through at a time: one or two milliseconds."""
STEP_CHANGES = 500
"""So many changed objects of facts are looked through at a time: each consists of ten to fifty of Python's."""
QUIET_SECONDS, QUIET_SHARE = 30.0, 0.02
"""A process is quiet that took less than this share of a core for so long."""
MANY_STEPS = 1_000
"""After so many there may be enough cycles left over to look for them."""
MOST_OBJECTS = 2_000_000
"""To look through more would take longer than anybody may be kept waiting, quiet or not."""
OVERDUE_SECONDS = 3_600.0
"""A process that is never quiet is held up once in so long, for half a second: what leaks must not go on for ever."""
_NEVER = 1_000_000_000


def search_in_steps() -> None:
    """Look through what is new, step by step, and through nothing again."""
    gc.set_threshold(STEP, _NEVER, _NEVER)
    gc.callbacks.append(_keep)


def _keep(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 0:
        gc.freeze()


class Renewal:
    """Steps by how much was changed, however little of it has been added."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes = 0

    def count(self, changes: int) -> None:
        """So many objects were changed: look through what is new where that is enough for a step."""
        self._changes += changes
        if self._changes >= STEP_CHANGES:
            self._changes = 0
            gc.collect(0)


def search_all() -> None:
    """Look through everything, also what was kept, and keep what is there then."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def search_when_quiet() -> None:
    """For ever: look through everything after many steps, when there is nothing else to do."""
    searched, used, waited = _steps(), time.process_time(), 0.0
    while True:
        await asyncio.sleep(QUIET_SECONDS)
        before, used, waited = used, time.process_time(), waited + QUIET_SECONDS
        quiet = used - before < QUIET_SHARE * QUIET_SECONDS or waited >= OVERDUE_SECONDS
        if quiet and _steps() - searched >= MANY_STEPS and gc.get_freeze_count() < MOST_OBJECTS:
            search_all()
            searched, waited = _steps(), 0.0


def _steps() -> int:
    return int(gc.get_stats()[0]["collections"])
