"""A stream of requests: answered in order, together where that is wanted, and what is wrong is said in its turn."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from admission.applier import Result
from admission.request_stream import Results, answers
from kube import Key
from tidegate.api.v1 import api_pb2


class Service:
    """Requests that are under way until somebody says that they are done."""

    def __init__(self) -> None:
        self.under_way: list[asyncio.Future[Results]] = []

    async def begin(self, request: api_pb2.ApplyRequest) -> "asyncio.Future[Results]":
        if request.create_only:
            raise ValueError("not this one")
        self.under_way.append(asyncio.get_running_loop().create_future())
        return self.under_way[-1]

    def finish(self, *numbers: int) -> None:
        for number in numbers:
            self.under_way[number].set_result(([Result(Key("Pod", "default", f"p{number}"), "created")], number))


class Messages:
    """What a client sends, message by message."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[api_pb2.ApplyStreamRequest | None] = asyncio.Queue()

    def send(self, count: int = 1, *, together: bool = False, bad: bool = False) -> None:
        requests = [api_pb2.ApplyRequest(create_only=bad) for _ in range(count)]
        message = api_pb2.ApplyStreamRequest(apply=requests[0], more=requests[1:], answer_together=together)
        self._sent.put_nowait(message)

    def end(self) -> None:
        self._sent.put_nowait(None)

    async def each(self) -> AsyncIterator[api_pb2.ApplyStreamRequest]:
        while (message := await self._sent.get()) is not None:
            yield message


def names(answer: api_pb2.ApplyStreamResponse) -> list[str]:
    return [one.results[0].name.name for one in (answer.applied, *answer.more)]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_does_not_ask_for_it_gets_one_answer_a_message_in_the_order_of_the_requests() -> None:
    service, messages = Service(), Messages()
    stream = answers(messages.each(), service.begin)
    messages.send(3)
    first: asyncio.Future[Any] = asyncio.ensure_future(anext(stream))
    await settle()
    service.finish(2, 1)
    await settle()
    assert not first.done()
    service.finish(0)
    messages.end()
    assert [names(one) for one in (await first, *[one async for one in stream])] == [["p0"], ["p1"], ["p2"]]


async def test_what_is_ready_goes_together_and_waits_for_nothing_that_is_not() -> None:
    service, messages = Service(), Messages()
    stream = answers(messages.each(), service.begin)
    messages.send(3, together=True)
    messages.send(2)
    first: asyncio.Future[Any] = asyncio.ensure_future(anext(stream))
    await settle()
    service.finish(0, 1, 3)
    assert names(await first) == ["p0", "p1"]
    service.finish(2, 4)
    messages.end()
    assert [names(one) async for one in stream] == [["p2", "p3", "p4"]]


async def test_what_is_wrong_with_one_is_raised_behind_the_answers_to_those_before_it() -> None:
    service, messages = Service(), Messages()
    stream = answers(messages.each(), service.begin)
    messages.send(2, together=True)
    messages.send(bad=True)
    first: asyncio.Future[Any] = asyncio.ensure_future(anext(stream))
    await settle()
    service.finish(0, 1)
    assert names(await first) == ["p0", "p1"]
    with pytest.raises(ValueError, match="not this one"):
        await anext(stream)


async def test_who_leaves_leaves_nothing_running() -> None:
    service, messages = Service(), Messages()
    stream: Any = answers(messages.each(), service.begin)
    messages.send(3, together=True)
    first: asyncio.Future[Any] = asyncio.ensure_future(anext(stream))
    await settle()
    first.cancel()
    await settle()
    await stream.aclose()
    await settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}
