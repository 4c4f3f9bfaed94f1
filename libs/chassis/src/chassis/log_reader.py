"""Reads logs in the background into one inbox, so that a service takes all that has come together at once."""

import asyncio
from collections import deque

from bus import Entry, Log


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


async def follow(inbox: Inbox, source: str, log: Log, after: int) -> None:
    """Read ``log`` behind sequence ``after`` into ``inbox`` under the name ``source``, for ever."""
    async for entries in log.read(after):
        inbox.put(source, entries)
