"""Instances are gathered into batches, and each request gets the predictions of its own."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_agent.batches import Answer, Batches


class Server:
    """Doubles what it is asked; ``answers`` are said instead, one after the other."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, list[Any]]]()

    async def __call__(self, path: str, body: bytes) -> Answer:
        instances = json.loads(body)["instances"]
        self.asked.append((path, instances))
        await asyncio.sleep(0)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return 200, json.dumps({"predictions": [2 * one for one in instances]}).encode()


def told(answer: Answer) -> Any:
    return answer[0], json.loads(answer[1])["predictions"]


async def test_a_batch_goes_when_it_is_large_enough() -> None:
    server = Server()
    batches = Batches(server, 4, 3600)
    answers = await asyncio.gather(batches.ask("/m:predict", [1]), batches.ask("/m:predict", [2, 3, 4]))
    assert [told(one) for one in answers] == [(200, [2]), (200, [4, 6, 8])]
    assert server.asked == [("/m:predict", [1, 2, 3, 4])]
    assert len({json.loads(body)["batchId"] for _, body in answers}) == 1


async def test_a_batch_goes_when_its_first_has_waited_for_long_enough() -> None:
    server = Server()
    batches = Batches(server, 100, 0.01)
    assert told(await batches.ask("/m:predict", [1])) == (200, [2])


async def test_requests_of_different_models_are_never_in_one_batch() -> None:
    server = Server()
    batches = Batches(server, 2, 3600)
    await asyncio.gather(*(batches.ask(path, [number]) for number in (1, 2) for path in ("/a:predict", "/b:predict")))
    assert sorted(server.asked) == [("/a:predict", [1, 2]), ("/b:predict", [1, 2])]


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ((500, b'{"error": "no"}'), 500, "no"),
        ((200, b'{"predictions": [1]}'), 502, "1 predictions came for 2 instances"),
        ((200, b"<html>"), 502, "is no prediction"),
        ((200, b"{}"), 502, "is no prediction"),
        (ConnectionError("gone"), 502, "gone"),
    ],
)
async def test_all_of_a_batch_are_told_when_it_fails(answer: Any, status: int, said: str) -> None:
    batches = Batches(Server(answer), 2, 3600)
    answers = await asyncio.gather(batches.ask("/m:predict", [1]), batches.ask("/m:predict", [2]))
    assert [code for code, _ in answers] == [status, status]
    assert all(said in body.decode() for _, body in answers)
    assert told(await asyncio.wait_for(_two(batches), 10)) == (200, [2, 4])


async def _two(batches: Batches) -> Answer:
    return await batches.ask("/m:predict", [1, 2])


async def test_who_goes_away_takes_nothing_from_the_others() -> None:
    server = Server()
    batches = Batches(server, 3, 3600)
    gone = asyncio.create_task(batches.ask("/m:predict", [1]))
    await asyncio.sleep(0)
    gone.cancel()
    assert told(await batches.ask("/m:predict", [2, 3])) == (200, [4, 6])


async def test_what_was_gathered_is_answered_before_the_end() -> None:
    batches = Batches(Server(), 100, 3600)
    waiting = asyncio.create_task(batches.ask("/m:predict", [1]))
    await asyncio.sleep(0)
    await batches.drain()
    assert told(await waiting) == (200, [2])


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=5), min_size=1, max_size=20), st.integers(1, 10))
def test_each_gets_its_own_predictions_in_order_whatever_comes_together(asked: list[list[int]], largest: int) -> None:
    async def run(made: Callable[[Any], Batches]) -> list[Answer]:
        server = Server()
        batches = made(server)
        waiting = [asyncio.create_task(batches.ask("/m:predict", one)) for one in asked]
        await asyncio.sleep(0)
        await batches.drain()
        answers = await asyncio.gather(*waiting)
        sent = [one for _, instances in server.asked for one in instances]
        assert sorted(sent) == sorted(one for instances in asked for one in instances), "asked once each"
        return list(answers)

    answers = asyncio.run(run(lambda server: Batches(server, largest, 3600)))
    assert [told(one) for one in answers] == [(200, [2 * one for one in instances]) for instances in asked]
