"""The client for programs that wait for each answer."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from kube import Manifest
from tidegate.api.v1 import api_pb2_grpc
from tidegate.client import answers, calls, requests
from tidegate.client.calls import Call, Question, Stream
from tidegate.client.endpoint import Endpoint
from tidegate.client.gathering import stream_answers, stream_message
from tidegate.client.methods import like
from tidegate.client.patience import PATIENCE_SECONDS, PAUSE_SECONDS, Patience
from tidegate.client.results import Applied

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(call: Callable[P, Call[T]]) -> "Callable[Concatenate[SyncClient, P], T]":
    def method(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._talk(call(*args, **kwargs))

    return like(call, method)


def _streaming(call: Callable[P, Stream[T]]) -> "Callable[Concatenate[SyncClient, P], Iterator[T]]":
    def method(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._open(call(*args, **kwargs))

    return like(call, method)


class SyncClient:
    """Talks to one server; close it, or use it in a ``with``. May be shared by threads.

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
            grpc.insecure_channel(endpoint.server, options=options)
            if secure is None
            else grpc.secure_channel(endpoint.server, secure, options=options)
        )
        self._stub = api_pb2_grpc.TidegateServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection up; open streams end."""
        self._channel.close()

    apply = _waiting(calls.apply)
    patch = _waiting(calls.patch)
    delete = _waiting(calls.delete)
    suspend = _waiting(calls.suspend)
    resume = _waiting(calls.resume)
    scale = _waiting(calls.scale)
    set_scheduling = _waiting(calls.set_scheduling)
    get = _waiting(calls.get)
    page = _waiting(calls.page)
    list = _waiting(calls.all_of)
    watch = _streaming(calls.watch)
    explain = _waiting(calls.explain)
    logs = _streaming(calls.logs)
    events = _waiting(calls.events)
    status = _waiting(calls.status)
    whoami = _waiting(calls.whoami)

    def snapshot(self, decision_id: str = "") -> bytes:
        """All that decisions depend on, now or when one was made, as the content of a snapshot file; raises NotFound."""
        pieces: Iterator[bytes] = self._open(calls.snapshot(decision_id))
        return b"".join(pieces)

    def apply_stream(self, parts: Iterable[Sequence[Manifest]]) -> Iterator[Sequence[Applied]]:
        """The results of each part, in order, while further parts are sent."""
        messages = (stream_message(requests.apply_request(part)) for part in parts)
        call = self._stub.ApplyStream(messages, metadata=self._metadata)
        for answer in self._read(call, stream_answers):
            for one in answer:
                yield answers.applied(one.results, one.revision)

    def _talk(self, call: Call[T]) -> T:
        """Ask what the call asks, until it has its result."""
        answer = None
        while True:
            try:
                question = call.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = self._ask(question)

    def _ask(self, question: Question) -> Any:
        method = getattr(self._stub, question.method)
        patience = Patience(self._patience, repeatable=question.repeatable)
        while True:
            try:
                return method(question.request, timeout=self._timeout, metadata=self._metadata)
            except grpc.RpcError as error:
                if not patience.lasts(error):
                    raise answers.client_error(error, self.endpoint.server) from None
            time.sleep(PAUSE_SECONDS)

    def _open(self, stream: Stream[T]) -> Iterator[T]:
        method = getattr(self._stub, stream.question.method)
        call = method(stream.question.request, timeout=stream.timeout_seconds, metadata=self._metadata)
        return self._read(call, stream.read)

    def _read(self, call: Any, read: Callable[[Any], T]) -> Iterator[T]:
        """What the messages of a stream come to; the call ends when nobody reads on."""
        try:
            for message in call:
                yield read(message)
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None
        finally:
            call.cancel()
