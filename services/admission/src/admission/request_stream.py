"""One stream of requests: each is begun as it comes and answered in its turn; what is ready together goes together."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

from admission.answers import fill_response
from admission.applier import Result
from tidegate.api.v1 import api_pb2

MOST_UNDER_WAY = 1_024
MOST_TOGETHER = 256
"""Answers in one message."""

Results = tuple[list[Result], int]
"""What became of one request, and a revision that holds all of it."""
Begin = Callable[[api_pb2.ApplyRequest], Awaitable["asyncio.Future[Results]"]]


async def answers(
    messages: AsyncIterable[api_pb2.ApplyStreamRequest], begin: Begin
) -> AsyncIterator[api_pb2.ApplyStreamResponse]:
    """The answers in the order of the requests, many of which are under way at a time. Raises what one of them raised."""
    line = _Line(begin)
    taking = asyncio.ensure_future(line.take(messages))
    try:
        while (ready := await line.ready()) is not None:
            answer = api_pb2.ApplyStreamResponse()
            fill_response(answer.applied, *ready[0])
            for results, revision in ready[1:]:
                fill_response(answer.more.add(), results, revision)
            yield answer
        await taking
    finally:
        taking.cancel()
        line.leave()


class _Line:
    """The requests that were begun, oldest first; None is the end of the stream."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._under_way: asyncio.Queue[asyncio.Future[Results] | None] = asyncio.Queue(MOST_UNDER_WAY)
        self._next: asyncio.Future[Results] | None = None
        self._ended = False
        self._most = 1

    async def take(self, messages: AsyncIterable[api_pb2.ApplyStreamRequest]) -> None:
        """Begin all that comes."""
        try:
            async for message in messages:
                if message.answer_together:
                    self._most = MOST_TOGETHER
                await self._under_way.put(await self._begun(message.apply))
                for request in message.more:
                    await self._under_way.put(await self._begun(request))
        finally:
            await self._under_way.put(None)

    async def _begun(self, request: api_pb2.ApplyRequest) -> "asyncio.Future[Results]":
        """The request under way; what is wrong with it is said in its turn."""
        try:
            return await self._begin(request)
        except Exception as error:
            failed: asyncio.Future[Results] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed

    async def ready(self) -> list[Results] | None:
        """What became of the next requests, of one at least; None at the end."""
        first = self._next or (None if self._ended else await self._under_way.get())
        if first is None:
            return None
        self._next, found = None, [await first]
        while len(found) < self._most and not (self._ended or self._next or self._under_way.empty()):
            following = self._under_way.get_nowait()
            if following is None:
                self._ended = True
            elif following.done() and following.exception() is None:
                found.append(following.result())
            else:
                self._next = following
        return found

    def leave(self) -> None:
        """Nobody waits any more for those that are under way."""
        while not self._under_way.empty():
            waiting = self._under_way.get_nowait()
            if waiting is not None:
                waiting.cancel()
