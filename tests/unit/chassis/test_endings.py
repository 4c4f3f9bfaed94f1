"""Tasks that are to end do end."""

import asyncio

from chassis.endings import end


async def test_a_task_that_overhears_the_first_cancellation_is_cancelled_again() -> None:
    heard = 0

    async def stubborn() -> None:
        nonlocal heard
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard += 1
                if heard == 2:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await end(task)
    assert task.cancelled() and heard == 2


async def test_tasks_that_have_ended_or_fail_while_they_end_are_no_trouble() -> None:
    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while ending")

    async def done() -> None:
        pass

    tasks = [asyncio.create_task(failing()), asyncio.create_task(done())]
    await asyncio.sleep(0)
    await end(*tasks)
    assert isinstance(tasks[0].exception(), ValueError) and tasks[1].result() is None
