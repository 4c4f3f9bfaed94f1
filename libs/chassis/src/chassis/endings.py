"""Ending tasks for certain."""

import asyncio
from typing import Any

AGAIN_SECONDS = 1.0


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel ``tasks`` and wait until they have ended.

    Once is not enough: in Python before 3.12 a ``wait_for`` whose result comes in the same moment takes the cancellation
    for its own and returns, and the task goes on as if nothing had been said.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=AGAIN_SECONDS)
