"""Asking a server that may be away just now."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Generic, Protocol, TypeVar

from nats.errors import ConnectionReconnectingError
from nats.errors import Error as NatsError
from nats.js.errors import APIError, ServiceUnavailableError

T = TypeVar("T")
PAUSE_SECONDS = 0.1


class Reconnecting(Protocol):
    """Something that has to know when the connection was away."""

    def reconnected(self) -> None: ...


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """What ``ask`` returns, asked again until the server answers. It must be something that may be done twice.

    Raises what the server says against it: that there is no such thing, for instance.
    """
    while True:
        try:
            return await ask()
        except ServiceUnavailableError:  # it has just been started, and is still reading what it keeps
            pass
        except APIError:
            raise
        except (TimeoutError, NatsError, OSError):
            pass
        await asyncio.sleep(PAUSE_SECONDS)


class Interruptible(Generic[T]):
    """Work that waits for messages of a connection; it is given up when that was lost, for they will not come."""

    def __init__(self, work: Coroutine[object, object, T]) -> None:
        self._task, self._interrupted = asyncio.ensure_future(work), False

    def reconnected(self) -> None:
        """The connection was away."""
        self._interrupted = True
        self._task.cancel()

    async def result(self) -> T:
        """What the work returns; raises ConnectionReconnectingError when it was given up."""
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._interrupted:
                self._task.cancel()
                raise
            raise ConnectionReconnectingError from None
