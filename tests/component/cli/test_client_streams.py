"""The client's open stream: requests that wait go in one message, and each has an answer of its own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidegate.api.v1 import api_pb2
from tidegate.client.gathering import MOST_TOGETHER, gathered
from tidegate.client.requests import MOST_BYTES


def request(name: str, size: int = 1) -> api_pb2.ApplyRequest:
    return api_pb2.ApplyRequest(manifests=[name.encode().ljust(size)])


def names(message: api_pb2.ApplyStreamRequest) -> list[str]:
    return [one.manifests[0].decode().strip() for one in (message.apply, *message.more)]


async def sent(*requests: api_pb2.ApplyRequest) -> list[list[str]]:
    async def each() -> AsyncIterator[api_pb2.ApplyRequest]:
        for one in requests:
            yield one

    return [names(message) async for message in gathered(each())]


async def test_all_that_wait_go_together_in_their_order() -> None:
    assert await sent() == []
    assert await sent(*map(request, "abc")) == [["a", "b", "c"]]
    many = [f"r{number}" for number in range(3 * MOST_TOGETHER)]
    messages = await sent(*map(request, many))
    assert [name for message in messages for name in message] == many
    assert len(messages) < 8 and max(map(len, messages)) <= MOST_TOGETHER + 1


async def test_a_message_stays_as_small_as_servers_take() -> None:
    half = MOST_BYTES // 2 - 100
    requests = [request("a", half), request("b", half), request("c", half), request("d", 2 * MOST_BYTES), request("e")]
    assert await sent(*requests) == [["a", "b"], ["c"], ["d"], ["e"]]


async def test_nothing_waits_for_more_to_come() -> None:
    waiting: asyncio.Queue[api_pb2.ApplyRequest] = asyncio.Queue()

    async def each() -> AsyncIterator[api_pb2.ApplyRequest]:
        while True:
            yield await waiting.get()

    messages: Any = gathered(each())
    for name in "ab":
        waiting.put_nowait(request(name))
        async with asyncio.timeout(5):
            assert names(await anext(messages)) == [name]
    await messages.aclose()


async def test_what_goes_wrong_is_raised_when_all_before_it_was_sent() -> None:
    async def each() -> AsyncIterator[api_pb2.ApplyRequest]:
        yield request("a")
        raise ValueError("no more")

    messages = gathered(each())
    assert names(await anext(messages)) == ["a"]
    with pytest.raises(ValueError, match="no more"):
        await anext(messages)
