"""Admission's own fold of the facts: what reads and watches are answered from, and what writes are checked against."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from itertools import takewhile

from bus import Bus, Entry
from chassis.fact_fold import FactFold, Folded, load
from chassis.fact_follower import FactFollower
from kube import Event, Store
from tidegate import subjects

KEPT_CHANGES = 20_000
"""How many change sets are kept in memory for watches that begin at an older revision."""

MOST_REPLAYS = 2
"""So many watches at a time have what they missed read from the log: each takes a state of its own meanwhile."""


class GoneRevision(Exception):
    """A watch asked for a revision that is no longer kept: list again, and watch from there."""


class View:
    """The state as of ``revision``, and the changes that led to it. ``told`` hears every change set that is folded."""

    def __init__(self, bus: Bus, told: Callable[[Folded], None] = lambda _: None) -> None:
        self._log, self._told = bus.log(subjects.FACTS), [told]
        self._following = FactFollower("admission", bus)
        self._changes: deque[tuple[int, list[Event]]] = deque(maxlen=KEPT_CHANGES)
        self._kept_from = 0
        """The revision behind which all changes are kept."""
        self._grown = asyncio.Event()
        self._changed_at: dict[str, int] = {}
        self._replaying = asyncio.Semaphore(MOST_REPLAYS)
        self.ready = asyncio.Event()

    @property
    def store(self) -> Store:
        return self._following.fold.store

    @property
    def revision(self) -> int:
        return self._following.fold.revision

    @property
    def positions(self) -> dict[str, int]:
        return self._following.fold.positions

    def changed_at(self, kind: str) -> int:
        """A revision since which no object of ``kind`` has changed."""
        return self._changed_at.get(kind, 0)

    def standing(self) -> FactFold:
        """How far the facts have been read, without the state itself."""
        fold = self._following.fold
        return FactFold(revision=fold.revision, at_ms=fold.at_ms, positions=dict(fold.positions))

    async def run(self) -> None:
        """Follow the log for ever."""
        await self._following.begin()
        self._kept_from = self.revision
        if self._following.has_caught_up:
            self.ready.set()
        async for entries in self._following.read():
            for entry in entries:
                await self._take(entry)
                await asyncio.sleep(0)  # Who waits for an answer does not wait for all that has come together.
            grown, self._grown = self._grown, asyncio.Event()
            grown.set()
            if self._following.has_caught_up:
                self.ready.set()

    async def _take(self, entry: Entry) -> None:
        folded = await self._following.take(entry)
        if folded is None:
            return
        self._changed_at.update(dict.fromkeys(folded.message.kinds, folded.revision))
        if len(self._changes) == self._changes.maxlen:
            self._kept_from = self._changes[0][0]
        self._changes.append((folded.revision, folded.events))
        for told in self._told:
            told(folded)

    def also(self, told: Callable[[Folded], None]) -> None:
        """Another one who hears every change set that is folded."""
        self._told.append(told)

    async def reach(self, revision: int) -> None:
        """Return once the state holds ``revision``."""
        while self.revision < revision:
            await self._grown.wait()

    async def until_changed(self, kind: str, since: int) -> None:
        """Return once an object of ``kind`` has changed after revision ``since``."""
        while self.changed_at(kind) <= since:
            await self._grown.wait()

    async def changes(self, after: int) -> AsyncIterator[tuple[int, list[Event]]]:
        """Every change set behind revision ``after``, then new ones. Raises GoneRevision."""
        position = after
        while True:
            if position < self._kept_from:
                fresh, position = await self._from_log(position)
                for revision, events in fresh:
                    yield revision, events
                continue
            fresh = self._behind(position)
            for revision, events in fresh:
                yield revision, events
                position = revision
            if not fresh:
                await self._grown.wait()

    async def _from_log(self, after: int) -> tuple[list[tuple[int, list[Event]]], int]:
        """The change sets behind ``after`` that are kept in memory no more, from a fold of its own of what the log has.

        Also the revision that they go to. Raises GoneRevision where the log does not reach back so far.
        """
        async with self._replaying:
            fold, _ = await load(self._log, after)
            if fold.revision > after or fold.revision + 1 < await self._log.first():
                raise GoneRevision(f"changes behind revision {after} are no longer kept; list again")
            found: list[tuple[int, list[Event]]] = []
            async with aclosing(self._log.read(fold.revision)) as reader:
                async for entries in reader:
                    for entry in entries:
                        if (folded := _folded(fold, entry)) is not None and folded.revision > after:
                            found.append((folded.revision, folded.events))
                    if fold.revision >= self._kept_from:
                        break
            return found, fold.revision

    def _behind(self, revision: int) -> list[tuple[int, list[Event]]]:
        fresh = list(takewhile(lambda item: item[0] > revision, reversed(self._changes)))
        return fresh[::-1]


def _folded(fold: FactFold, entry: Entry) -> Folded | None:
    """What one entry brought; nothing if it cannot be read, which was told when it came."""
    try:
        return fold.take(entry)
    except Exception:
        return None
