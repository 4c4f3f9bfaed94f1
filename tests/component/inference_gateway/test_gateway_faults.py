"""The service or its proxy is killed under load."""

import asyncio
from typing import Any

import aiohttp
from aiohttp import web


class Load:
    """Clients that ask on and on. One that cannot connect asks again: nobody has seen its request."""

    def __init__(self, rig: Any, clients: int) -> None:
        self.statuses: list[int] = []
        self.broken = 0
        self._rig, self._over, self._number = rig, False, 0
        self._tasks = [asyncio.create_task(self._ask()) for _ in range(clients)]

    async def _ask(self) -> None:
        while not self._over:
            self._number += 1
            try:
                status, _ = await self._rig.ask("iris.team", id=f"r{self._number}")
                self.statuses.append(status)
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.01)
            except aiohttp.ClientError:
                self.broken += 1

    async def until(self, count: int) -> None:
        """Return once so many more were answered."""
        goal = len(self.statuses) + count
        while len(self.statuses) < goal:
            await asyncio.sleep(0.01)

    async def end(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)


async def test_requests_are_answered_while_the_service_is_killed(rig: Any) -> None:
    """The proxy goes on without it, and its successor takes the proxy over: no request fails, no connection breaks."""
    await rig.service("iris")
    await rig.replica("iris-predictor")
    await rig.start()
    await rig.routed("iris.team")
    load, proxy = Load(rig, 8), rig.proxy_pid
    await load.until(100)
    rig.kill()
    await load.until(100)
    await rig.start()
    await load.until(100)
    newer = await rig.replica("iris-predictor")

    async def shared() -> bool:
        return newer.requests.total() > 0

    await rig.eventually(shared)
    await load.end()
    assert set(load.statuses) == {200} and not load.broken
    assert rig.proxy_pid == proxy


async def test_requests_that_wait_go_on_waiting_while_the_service_is_killed(rig: Any) -> None:
    """The proxy has them, and asks the successor about them."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    waiting = [asyncio.create_task(rig.ask("iris.team", id=f"r{number}")) for number in range(30)]
    await rig.until_figure("held_requests", 30)
    rig.kill()
    await rig.start()
    server = await rig.replica("iris-predictor-00001")
    assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * 30
    assert server.requests == {f"r{number}": 1 for number in range(30)}


async def test_a_killed_proxy_is_started_anew_and_no_request_is_done_twice(rig: Any) -> None:
    """What was under way breaks, for it may have been done; all that comes afterwards is answered."""
    await rig.service("iris")
    server = await rig.replica("iris-predictor")
    await rig.start()
    await rig.routed("iris.team")
    load, proxy = Load(rig, 8), rig.proxy_pid
    await load.until(100)
    rig.kill_proxy()
    await load.until(100)
    await load.end()
    assert set(load.statuses) == {200} and load.broken <= 16
    assert max(server.requests[f"r{number}"] for number in range(1, len(load.statuses))) == 1
    assert rig.proxy_pid != proxy


async def test_the_proxy_ends_with_the_service_and_lets_answers_end_first(rig: Any) -> None:
    """Who is told to stop drains."""

    async def slow(request: Any) -> Any:
        await asyncio.sleep(1.0)
        return web.json_response({"by": "slow"})

    await rig.service("iris")
    server = await rig.replica("iris-predictor", answer=slow)
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    under_way = asyncio.create_task(rig.ask("iris.team"))
    while not server.active:
        await asyncio.sleep(0.01)
    proxy = rig.proxy_pid
    await rig.stop()
    assert (await under_way)[0] == 200
    assert not rig.is_alive(proxy)
