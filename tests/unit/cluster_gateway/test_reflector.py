"""Following one kind: a list, a watch from there, and what happens when the server breaks off, forgets, or refuses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson
import pytest

from apiserver import Answer, Refused, Unreachable
from cluster_gateway.kubernetes import reflector
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.kubernetes.reflector import BeganAnew, KindIsGone, Listed, Reflector, Seen, Watched
from kube import KINDS, Key, Manifest


def pod(name: str, version: int) -> Manifest:
    return {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}}


def event(what: str, item: Manifest) -> bytes:
    return orjson.dumps({"type": what, "object": item})


FORGOTTEN = event("ERROR", {"code": 410, "message": "too old"})
Chunks = Sequence[list[bytes] | Exception]
LATEST = 1_000


def keys(*names: str) -> frozenset[Key]:
    return frozenset(Key("Pod", "default", name) for name in names)


class Server:
    """Lists and watches as they were recorded, one after the other; the last watch stays open. ``version`` is its newest."""

    def __init__(self, lists: list[Answer], watches: list[Chunks], version: int = LATEST) -> None:
        self._lists, self._watches, self._version = lists, watches, version
        self.asked: list[str] = []

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Answer:
        if (parameters or {}).get("limit") == "1":
            return listing(self._version)
        self.asked.append("list " + (parameters or {}).get("continue", ""))
        return self._lists.pop(0)

    async def lines(self, path: str, parameters: Mapping[str, str], silence: float) -> AsyncIterator[list[bytes]]:
        self.asked.append(f"watch {parameters['resourceVersion']}")
        if not self._watches:
            await asyncio.Event().wait()
        for chunk in self._watches.pop(0):
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


def listing(version: int, *items: Manifest, more: str = "") -> Answer:
    return Answer(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


SERVED = Served(KINDS["Pod"], "/api/v1", "pods", True)


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a reflector until it waits at the server's open watch; what it handed on."""
    monkeypatch.setattr(reflector, "FIRST_PAUSE", 0.0)

    async def run(server: Server, version: int = 0) -> list[Seen]:
        seen: list[Seen] = []

        async def hand_on(one: Seen) -> None:
            seen.append(one)

        task = asyncio.create_task(Reflector(server, SERVED, hand_on, version).run())
        for _ in range(200):
            await asyncio.sleep(0)
        task.cancel()
        (error,) = await asyncio.gather(task, return_exceptions=True)
        if not isinstance(error, asyncio.CancelledError):
            raise error
        return seen

    return run


async def test_a_list_in_pages_is_handed_on_page_by_page_and_watched_from_its_version(follow: Any) -> None:
    server = Server([listing(7, pod("a", 3), more="next"), listing(7, pod("b", 5))], [[[event("ADDED", pod("c", 9))]]])

    seen = await follow(server)

    assert seen == [
        Watched("Pod", 0, [(False, pod("a", 3))]),
        Watched("Pod", 0, [(False, pod("b", 5))]),
        Listed("Pod", 7, keys("a", "b")),
        Watched("Pod", 9, [(False, pod("c", 9))]),
    ]
    assert server.asked == ["list ", "list next", "watch 7", "watch 9"]


async def test_who_was_there_before_goes_on_from_its_version(follow: Any) -> None:
    server = Server([], [[[event("DELETED", pod("a", 12)), event("BOOKMARK", pod("", 20))]]])

    assert await follow(server, 11) == [Watched("Pod", 20, [(True, pod("a", 12))])]
    assert server.asked == ["watch 11", "watch 20"]


async def test_a_watch_that_breaks_goes_on_where_it_was(follow: Any) -> None:
    server = Server([], [[[event("ADDED", pod("a", 12))], Unreachable("cut")]])

    await follow(server, 11)

    assert server.asked == ["watch 11", "watch 12"]


@pytest.mark.parametrize("how", [[FORGOTTEN], Refused(Answer(410, {"message": "too old"}))])
async def test_a_version_that_is_forgotten_leads_to_a_new_list(follow: Any, how: Any) -> None:
    server = Server([listing(30, pod("b", 25))], [[how]])

    assert await follow(server, 11) == [Watched("Pod", 0, [(False, pod("b", 25))]), Listed("Pod", 30, keys("b"))]
    assert server.asked == ["watch 11", "list ", "watch 30"]


async def test_changes_before_an_error_in_one_chunk_are_seen_again(follow: Any) -> None:
    broken = event("ERROR", {"code": 500, "message": "etcd is away"})
    server = Server([], [[[event("ADDED", pod("a", 12)), broken]], [[event("ADDED", pod("a", 12))]]])

    assert await follow(server, 11) == [Watched("Pod", 12, [(False, pod("a", 12))])]
    assert server.asked == ["watch 11", "watch 11", "watch 12"]


@pytest.mark.parametrize("code", [403, 404])
async def test_a_kind_that_is_not_served_to_us_ends_the_watch_and_says_why(follow: Any, code: int) -> None:
    with pytest.raises(KindIsGone, match="no pods for you"):
        await follow(Server([Answer(code, {"message": "no pods for you"})], []))


async def test_a_kind_that_may_not_be_seen_any_more_is_followed_again_from_where_it_was(follow: Any) -> None:
    refused = Refused(Answer(403, {"message": "no pods for you"}))

    server = Server([], [[refused], [[event("ADDED", pod("a", 12))]]])

    assert await follow(server, 11) == [Watched("Pod", 12, [(False, pod("a", 12))])]


async def test_a_server_that_was_put_back_to_an_older_state_is_listed_anew(follow: Any) -> None:
    server = Server([listing(5, pod("a", 3))], [], version=5)

    assert await follow(server, 90) == [
        BeganAnew("Pod"),
        Watched("Pod", 0, [(False, pod("a", 3))]),
        Listed("Pod", 5, keys("a")),
    ]
    assert server.asked == ["list ", "watch 5"]


async def test_a_line_that_is_no_object_breaks_the_watch_and_nothing_else(follow: Any) -> None:
    server = Server(
        [], [[[event("ADDED", pod("a", 12))], [b'{"type": "ADDED", "obj']], [[event("ADDED", pod("b", 13))]]]
    )

    assert [seen.version for seen in await follow(server, 11)] == [12, 13]
    assert server.asked == ["watch 11", "watch 12", "watch 13"]
