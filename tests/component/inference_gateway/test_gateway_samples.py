"""What the service says of the load, and of what revisions answered."""

import asyncio
from typing import Any

from aiohttp import web

from kube import Manifest


def of_revision(metric: str, revision: str, value: int, **labels: str) -> Any:
    """Whether a sample says this of a revision."""

    def fits(sample: Manifest) -> bool:
        told = sample["metric"]
        return bool(
            told["name"] == metric
            and told.get("labels") == {"revision": revision, **labels}
            and sample["value"] == f"{value * 1000}m"
        )

    return fits


async def test_what_revisions_answered_is_counted_while_they_share(rig: Any) -> None:
    """Requests, errors, and how many were answered within which time: what a rollout compares."""

    async def fails(request: web.Request) -> web.Response:
        await asyncio.sleep(0.15)
        return web.Response(status=500)

    await rig.service("iris", {"iris-predictor-00001": 80, "iris-predictor-00002": 20})
    await rig.replica("iris-predictor-00001")
    await rig.replica("iris-predictor-00002", answer=fails)
    await rig.start()
    await rig.until_figure("routable_pools", 2)
    for _ in range(5):
        await asyncio.gather(*(rig.ask("iris.team") for _ in range(10)))
    old, new = "iris-predictor-00001", "iris-predictor-00002"
    await rig.until_sample(of_revision("revision_requests_total", old, 40))
    await rig.until_sample(of_revision("revision_errors_total", new, 10))
    await rig.until_sample(of_revision("revision_latency_bucket", old, 40, le="60000"))
    await rig.until_sample(of_revision("revision_latency_bucket", new, 10, le="60000"))
    fast = [one for one in rig.samples if of_revision("revision_latency_bucket", new, 0, le="100")(one)]
    assert fast, "no answer of the slow revision came within 100 ms"


async def test_a_load_that_ends_is_said_to_be_none(rig: Any) -> None:
    """What is measured as nothing is said to be nothing, again and again while there are replicas to take away."""
    await rig.service("iris", {"iris-predictor-00001": 100})
    await rig.replica("iris-predictor-00001")
    await rig.start()
    await rig.routed("iris.team")

    def nothing(sample: Manifest) -> bool:
        return bool(sample["metric"]["name"] == "concurrency" and sample["value"] == "0m")

    async def said_again() -> bool:
        return sum(map(nothing, rig.samples)) >= 3

    await rig.eventually(said_again)
    times = [one["timestamp"] for one in rig.samples if one["metric"]["name"] == "concurrency"]
    assert times == sorted(times) and len(set(times)) == len(times)
