"""Reads logs in the background into one inbox, so that a service takes all that has come together at once."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import aclosing

from bus import Entry, Log
from chassis.endings import end


class Inbox:
    """What has come from several logs, in the order of arrival, and a wake-up call for whoever takes it."""

    def __init__(self) -> None:
        self._entries: deque[tuple[str, Entry]] = deque()
        self._wake = asyncio.Event()

    def put(self, source: str, entries: list[Entry]) -> None:
        self._entries.extend((source, entry) for entry in entries)
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    async def wait(self) -> None:
        """Return when something came or wake() was called since the last take()."""
        await self._wake.wait()

    def take(self) -> list[tuple[str, Entry]]:
        """All that is there, perhaps nothing."""
        self._wake.clear()
        taken = list(self._entries)
        self._entries.clear()
        return taken


async def between(log: Log, after: int, last: int) -> list[Entry]:
    """The entries behind ``after`` up to ``last`` that are kept."""
    found: list[Entry] = []
    position = max(after, await log.first() - 1)
    if position >= last:
        return found
    async with aclosing(log.read(position)) as reader:
        async for entries in reader:
            found += [entry for entry in entries if entry.sequence <= last]
            if entries[-1].sequence >= last:
                break
    return found


class Readers:
    """What goes on beside the work of ``service``: logs are read into ``inbox``; what fails there fails the service."""

    def __init__(self, service: str, inbox: Inbox) -> None:
        self._service, self._inbox = service, inbox
        self._tasks: list[asyncio.Task[object]] = []

    def follow(self, source: str, log: Log, after: int) -> None:
        """Read ``log`` behind sequence ``after`` into the inbox under the name ``source``, for ever."""

        async def read() -> None:
            async for entries in log.read(after):
                self._inbox.put(source, entries)

        self.beside(read(), f"reads {source}").add_done_callback(lambda _: self._inbox.wake())

    def beside(self, work: Coroutine[object, object, object], doing: str) -> asyncio.Task[object]:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work, name=f"{self._service} {doing}")
        self._tasks.append(task)
        return task

    def check(self) -> None:
        """Raise what one of them raised; forget those that are done."""
        for task in self._tasks:
            if task.done():
                task.result()
        self._tasks = [task for task in self._tasks if not task.done()]

    async def end(self) -> None:
        """Stop all of it."""
        await end(*self._tasks)
