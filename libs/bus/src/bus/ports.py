"""What a bus is. Services see these types only; `bus.nats` and `bus.memory` provide them."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Handler = Callable[[bytes], Awaitable[bytes]]


class BusError(Exception):
    """The bus cannot do it; the text says what and where."""


class StaleWriter(BusError):
    """The log has grown since the writer last looked: somebody else writes to it. ``last`` is its last sequence."""

    def __init__(self, log: str, expected: int, last: int) -> None:
        super().__init__(f"log {log}: expected {expected} as its last sequence, it is {last}")
        self.last = last


class LogLost(BusError):
    """What was read of a log is gone: its server lost its end, or all of it. Whoever read it has to begin anew."""

    def __init__(self, log: str, read: int, last: int) -> None:
        super().__init__(f"log {log}: it was read to {read}, and ends at {last} now")


class NoResponder(BusError):
    """Nobody serves the subject just now."""


class RequestFailed(BusError):
    """No answer came in time, or the answering side failed: whether it was done is unknown. Ask again with the same id."""


class Entry(NamedTuple):
    """One message of a log. ``sequence`` counts from 1; ``at_ms`` is when the log took it."""

    sequence: int
    payload: bytes
    headers: Mapping[str, str]
    at_ms: int = 0


class Parked(NamedTuple):
    """A message that could not be handled, kept with its error."""

    at_ms: int
    service: str
    source: str
    error: str
    payload: bytes


class Log(Protocol):
    """An ordered, durable log with one writer."""

    @property
    def name(self) -> str: ...

    async def append(
        self,
        payload: bytes,
        *,
        expected: int,
        message_id: str,
        headers: Mapping[str, str] | None = None,
        topic: str = "",
    ) -> int:
        """Add a message behind sequence ``expected``; returns its sequence once it is stored.

        A message of any size is one entry. The same ``message_id`` again (within two minutes) is taken once.
        ``topic`` marks messages of which the last can be found. Raises StaleWriter.
        """

    async def last(self) -> int:
        """The last sequence; 0 when the log is empty."""

    async def first(self) -> int:
        """The first sequence that is still kept; 1 when the log is empty."""

    async def last_of(self, topic: str) -> Entry | None:
        """The newest entry with that topic."""

    def read(self, after: int) -> AsyncGenerator[list[Entry], None]:
        """All entries behind sequence ``after``, then new ones as they come, in batches of what has come together."""

    async def put_snapshot(self, sequence: int, content: bytes) -> None:
        """Keep ``content`` as the state at ``sequence``; the newest few are kept."""

    async def snapshot(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """The newest snapshot, at or before sequence ``at_most`` if given."""

    async def trim(self, before: int) -> None:
        """Drop the entries before sequence ``before``; none where that is before the first."""


class Subscription(Protocol):
    """Something that goes on until it is stopped."""

    async def stop(self) -> None: ...


class Lease(Protocol):
    """A lease held by one process at a time. It says who should try to lead; the log's guard decides who does."""

    async def wait(self) -> None:
        """Return once the lease is held. It is renewed by itself from then on."""

    def is_held(self) -> bool:
        """Whether nobody else can hold the lease at this moment: it was renewed lately enough, or nobody has taken it."""

    async def lost(self) -> None:
        """Return when the lease is held no longer."""

    async def release(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ping:
    """How the connection stands."""

    connected: bool
    detail: str = ""


class Bus(Protocol):
    """A connection to the bus."""

    def log(self, name: str) -> Log:
        """The log of that name (`tidegate.subjects` names them)."""

    async def request(self, subject: str, payload: bytes, *, timeout: float = 5.0) -> bytes:
        """Ask whoever serves ``subject``. Raises NoResponder or RequestFailed."""

    async def serve(self, subject: str, handler: Handler) -> Subscription:
        """Answer requests on ``subject``, many at a time. An exception of the handler reaches the asker as RequestFailed."""

    async def set_value(self, subject: str, payload: bytes) -> None:
        """Make ``payload`` the last value of ``subject``, durably. An empty one deletes it."""

    def values(self, subject: str) -> AsyncIterator[bytes]:
        """The last value of ``subject``, then every later one; of several that came meanwhile only the last."""

    async def publish(self, subject: str, payload: bytes) -> None:
        """Tell whoever listens; nothing is kept."""

    async def listen(self, subject: str, handler: Callable[[bytes], None]) -> Subscription:
        """Hear what is published on ``subject`` (wildcards ``*`` and ``>`` allowed)."""

    async def lease(self, name: str, holder: str, ttl_seconds: float = 5.0) -> Lease: ...

    async def park(self, parked: Parked) -> None:
        """Keep a message that nobody can handle, with its error."""

    async def parked(self, limit: int = 100) -> list[Parked]:
        """The newest parked messages, oldest first."""

    def ping(self) -> Ping: ...

    async def close(self) -> None: ...
