"""A program that goes on asking while the server is away."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from bus.host_ports import free_port
from kube import Key
from tidegate.api.v1 import api_pb2, api_pb2_grpc
from tidegate.client import Client, Endpoint, SyncClient, Unavailable


class Server(api_pb2_grpc.TidegateServiceServicer):
    """Knows who is asking, and nothing else."""

    def WhoAmI(self, request: api_pb2.WhoAmIRequest, context: Any) -> api_pb2.WhoAmIResponse:
        return api_pb2.WhoAmIResponse(user="ann")


def test_a_server_that_was_away_is_found_within_a_moment_of_its_return() -> None:
    """By default gRPC would look for it ever more seldom, in the end every two minutes."""
    port = free_port()
    with SyncClient(Endpoint(f"127.0.0.1:{port}"), patience_seconds=0) as client:
        away_until = time.monotonic() + 3.0
        while time.monotonic() < away_until:
            with pytest.raises(Unavailable):
                client.whoami()
            time.sleep(0.1)
        server = grpc.server(ThreadPoolExecutor(1))
        api_pb2_grpc.add_TidegateServiceServicer_to_server(Server(), server)
        server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        found_until = time.monotonic() + 1.6
        while True:
            try:
                assert client.whoami().name == "ann"
                break
            except Unavailable:
                assert time.monotonic() < found_until, "it is there, and not looked for"
                time.sleep(0.05)
        server.stop(None).wait()


class Failing(api_pb2_grpc.TidegateServiceServicer):
    """Breaks off in the middle of the first call of each kind, as a server does that is killed; then it is there again."""

    def __init__(self, text: str = "Socket closed") -> None:
        self.asked: list[str] = []
        self._text = text

    def _begin(self, method: str, context: Any) -> None:
        self.asked.append(method)
        if self.asked.count(method) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, self._text)

    def Apply(self, request: api_pb2.ApplyRequest, context: Any) -> api_pb2.ApplyResponse:
        self._begin("Apply", context)
        return api_pb2.ApplyResponse(results=[api_pb2.ApplyResult(outcome="unchanged")])

    def Delete(self, request: api_pb2.DeleteRequest, context: Any) -> api_pb2.DeleteResponse:
        self._begin("Delete", context)
        return api_pb2.DeleteResponse()


@contextmanager
def serving(servicer: api_pb2_grpc.TidegateServiceServicer, port: int = 0) -> Iterator[Endpoint]:
    server = grpc.server(ThreadPoolExecutor(2))
    api_pb2_grpc.add_TidegateServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    yield Endpoint(f"127.0.0.1:{port}")
    server.stop(None).wait()


NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
UNNAMED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}


def test_what_may_be_asked_twice_is_asked_again_when_the_server_breaks_off() -> None:
    servicer = Failing()
    with serving(servicer) as endpoint, SyncClient(endpoint) as client:
        assert [one.outcome for one in client.apply([NAMED])] == ["unchanged"]
        assert servicer.asked == ["Apply", "Apply"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.apply([NAMED], create_only=True),
        lambda client: client.apply([NAMED, UNNAMED]),
        lambda client: client.delete([Key("ConfigMap", "default", "a")]),
    ],
)
def test_what_would_be_done_twice_is_not_asked_again_once_it_was_sent(ask: Callable[[SyncClient], Any]) -> None:
    servicer = Failing()
    with serving(servicer) as endpoint, SyncClient(endpoint) as client:
        with pytest.raises(Unavailable):
            ask(client)
        assert len(servicer.asked) == 1


def test_what_the_server_itself_waits_for_in_vain_is_not_waited_for_again() -> None:
    servicer = Failing("the cluster gateway does not answer")
    with serving(servicer) as endpoint, SyncClient(endpoint) as client:
        with pytest.raises(Unavailable, match="the cluster gateway does not answer"):
            client.apply([NAMED])
        assert len(servicer.asked) == 1


async def test_a_call_waits_for_the_successor_of_a_server_that_is_away_and_not_for_ever() -> None:
    port = free_port()

    async def ask() -> Any:
        async with Client(Endpoint(f"127.0.0.1:{port}")) as client:
            return await client.delete([Key("ConfigMap", "default", "a")])

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0.5)
    assert not asking.done()
    servicer = Failing()
    servicer.asked = ["Delete"]
    with serving(servicer, port):
        assert await asking == []
    with SyncClient(Endpoint(f"127.0.0.1:{port}"), patience_seconds=0.3) as client:
        began = time.monotonic()
        with pytest.raises(Unavailable, match="no Tidegate answers"):
            client.whoami()
        assert 0.3 <= time.monotonic() - began < 3.0
