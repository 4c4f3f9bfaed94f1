"""Samples are asked for, handed in when they change, and taken back when their source says nothing: whatever it says instead."""

import asyncio
import json
import logging
from typing import Any

import pytest
from aiohttp import web
from asked_world import World, serving

from inference_autoscaler.domain.metrics.reading import SOURCE_LABEL
from inference_autoscaler.sources import fetching
from inference_autoscaler.sources.collector import ENDED_MS
from inference_autoscaler.sources.fetching import LARGEST_ANSWER
from kube import rfc3339


def result(*values: str) -> web.Response:
    series = [{"metric": {"n": str(number)}, "value": [1, value]} for number, value in enumerate(values)]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": series}})


class Prometheus:
    """Answers queries with ``values``, or as ``answer`` does; counts them."""

    def __init__(self, *values: str) -> None:
        self.values, self.answer, self.asked = values, None, list[Any]()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, dict(await request.post()), request.headers.get("Authorization")))
        return result(*self.values) if self.answer is None else await self.answer(request)


def trigger(world: World, port: int, **more: Any) -> None:
    world.trigger("prometheus", serverAddress=f"http://127.0.0.1:{port}", query="sum(q)", threshold="5", **more)


async def test_a_sample_is_handed_in_when_it_is_another_than_before(world: World) -> None:
    source = Prometheus("3")
    async with serving(source) as port:
        trigger(world, port)
        await world.told(lambda one: one.get("value") == "3")
        await world.until(lambda: len(source.asked) >= 4)
        assert len(world.written) == 1
        source.values = ("4",)
        await world.told(lambda one: one.get("value") == "4")
        assert len(world.written) == 2
        assert source.asked[0][:2] == ("/api/v1/query", {"query": "sum(q)"})


async def test_two_that_want_the_same_are_one_question(world: World) -> None:
    source = Prometheus("3")
    async with serving(source) as port:
        for name in "ab":
            trigger(world, port, name=name)
        await world.until(lambda: len(world.readings()) == 2)
        assert len(source.asked) == 1


