"""What replicas are spared: more requests than they take, requests that they fail, and requests after they are told to go."""

import asyncio
from typing import Any

from aiohttp import web


def slow(seconds: float) -> Any:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(seconds)
        return web.json_response({"by": "slow"})

    return answer


async def test_a_replica_takes_as_many_requests_at_once_as_it_may(rig: Any) -> None:
    """Others wait in the proxy, and are counted as load."""
    await rig.service("iris", {"iris-predictor-00001": 100}, containerConcurrency=2)
    servers = [await rig.replica("iris-predictor-00001", answer=slow(0.05)) for _ in range(2)]
    await rig.start()
    await rig.routed("iris.team")
    answers = await asyncio.gather(*(rig.ask("iris.team") for _ in range(120)))
    assert {status for status, _ in answers} == {200}
    assert [server.most for server in servers] == [2, 2]
    await rig.until_sample(lambda one: one["metric"]["name"] == "concurrency" and int(one["value"][:-1]) > 4000)


async def test_a_replica_that_fails_is_left_out_for_a_while(rig: Any) -> None:
    """After five failures in a row the other one gets its requests."""

    async def broken(request: web.Request) -> web.Response:
        return web.Response(status=500)

    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.replica("iris-predictor-00001", answer=broken)
    await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    failures = 0
    for _ in range(100):
        failures += (await rig.ask("iris.team"))[0] == 500
    assert failures == 5


async def test_a_request_that_nobody_has_seen_is_sent_again(rig: Any) -> None:
    """A replica that cannot be reached, though the facts say it is ready, costs nobody an answer."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.replica("iris-predictor-00001", serve=False)
    await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    answers = [await rig.ask("iris.team") for _ in range(40)]
    assert {status for status, _ in answers} == {200}


async def test_a_request_that_may_have_been_answered_is_not_sent_again(rig: Any) -> None:
    """A replica that hangs up on a POST may have done its work; on a GET it is asked anew."""
    calls: list[str] = []

    async def hangs_up(request: web.Request) -> web.Response:
        calls.append(request.method)
        if len(calls) > 4:
            return web.json_response({"by": "later"})
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.replica("iris-predictor-00001", answer=hangs_up)
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    status, told = await rig.ask("iris.team")
    assert status == 503 and calls == ["POST"] and told["service"] == "team/iris/predictor" and told["reason"]
    status, told = await rig.ask("iris.team", method="GET")
    assert status == 200 and calls == ["POST", "GET", "GET", "GET", "GET"]


async def test_a_replica_that_is_to_go_finishes_what_it_has_and_gets_nothing_new(rig: Any) -> None:
    """Answers under way are waited for."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    going = await rig.replica("iris-predictor-00001", answer=slow(0.5))
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    under_way = [asyncio.create_task(rig.ask("iris.team")) for _ in range(5)]
    while going.active < 5:
        await asyncio.sleep(0.01)
    staying = await rig.replica("iris-predictor-00001")
    await rig.pod(going, "iris-predictor-00001", ready=False)

    async def alone() -> bool:
        return bool((await rig.ask("iris.team"))[1]["by"] == staying.name)

    await rig.eventually(alone)
    seen = going.requests.total()
    assert [status for status, _ in await asyncio.gather(*under_way)] == [200] * 5
    assert {(await rig.ask("iris.team"))[1]["by"] for _ in range(20)} == {staying.name}
    assert going.requests.total() == seen
