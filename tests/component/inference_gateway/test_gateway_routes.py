"""Requests come to the replica that they mean, in the shares that were decided."""

import asyncio
from collections import Counter
from typing import Any

import aiohttp


async def test_requests_find_their_service_by_host_and_by_model(rig: Any) -> None:
    """A service is asked by the hosts that Knative and KServe give it, or by the name of its model alone."""
    await rig.service("iris")
    await rig.replica("iris-predictor")
    await rig.start()
    await rig.routed("iris.team.example.com")
    for host in ("iris.team", "iris.team:80", "iris-team.example.com", "iris.team.svc.cluster.local", "IRIS.team.svc"):
        assert (await rig.ask(host))[0] == 200, host
    for path in ("/v2/models/iris/infer", "/v1/models/iris:predict", "/v1/models/iris", "/v2/models/iris/ready"):
        status, told = await rig.ask("10.0.0.1:7480", path)
        assert (status, told["path"]) == (200, path)
    status, told = await rig.ask("iris.other.example.com", "/v2/models/rose/infer")
    assert status == 404 and told["reason"] == "UnknownService" and "rose" in told["error"]


async def test_a_request_in_a_hundred_is_one_in_a_hundred(rig: Any) -> None:
    """Shares are counted off, not drawn: of 2,000 requests over many connections each revision gets its very share."""
    await rig.service("iris", {"iris-predictor-00001": 99, "iris-predictor-00002": 1})
    old, new = await rig.replica("iris-predictor-00001"), await rig.replica("iris-predictor-00002")
    await rig.start()
    await rig.routed("iris.team")
    counts: Counter[str] = Counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=20)) as session:
        for _ in range(20):
            answers = await asyncio.gather(*(rig.ask_on(session, "iris.team") for _ in range(100)))
            counts.update(told["by"] for _, told in answers)
    assert counts == {old.name: 1980, new.name: 20}
    await rig.service("iris", {"iris-predictor-00001": 63, "iris-predictor-00002": 37})

    async def shared_anew() -> bool:
        counts.clear()
        for _ in range(100):
            counts[(await rig.ask("iris.team"))[1]["by"]] += 1
        return counts == {old.name: 63, new.name: 37}

    await rig.eventually(shared_anew)
