"""The client for asyncio."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc
import grpc.aio

from kube import Manifest
from tidegate.api.v1 import api_pb2_grpc
from tidegate.client import answers, calls, requests
from tidegate.client.calls import Call, Question, Stream
from tidegate.client.endpoint import Endpoint
from tidegate.client.gathering import gathered, stream_answers
from tidegate.client.methods import like
from tidegate.client.patience import PATIENCE_SECONDS, PAUSE_SECONDS, Patience
from tidegate.client.results import Applied

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(call: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], Coroutine[Any, Any, T]]":
    async def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._talk(call(*args, **kwargs))

    return like(call, method)


def _streaming(call: Callable[P, Stream[T]]) -> "Callable[Concatenate[Client, P], AsyncIterator[T]]":
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._open(call(*args, **kwargs))

    return like(call, method)


class Client:
    """Talks to one server; close it, or use it in an ``async with``. Make it where the event loop runs.

    `tidegate.client.calls` says what each method takes and returns. Every method raises ClientError.
    """

    def __init__(
        self, endpoint: Endpoint, *, timeout_seconds: float = 30.0, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """``patience_seconds`` is how long a server may be away."""
        self.endpoint = endpoint
        self._timeout, self._patience = timeout_seconds, patience_seconds
        self._metadata = requests.metadata(endpoint)
        secure, options = requests.credentials(endpoint), requests.CHANNEL_OPTIONS
        self._channel = (
            grpc.aio.insecure_channel(endpoint.server, options=options)
            if secure is None
            else grpc.aio.secure_channel(endpoint.server, secure, options=options)
        )
        self._stub = api_pb2_grpc.TidegateServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connection up; open streams end."""
        await self._channel.close()

    apply = _awaited(calls.apply)
    patch = _awaited(calls.patch)
    delete = _awaited(calls.delete)
    suspend = _awaited(calls.suspend)
    resume = _awaited(calls.resume)
    scale = _awaited(calls.scale)
    set_scheduling = _awaited(calls.set_scheduling)
    get = _awaited(calls.get)
    page = _awaited(calls.page)
    list = _awaited(calls.all_of)
    watch = _streaming(calls.watch)
    explain = _awaited(calls.explain)
    logs = _streaming(calls.logs)
    events = _awaited(calls.events)
    status = _awaited(calls.status)
    whoami = _awaited(calls.whoami)

    async def snapshot(self, decision_id: str = "") -> bytes:
        """All that decisions depend on, now or when one was made, as the content of a snapshot file; raises NotFound."""
        return b"".join([piece async for piece in self._open(calls.snapshot(decision_id))])

    async def apply_stream(self, parts: AsyncIterable[Sequence[Manifest]]) -> AsyncIterator[Sequence[Applied]]:
        """The results of each part, in order, while further parts are sent; parts that wait are sent together."""
        call = self._stub.ApplyStream(
            gathered(requests.apply_request(part) async for part in parts), metadata=self._metadata
        )
        async for answer in self._read(call, stream_answers):
            for one in answer:
                yield answers.applied(one.results, one.revision)

    async def _talk(self, call: Call[T]) -> T:
        """Ask what the call asks, until it has its result."""
        answer = None
        while True:
            try:
                question = call.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self._ask(question)

    async def _ask(self, question: Question) -> Any:
        method = getattr(self._stub, question.method)
        patience = Patience(self._patience, repeatable=question.repeatable)
        while True:
            try:
                return await method(question.request, timeout=self._timeout, metadata=self._metadata)
            except grpc.RpcError as error:
                if not patience.lasts(error):
                    raise answers.client_error(error, self.endpoint.server) from None
            await asyncio.sleep(PAUSE_SECONDS)

    def _open(self, stream: Stream[T]) -> AsyncIterator[T]:
        method = getattr(self._stub, stream.question.method)
        call = method(stream.question.request, timeout=stream.timeout_seconds, metadata=self._metadata)
        return self._read(call, stream.read)

    async def _read(self, call: Any, read: Callable[[Any], T]) -> AsyncIterator[T]:
        """What the messages of a stream come to; the call ends when nobody reads on."""
        try:
            async for message in call:
                yield read(message)
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None
        finally:
            call.cancel()
