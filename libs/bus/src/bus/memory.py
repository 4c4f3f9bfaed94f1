"""The bus in memory: deterministic, under whatever clock the event loop has. For virtual time and for tests."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from bus.ports import Entry, Handler, NoResponder, Parked, Ping, RequestFailed, StaleWriter

SNAPSHOTS_KEPT = 5


class MemoryLog:
    """A log as a list. Sequences start at 1 and go on after a trim."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: list[Entry] = []
        self._trimmed = 0
        self._ids: dict[str, int] = {}
        self._topics: dict[str, Entry] = {}
        self._snapshots: dict[int, bytes] = {}
        self._waiting: list[asyncio.Future[None]] = []

    async def append(
        self,
        payload: bytes,
        *,
        expected: int,
        message_id: str,
        headers: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> int:
        if message_id in self._ids:
            return self._ids[message_id]
        last = self._trimmed + len(self._entries)
        if expected != last:
            raise StaleWriter(self.name, expected, last)
        now_ms = round(asyncio.get_running_loop().time() * 1000)
        entry = Entry(last + 1, payload, dict(headers or {}), now_ms)
        self._entries.append(entry)
        self._ids[message_id] = entry.sequence
        if topic:
            self._topics[topic] = entry
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        return entry.sequence

    async def last(self) -> int:
        return self._trimmed + len(self._entries)

    async def first(self) -> int:
        return self._trimmed + 1

    async def last_of(self, topic: str) -> Entry | None:
        return self._topics.get(topic)

    async def read(self, after: int) -> AsyncGenerator[list[Entry], None]:
        position = after
        while True:
            batch = self.entries(position)
            if batch:
                position = batch[-1].sequence
                yield batch
                continue
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def start_from(self, sequence: int, content: bytes) -> None:
        """Make this empty log one that goes on behind ``sequence``, with a snapshot there."""
        self._trimmed, self._snapshots[sequence] = sequence, content

    def refill(self, messages: Iterable[tuple[bytes, str]]) -> None:
        """Put messages with their topics into this empty log, numbered from 1."""
        for payload, topic in messages:
            entry = Entry(len(self._entries) + 1, payload, {})
            self._entries.append(entry)
            if topic:
                self._topics[topic] = entry

    def entries(self, after: int) -> list[Entry]:
        """What is stored behind sequence ``after`` just now."""
        return self._entries[max(0, after - self._trimmed) :]

    async def put_snapshot(self, sequence: int, content: bytes) -> None:
        self._snapshots[sequence] = content
        for old in sorted(self._snapshots)[:-SNAPSHOTS_KEPT]:
            del self._snapshots[old]

    async def snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        fitting = [sequence for sequence in self._snapshots if at_most is None or sequence <= at_most]
        return (max(fitting), self._snapshots[max(fitting)]) if fitting else None

    async def trim(self, before: int) -> None:
        drop = max(0, min(before - 1 - self._trimmed, len(self._entries)))
        del self._entries[:drop]
        self._trimmed += drop


class _Stop:
    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    async def stop(self) -> None:
        self._stop()


@dataclass(slots=True)
class MemoryLease:
    """A lease of the bus in memory; it lasts until it is released."""

    bus: "MemoryBus"
    name: str
    holder: str
    _lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        while self.bus.holders.setdefault(self.name, self.holder) != self.holder:
            event = self.bus.released.setdefault(self.name, asyncio.Event())
            await event.wait()

    def is_held(self) -> bool:
        return self.bus.holders.get(self.name) == self.holder

    async def lost(self) -> None:
        await self._lost.wait()

    async def release(self) -> None:
        if self.bus.holders.get(self.name) == self.holder:
            del self.bus.holders[self.name]
            self.bus.released.pop(self.name, asyncio.Event()).set()
        self._lost.set()


class MemoryBus:
    """All of a bus in one process. Several services share one instance."""

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}
        self._handlers: dict[str, Handler] = {}
        self._listeners: dict[str, list[Callable[[bytes], None]]] = {}
        self._values: dict[str, bytes] = {}
        self._value_changed: dict[str, asyncio.Event] = {}
        self.aside: list[Parked] = []
        """All that was parked, in that order."""
        self.holders: dict[str, str] = {}
        self.released: dict[str, asyncio.Event] = {}

    def log(self, name: str) -> MemoryLog:
        return self._logs.setdefault(name, MemoryLog(name))

    async def request(self, subject: str, payload: bytes, *, timeout: float = 5.0) -> bytes:
        handler = self._handlers.get(subject) or next(
            (found for pattern, found in self._handlers.items() if "*" in pattern and _matches(pattern, subject)), None
        )
        if handler is None:
            raise NoResponder(f"nobody answers on {subject}")
        try:
            return await asyncio.wait_for(_answer(handler, payload), timeout)
        except TimeoutError:
            raise RequestFailed(f"no answer on {subject} within {timeout:g} s") from None
        except Exception as error:
            raise RequestFailed(f"{subject}: {error}") from error

    async def serve(self, subject: str, handler: Handler) -> _Stop:
        self._handlers[subject] = handler

        def stop() -> None:
            if self._handlers.get(subject) is handler:
                del self._handlers[subject]

        return _Stop(stop)

    async def set_value(self, subject: str, payload: bytes) -> None:
        if payload:
            self._values[subject] = payload
        else:
            self._values.pop(subject, None)
        self._value_changed.pop(subject, asyncio.Event()).set()

    async def values(self, subject: str) -> AsyncIterator[bytes]:
        seen: bytes | None = None
        while True:
            value = self._values.get(subject)
            if value is not None and value is not seen:
                seen = value
                yield value
                continue
            await self._value_changed.setdefault(subject, asyncio.Event()).wait()

    async def publish(self, subject: str, payload: bytes) -> None:
        for pattern, handlers in self._listeners.items():
            if _matches(pattern, subject):
                for handler in list(handlers):
                    handler(payload)

    async def listen(self, subject: str, handler: Callable[[bytes], None]) -> _Stop:
        handlers = self._listeners.setdefault(subject, [])
        handlers.append(handler)
        return _Stop(lambda: handlers.remove(handler))

    async def lease(self, name: str, holder: str, ttl_seconds: float = 5.0) -> MemoryLease:
        return MemoryLease(self, name, holder)

    async def park(self, parked: Parked) -> None:
        self.aside.append(parked)

    async def parked(self, limit: int = 100) -> list[Parked]:
        return self.aside[-limit:]

    def ping(self) -> Ping:
        return Ping(True, "in memory")

    async def close(self) -> None:
        self._handlers.clear()
        self._listeners.clear()


async def _answer(handler: Handler, payload: bytes) -> bytes:
    # Called here and not before: a task that is cancelled before it begins would leave an answer that nobody awaits.
    return await handler(payload)


def _matches(pattern: str, subject: str) -> bool:
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        return len(given) >= len(wanted) and all(_token(w, g) for w, g in zip(wanted[:-1], given, strict=False))
    return len(wanted) == len(given) and all(_token(w, g) for w, g in zip(wanted, given, strict=True))


def _token(wanted: str, given: str) -> bool:
    return wanted in ("*", given)
