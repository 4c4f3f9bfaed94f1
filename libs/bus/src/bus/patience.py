"""Asking a server that may be away just now."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.errors import Error as NatsError
from nats.js.errors import APIError, ServiceUnavailableError

T = TypeVar("T")
PAUSE_SECONDS = 0.1


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
