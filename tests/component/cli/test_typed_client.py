"""The typed client, for programs that wait and for programs on asyncio."""

import inspect
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest

from kube import Key, Manifest
from tidegate.client import (
    Client,
    Conflict,
    Denied,
    Endpoint,
    Expired,
    NotFound,
    Refused,
    SyncClient,
    TimedOut,
    Unavailable,
    accepted,
)
from tidegate.client.requests import MOST_OBJECTS, batches


def configmap(name: str, **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


@pytest.fixture
def endpoint(server: Any, token: str) -> Endpoint:
    return Endpoint(server.address, token)


def test_what_is_applied_can_be_got_listed_and_deleted(endpoint: Endpoint) -> None:
    with SyncClient(endpoint) as client:
        results = accepted(client.apply([configmap("a", x="1"), configmap("b"), configmap("c")]))
        assert [(one.key.name, one.outcome) for one in results] == [
            ("a", "created"),
            ("b", "created"),
            ("c", "created"),
        ]
        assert client.get("cm", "a")["data"] == {"x": "1"}
        assert [one["metadata"]["name"] for one in client.list("configmaps")] == ["a", "b", "c"]
        first = client.page("cm")
        assert [len(one.manifests) for one in (first, client.page("cm", token=first.token))] == [2, 1]
        assert client.delete([Key("cm", "default", "a")])[0].outcome == "deleted"
        assert client.delete([Key("cm", "default", "a")])[0].missing


def test_a_refusal_is_a_result_or_by_choice_an_error(endpoint: Endpoint, server: Any) -> None:
    server.refusals = {"a": [("data.x", "1", "must be even")]}
    with SyncClient(endpoint) as client:
        results = client.apply([configmap("a"), configmap("b")])
        assert [one.refused for one in results] == [True, False]
        with pytest.raises(Refused, match=r"data\.x: 1: must be even"):
            accepted(results)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, NotFound),
        (grpc.StatusCode.INVALID_ARGUMENT, Refused),
        (grpc.StatusCode.FAILED_PRECONDITION, Refused),
        (grpc.StatusCode.PERMISSION_DENIED, Denied),
        (grpc.StatusCode.ABORTED, Conflict),
        (grpc.StatusCode.OUT_OF_RANGE, Expired),
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, TimedOut),
    ],
)
def test_every_status_is_an_error_of_its_own_with_the_servers_words(
    endpoint: Endpoint, server: Any, code: grpc.StatusCode, kind: type[Exception]
) -> None:
    server.failures = {"Get": (code, "because"), "Watch": (code, "because")}
    words = "in time" if kind is TimedOut else "because"
    with SyncClient(endpoint) as client:
        with pytest.raises(kind, match=words):
            client.get("pod", "x")
        with pytest.raises(kind, match=words):
            next(iter(client.watch("pods")))


def test_a_watch_gives_what_there_is_a_bookmark_and_what_changes(endpoint: Endpoint, server: Any) -> None:
    server.put(configmap("a"))
    with SyncClient(endpoint) as client:
        changes = client.watch("cm")
        first = [next(changes), next(changes)]
        server.put(configmap("b"))
        first.append(next(changes))
        assert [(one.type, one.manifest.get("metadata", {}).get("name")) for one in first] == [
            ("added", "a"),
            ("bookmark", None),
            ("added", "b"),
        ]
        with pytest.raises(TimedOut):
            list(client.watch("cm", timeout_seconds=0.1))


def test_many_manifests_go_in_parts_that_keep_their_order() -> None:
    manifests = [configmap(f"m{number}") for number in range(MOST_OBJECTS + 5)]
    parts = list(batches(manifests))
    assert [len(part) for part in parts] == [MOST_OBJECTS, 5]
    assert [one for part in parts for one in part] == manifests
    large = [configmap(f"m{number}", x="y" * 1_500_000) for number in range(3)]
    assert [len(part) for part in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []


def test_a_stream_answers_part_by_part(endpoint: Endpoint) -> None:
    with SyncClient(endpoint) as client:
        answers = client.apply_stream([[configmap("a")], [configmap("b"), configmap("c")]])
        assert [[one.key.name for one in results] for results in answers] == [["a"], ["b", "c"]]


def test_nobody_is_asked_with_a_token_that_is_none() -> None:
    with pytest.raises(Denied):
        Endpoint("127.0.0.1:1", "a\nb")


async def test_the_asyncio_client_does_the_same(endpoint: Endpoint, server: Any) -> None:
    async def parts() -> AsyncIterator[Sequence[Manifest]]:
        yield [configmap("d")]

    async with Client(endpoint) as client:
        accepted(await client.apply([configmap("a"), configmap("b"), configmap("c")]))
        assert [one["metadata"]["name"] for one in await client.list("cm")] == ["a", "b", "c"]
        assert (await client.get("cm", "a"))["metadata"]["name"] == "a"
        assert [[one.outcome async for one in _each(results)] async for results in client.apply_stream(parts())] == [
            ["created"]
        ]
        with pytest.raises(NotFound, match="ConfigMap/default/x not found"):
            await client.get("cm", "x")
        server.logs = {"p": [b"one", b"two"]}
        assert [data async for data in client.logs("p")] == [b"one", b"two"]
        types = []
        async for change in client.watch("cm"):
            types.append(change.type)
            if change.type == "bookmark":
                break
        assert types == ["added"] * 4 + ["bookmark"]
        assert (await client.whoami()).name == "ada"
        assert (await client.status()).version == "9.9"
        assert (await client.delete([Key("cm", "", "d")]))[0].missing


async def _each(results: Sequence[Any]) -> AsyncIterator[Any]:
    for result in results:
        yield result


async def test_the_asyncio_client_says_when_nobody_answers() -> None:
    async with Client(Endpoint("127.0.0.1:1"), patience_seconds=0.3) as client:
        with pytest.raises(Unavailable, match=r"no Tidegate answers at 127\.0\.0\.1:1"):
            await client.whoami()


@pytest.mark.parametrize("kind", [Client, SyncClient])
def test_help_of_a_method_tells_its_parameters_and_what_it_does(kind: type) -> None:
    assert list(inspect.signature(kind.scale).parameters) == ["self", "kind", "name", "replicas", "task", "namespace"]
    assert list(inspect.signature(kind.watch).parameters)[:3] == ["self", "kind", "namespace"]
    public = [getattr(kind, name) for name in vars(kind) if not name.startswith("_")]
    assert all(method.__doc__ for method in public) and len(public) == 19
