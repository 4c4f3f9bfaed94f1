"""Requests of one stream: those that wait go together, as do their answers; nothing waits for more to come."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

from tidegate.api.v1 import api_pb2
from tidegate.client import requests

MOST_TOGETHER = 128
"""Requests in one message."""


def stream_message(request: api_pb2.ApplyRequest) -> api_pb2.ApplyStreamRequest:
    """One request of a stream; its answer may come together with others."""
    return api_pb2.ApplyStreamRequest(apply=request, answer_together=True)


def stream_answers(answer: api_pb2.ApplyStreamResponse) -> list[api_pb2.ApplyResponse]:
    """The answers that came together, in the order of their requests."""
    return [answer.applied, *answer.more]


async def gathered(apply: AsyncIterable[api_pb2.ApplyRequest]) -> AsyncIterator[api_pb2.ApplyStreamRequest]:
    """The requests in their order, as many in a message as are there by then.

    Raises what ``apply`` raises, once all that came before is sent.
    """
    waiting = _Waiting()
    taking = asyncio.ensure_future(waiting.take(apply))
    try:
        while (message := await waiting.message()) is not None:
            yield message
        await taking
    finally:
        taking.cancel()


class _Waiting:
    """Requests that were not sent yet, oldest first; None is their end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[api_pb2.ApplyRequest | None] = asyncio.Queue(MOST_TOGETHER)
        self._next: api_pb2.ApplyRequest | None = None
        self._ended = False

    async def take(self, apply: AsyncIterable[api_pb2.ApplyRequest]) -> None:
        """Let requests wait, MOST_TOGETHER of them at most."""
        try:
            async for request in apply:
                await self._queue.put(request)
        except Exception:
            await self._queue.put(None)
            raise
        await self._queue.put(None)

    async def message(self) -> api_pb2.ApplyStreamRequest | None:
        """All that wait, as far as a message holds them; waits for one at least. None at the end."""
        first = self._next or (None if self._ended else await self._queue.get())
        if first is None:
            return None
        message, size, self._next = stream_message(first), first.ByteSize(), None
        while not self._queue.empty() and not self._ended and self._next is None:
            following = self._queue.get_nowait()
            size += following.ByteSize() if following else 0
            if following is None:
                self._ended = True
            elif size <= requests.MOST_BYTES:
                message.more.append(following)
            else:
                self._next = following
        return message
