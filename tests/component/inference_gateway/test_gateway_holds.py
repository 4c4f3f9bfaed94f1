"""Requests wait while no replica is ready, wake the service, and are answered by the first replica that is."""

import asyncio
import time
from collections import Counter
from typing import Any

from tests.bench.serving.client import Client

from kube.times import parse_time

BURST = 4000


def tasks(rig: Any, count: int, **asked: Any) -> list["asyncio.Task[tuple[int, Any]]"]:
    return [asyncio.create_task(rig.ask("iris.team", id=f"r{number}", **asked)) for number in range(count)]


async def test_requests_wait_until_a_replica_is_ready_and_none_is_lost(rig: Any) -> None:
    """Each is answered once, whatever its size, and the service is woken by what is said of its load."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    small, large = tasks(rig, 50), tasks(rig, 2, data=b"x" * 3_000_000)
    await rig.until_figure("held_requests", 52)
    said = await rig.until_sample(lambda one: one["metric"]["name"] == "concurrency" and one["value"] != "0m")
    assert said["describedObject"] == {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "name": "iris",
    }
    assert int(said["value"].rstrip("m")) > 0 and parse_time(said["timestamp"]) > 0
    server = await rig.replica("iris-predictor-00001")
    answers = await asyncio.gather(*small, *large)
    assert [status for status, _ in answers] == [200] * 52
    assert {told["by"] for _, told in answers} == {server.name}
    assert sorted(told["length"] for _, told in answers)[-2:] == [3_000_000] * 2
    assert await rig.figure("held_requests") == 0


async def test_thousands_that_wait_go_on_without_overrunning_anybody(rig: Any) -> None:
    """A proxy and a server have short queues for connections: who is woken by many gets them one after the other."""
    rig.settings["hold-requests"] = BURST
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    client = Client(f"127.0.0.1:{rig.port}", "iris.team", "/v1/models/m:predict", b"{}")
    asking = asyncio.create_task(client.play([0.0] * BURST, time.monotonic()))
    await rig.until_figure("held_requests", BURST)
    server = await rig.replica("iris-predictor-00001")
    answers = await asking
    client.close()
    assert Counter(one.status for one in answers) == {200: BURST}
    assert server.requests.total() == BURST


async def test_what_waits_is_bounded_in_number_and_time(rig: Any) -> None:
    """Past the bound a request is told at once what is missing and why, as JSON."""
    rig.settings.update({"hold-requests": 3, "hold-seconds": 2})
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    waiting = tasks(rig, 3)
    await rig.until_figure("held_requests", 3)
    status, told = await rig.ask("iris.team")
    assert status == 503 and told["reason"] == "TooManyWaiting" and told["service"] == "iris"
    assert "3 requests wait for iris-predictor-00001 already" in told["error"]
    for status, told in await asyncio.gather(*waiting):
        assert status == 503 and told["reason"] == "NoReplicaReady"
        assert told["error"] == "no replica of iris-predictor-00001 became ready within 2 s"


async def test_a_client_that_goes_waits_no_more(rig: Any) -> None:
    """Its place is another's."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.start()
    waiting = tasks(rig, 3)
    await rig.until_figure("held_requests", 3)
    for one in waiting[:2]:
        one.cancel()
    await rig.until_figure("held_requests", 1)
    waiting[2].cancel()


async def test_a_stopped_service_answers_at_once(rig: Any) -> None:
    """Nobody waits for what will not come."""
    await rig.service("iris", annotations={"serving.kserve.io/stop": "true"})
    await rig.start()

    async def stopped() -> bool:
        status, told = await rig.ask("iris.team")
        return bool(status == 503 and told["reason"] == "Stopped")

    await rig.eventually(stopped)


async def test_only_those_wait_whose_revision_sleeps(rig: Any) -> None:
    """While one of two revisions has no replica the other one's requests are answered, and the shares stay exact."""
    await rig.service("iris", {"iris-predictor-00001": 90, "iris-predictor-00002": 10})
    await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.until_figure("routable_pools", 1)
    all_of_them = tasks(rig, 100)
    await rig.until_figure("held_requests", 10)
    newer = await rig.replica("iris-predictor-00002")
    answers = await asyncio.gather(*all_of_them)
    assert [status for status, _ in answers] == [200] * 100
    assert sum(told["by"] == newer.name for _, told in answers) == 10


async def test_requests_for_a_replica_that_went_wait_for_the_next_one(rig: Any) -> None:
    """From one to zero and back to one under load, no request fails."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    first = await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.routed("iris.team")
    answers: list[int] = []
    over = asyncio.Event()

    async def ask_on_and_on() -> None:
        while not over.is_set():
            answers.append((await rig.ask("iris.team"))[0])

    asking = [asyncio.create_task(ask_on_and_on()) for _ in range(8)]
    await asyncio.sleep(0.3)
    await rig.gone(first)
    await rig.until_figure("held_requests", 8)
    await first.stop()
    await rig.replica("iris-predictor-00001")
    await asyncio.sleep(0.3)
    over.set()
    await asyncio.gather(*asking)
    assert len(answers) > 50 and set(answers) == {200}