async def slow(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(5)
    return result("9")


async def huge(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"x" * (LARGEST_ANSWER + 1))


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(1000):
        await answer.write(b"x" * (1 << 16))
    return answer


async def wrong(request: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": [{"value": "five"}]}})


async def page(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>", content_type="text/html")


async def elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/")


async def broken(request: web.Request) -> web.StreamResponse:
    raise web.HTTPInternalServerError(text="secret of the server")


async def cut(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return result("9")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (slow, "no answer within"),
        (huge, "more than 8 MiB"),
        (endless, "more than 8 MiB"),
        (wrong, "no result of a query"),
        (page, "no JSON"),
        (elsewhere, "answers 302"),
        (broken, "answers 500"),
        (cut, "cannot be asked"),
    ],
)
async def test_a_source_that_fails_takes_its_sample_back_and_says_why(world: World, answer: Any, words: str) -> None:
    """What stood before is not kept: nobody knows whether it is still so."""
    source = Prometheus("3")
    async with serving(source) as port:
        trigger(world, port)
        await world.told(lambda one: one.get("value") == "3")
        source.answer = answer
        told = await world.told(lambda one: "value" not in one)
        assert words in told["message"] and "secret" not in told["message"]
        source.answer = None
        await world.told(lambda one: one.get("value") == "3")


@pytest.mark.parametrize(("values", "words"), [(("NaN",), "NaN"), ((), "no series"), (("1", "2"), "2 series")])
async def test_no_number_and_no_series_are_no_value(world: World, values: tuple[str, ...], words: str) -> None:
    source = Prometheus("3")
    async with serving(source) as port:
        trigger(world, port)
        await world.told(lambda one: one.get("value") == "3")
        source.values = values
        assert words in (await world.told(lambda one: "value" not in one))["message"]


async def test_a_source_that_is_down_is_asked_less_often_and_heard_again_when_it_is_back(world: World) -> None:
    source = Prometheus("3")
    async with serving(source) as port:
        trigger(world, port)
        await world.told(lambda one: one.get("value") == "3")
    told = await world.told(lambda one: "value" not in one)
    assert (
        f"http://127.0.0.1:{port} cannot be asked: Connect call failed" in told["message"]
        or "refused" in told["message"]
    )
    before = len(world.written)
    await world.until(lambda: world.skipped_ms > 60_000)
    assert len(world.written) == before
    async with serving(source, port):
        await world.told(lambda one: one.get("value") == "3")


async def test_a_source_that_does_not_answer_holds_nobody_up(world: World) -> None:
    source, stuck = Prometheus("3"), Prometheus()
    stuck.answer = slow
    async with serving(source) as port, serving(stuck) as other:
        for number in range(80):
            world.trigger("prometheus", f"stuck{number}", serverAddress=f"http://127.0.0.1:{other}", query=f"q{number}")
        trigger(world, port)
        await world.told(lambda one: one.get("value") == "3")


async def test_a_server_that_is_asked_more_than_it_answers_says_so_of_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for its turn for too long is not known any more; the others at that server are."""
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.4)

    async def lazy(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.3)
        return result("3")

    source = Prometheus()
    source.answer = lazy
    async with serving(source) as port:
        for number in range(20):
            world.trigger("prometheus", f"w{number}", serverAddress=f"http://127.0.0.1:{port}", query=f"q{number}")
        await world.until(lambda: len(world.readings()) == 20)
        whys = [one["message"] for one in world.readings() if "value" not in one]
        assert whys and all("asked more than it answers" in why for why in whys)
        assert any(one.get("value") == "3" for one in world.readings())


async def test_a_successor_writes_nothing_that_stands_and_drops_what_nobody_wants(world: World) -> None:
    """Another leader knows from the facts what its predecessor handed in."""
    source = Prometheus("3")
    async with serving(source) as port:
        for name in ("kept", "gone"):
            trigger(world, port, name=name)
        await world.until(lambda: len(world.readings()) == 2)
        world.leads = False
        world.store.remove(next(key for key in world.store.of_kind("ScaledObject.keda.sh") if key.name == "gone"))
        asked = len(source.asked)
        await world.until(lambda: world.skipped_ms > 60_000)
        assert len(source.asked) <= asked + 1
        world.leads, world.skipped_ms = True, world.skipped_ms + 60_000
        await world.until(lambda: len(world.readings()) == 1 and len(source.asked) > asked + 1)
        assert len(world.written) == 2


async def test_a_token_is_shown_and_read_again_when_it_is_refused(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    source, token = Prometheus("3"), "first-token"

    async def guarded(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {token}":
            raise web.HTTPUnauthorized()
        return result("3")

    source.answer = guarded
    spec = {"secretTargetRef": [{"parameter": "bearerToken", "name": "s", "key": "t"}]}
    world.put(
        {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "creds"}, "spec": spec}
    )
    world.secrets["s"] = {"t": b"first-token\n"}
    async with serving(source) as port:
        trigger(world, port, authModes="bearer", more={"authenticationRef": {"name": "creds"}})
        await world.told(lambda one: one.get("value") == "3")
        token = "second-token"
        assert "does not let us in" in (await world.told(lambda one: "value" not in one))["message"]
        world.secrets["s"] = {"t": b"second-token"}
        await world.told(lambda one: one.get("value") == "3")
    shown = json.dumps(world.written) + caplog.text
    assert "first-token" not in shown and "second-token" not in shown


async def test_a_missing_secret_and_an_unknown_mode_are_said(world: World) -> None:
    async with serving(Prometheus("3")) as port:
        trigger(world, port, authModes="bearer", more={"authenticationRef": {"name": "none"}})
        assert (
            "TriggerAuthentication none is not there" in (await world.told(lambda one: "value" not in one))["message"]
        )
        trigger(world, port, authModes="aws")
        await world.told(lambda one: "authModes: aws" in one.get("message", ""))


async def test_each_pod_is_asked_for_what_it_tells(world: World) -> None:
    async def metrics(request: web.Request) -> web.StreamResponse:
        return web.Response(text="# TYPE waiting gauge\nwaiting 4\n")

    async with serving(metrics) as port:
        world.pod("a", port)
        world.pod("b", 1)
        world.autoscaler("waiting")
        await world.told(lambda one: one.get("value") == "4")
        (told,) = world.readings()
        assert told["describedObject"] == {"apiVersion": "v1", "kind": "Pod", "name": "a"}


async def test_samples_of_pods_that_are_gone_and_that_nobody_wants_are_dropped(world: World) -> None:
    async def metrics(request: web.Request) -> web.StreamResponse:
        return web.Response(text="waiting 4\n")

    async with serving(metrics) as port:
        for name in "ab":
            world.pod(name, port)
        world.autoscaler("waiting")
        await world.until(lambda: len(world.readings()) == 2)
        world.store.remove(world.pods.pop().key)
        await world.until(lambda: len(world.readings()) == 1)
        other = {"metadata": {"name": "of-somebody-else"}, "spec": {"metric": {"name": "waiting"}}}
        world.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", **other})
        for name, age in (("ended", ENDED_MS + 60_000), ("silent", ENDED_MS // 2)):
            metadata = {"name": name, "labels": {SOURCE_LABEL: name}}
            spec = {"metric": {"name": "rps"}, "value": "1", "timestamp": rfc3339(world.now() - age)}
            world.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec})
        for key in [*world.store.of_kind("HorizontalPodAutoscaler.autoscaling")]:
            world.store.remove(key)
        await world.until(lambda: len(world.readings()) == 2)
        assert "ended" in world.dropped, "a gateway that is gone leaves nothing behind"
        assert not {"of-somebody-else", "silent"} & {*world.dropped}
