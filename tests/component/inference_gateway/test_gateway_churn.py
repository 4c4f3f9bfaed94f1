"""Replicas come and go many times a minute under a steady load of POST on kept connections: none is lost, none is done twice."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from aiohttp import web
from tests.bench.serving.client import Answer, Client

PAUSE_SECONDS = 0.5
"""From the fact that a replica is to go to the end of its server, which ends at once, whatever it is at."""
CHURN_SECONDS, RATE = 20.0, 80.0


class Churn:
    """Changes the number of replicas of one pool, again and again; those that go are ended as by a signal that nobody handles."""

    def __init__(self, rig: Any, pool: str, seed: int) -> None:
        self._rig, self._pool, self._chance = rig, pool, Random(seed)
        self._there: list[Any] = []
        self._going: list[asyncio.Task[None]] = []
        self.came = 0

    async def run(self, seconds: float) -> None:
        """Now one, now three, now none; at the end there is one."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self.resize(self._chance.choice((0, 1, 1, 2, 3)))
            await asyncio.sleep(self._chance.uniform(0.2, 0.8))
        await self.resize(1)
        await asyncio.gather(*self._going)

    async def resize(self, count: int) -> None:
        while len(self._there) < count:
            self._there.append(await self._rig.replica(self._pool, answer=_brief))
            self.came += 1
        while len(self._there) > count:
            server = self._there.pop(self._chance.randrange(len(self._there)))
            await self._rig.deleted(server, self._pool)
            self._going.append(asyncio.create_task(self._end(server)))

    async def _end(self, server: Any) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await server.kill()
        await self._rig.gone(server)


async def _brief(request: web.Request) -> web.Response:
    await request.read()
    await asyncio.sleep(0.02)
    return web.json_response({})


def _times(over: asyncio.Event) -> Iterator[float]:
    return itertools.takewhile(lambda _: not over.is_set(), (number / RATE for number in itertools.count()))


async def test_no_request_is_lost_while_replicas_come_and_go(rig: Any) -> None:
    """From three to none and back, the way up and the way down, at any moment of a request."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    churn = Churn(rig, "iris-predictor-00001", seed=1)
    await churn.resize(1)
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    over, client = asyncio.Event(), Client(f"127.0.0.1:{rig.port}", "iris.team", "/v1/models/m:predict", b"{}")
    asking = asyncio.create_task(client.play(_times(over), time.monotonic()))
    await churn.run(CHURN_SECONDS)
    over.set()
    answers: list[Answer] = await asking
    client.close()
    assert [one for one in answers if one.status != 200] == []
    assert len(answers) > 0.5 * CHURN_SECONDS * RATE and churn.came > 10
    assert sum(server.requests.total() for server in rig.servers) == len(answers)


async def test_a_kept_connection_is_given_up_before_the_server_gives_it_up(rig: Any) -> None:
    """Who sends a request while the other end hangs up never learns whether it was read."""
    connections: list[asyncio.BaseTransport] = []

    async def noted(request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        if not connections or connections[-1] is not transport:
            connections.append(transport)
        return web.json_response({})

    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.replica("iris-predictor-00001", answer=noted)
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    for _ in range(3):
        assert (await rig.ask("iris.team"))[0] == 200
    assert len(connections) == 1, "one connection is kept for requests that follow at once"
    await rig.eventually(lambda: _is_closed(connections[0]), 2.0)


async def _is_closed(transport: asyncio.BaseTransport) -> bool:
    return transport.is_closing()


async def test_a_request_outlasts_a_replica_that_is_gone_before_anybody_is_told(rig: Any) -> None:
    """Nobody listens any more where the only replica was; some seconds later that becomes known, and then there is another one."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    first = await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.routed("iris.team")
    await first.kill()
    asked = [asyncio.create_task(rig.ask("iris.team", data=b"x" * size)) for size in (2, 2, 3_000_000)]
    await asyncio.sleep(4)
    assert not [one.result() for one in asked if one.done()]
    await rig.gone(first)
    await rig.until_figure("held_requests", 3)
    await rig.replica("iris-predictor-00001")
    assert [status for status, _ in await asyncio.gather(*asked)] == [200] * 3
