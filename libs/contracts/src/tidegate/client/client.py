"""The client for asyncio."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Protocol, Self, TypeVar

import grpc
import grpc.aio
import orjson

from kube import Key, Manifest
from tidegate.api.v1 import api_pb2, api_pb2_grpc
from tidegate.client import answers, requests
from tidegate.client.endpoint import Endpoint
from tidegate.client.results import Applied, Change, Explanation, Happening, Page, SystemStatus, User

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T", covariant=True)
# In a class with a method ``list`` the word means that method.
Results = list[Applied]
Manifests = list[Manifest]
Happenings = list[Happening]


class Stream(Protocol[T]):
    """Messages that come one by one."""

    def __aiter__(self) -> AsyncIterator[T]: ...

    def cancel(self) -> object: ...


class Client:
    """Talks to one server; close it, or use it in an ``async with``. Make it where the event loop runs.

    Kinds are named as users do (``job``, ``pods``, ``jobs.batch``) or with their group (``Job.batch.volcano.sh``); an empty
    namespace means ``default`` for one object and all namespaces for lists. Every method raises ClientError.
    """

    def __init__(self, endpoint: Endpoint, *, timeout_seconds: float = 30.0) -> None:
        self.endpoint = endpoint
        self._timeout = timeout_seconds
        self._metadata = requests.metadata(endpoint)
        self._channel = grpc.aio.insecure_channel(endpoint.server, options=requests.CHANNEL_OPTIONS)
        self._stub = api_pb2_grpc.TidegateServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connection up; open streams end."""
        await self._channel.close()

    async def apply(
        self,
        manifests: Sequence[Manifest],
        *,
        dry_run: bool = False,
        replace: bool = False,
        create_only: bool = False,
    ) -> Results:
        """Create or update objects; what was refused is among the results (see ``accepted``).

        What belongs together goes in one request, up to 1,000 objects or 2 MiB; more goes in several, one after the other.
        """
        results: Results = []
        for part in requests.batches(manifests):
            request = requests.apply_request(part, dry_run=dry_run, replace=replace, create_only=create_only)
            answer = await self._call(self._stub.Apply, request)
            results += answers.applied(answer.results, answer.revision)
        return results

    async def apply_stream(self, parts: AsyncIterable[Sequence[Manifest]]) -> AsyncIterator[Results]:
        """The results of each part, in order, while further parts are sent."""
        stream = (api_pb2.ApplyStreamRequest(apply=requests.apply_request(part)) async for part in parts)
        call = self._stub.ApplyStream(stream, metadata=self._metadata)
        async for answer in self._read(call):
            yield answers.applied(answer.applied.results, answer.applied.revision)

    async def delete(self, keys: Iterable[Key], *, grace_seconds: int | None = None, dry_run: bool = False) -> Results:
        """Delete objects, each in the time that it asks for or within ``grace_seconds``."""
        answer = await self._call(self._stub.Delete, requests.delete_request(keys, grace_seconds, dry_run))
        return answers.applied(answer.results, answer.revision)

    async def suspend(self, kind: str, name: str, namespace: str = "") -> str:
        """Take a job's pods away and keep the job; says in words what was done."""
        request = api_pb2.SuspendRequest(name=requests.object_name(kind, name, namespace))
        return (await self._call(self._stub.Suspend, request)).message

    async def resume(self, kind: str, name: str, namespace: str = "") -> str:
        """Let a suspended job go on."""
        request = api_pb2.ResumeRequest(name=requests.object_name(kind, name, namespace))
        return (await self._call(self._stub.Resume, request)).message

    async def scale(self, kind: str, name: str, replicas: int, *, task: str = "", namespace: str = "") -> str:
        """Set the replicas of a workload, or of a job's task; ``task`` may be left out where there is one only."""
        named = requests.object_name(kind, name, namespace)
        return (
            await self._call(self._stub.Scale, api_pb2.ScaleRequest(name=named, task=task, replicas=replicas))
        ).message

    async def get(self, kind: str, name: str, namespace: str = "", *, at_least_revision: int = 0) -> Manifest:
        """One object. Raises NotFound."""
        named = requests.object_name(kind, name, namespace)
        answer = await self._call(self._stub.Get, api_pb2.GetRequest(name=named, at_least_revision=at_least_revision))
        manifest: Manifest = orjson.loads(answer.manifest)
        return manifest

    async def pages(
        self,
        kind: str,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        at_least_revision: int = 0,
    ) -> AsyncIterator[Page]:
        """The objects of a kind by namespace and name, page by page."""
        request = api_pb2.ListRequest(
            kind=kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            page_size=requests.PAGE,
            at_least_revision=at_least_revision,
        )
        while True:
            page = answers.page(await self._call(self._stub.List, request))
            yield page
            if not page.token:
                return
            request.page_token = page.token

    async def list(
        self,
        kind: str,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        at_least_revision: int = 0,
    ) -> Manifests:
        """All objects of a kind by namespace and name."""
        pages = self.pages(
            kind,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            at_least_revision=at_least_revision,
        )
        return [manifest async for page in pages for manifest in page.manifests]

    def watch(
        self,
        kind: str = "",
        namespace: str = "",
        *,
        name: str = "",
        label_selector: str = "",
        from_revision: int = 0,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[Change]:
        """What changes, without end or until TimedOut; from revision 0 it begins with what there is. Raises Expired."""
        request = api_pb2.WatchRequest(
            kind=kind, namespace=namespace, name=name, label_selector=label_selector, from_revision=from_revision
        )
        call = self._stub.Watch(request, timeout=timeout_seconds, metadata=self._metadata)
        return (answers.change(answer) async for answer in self._read(call))

    async def explain(self, kind: str, name: str, namespace: str = "") -> Explanation:
        """Why an object waits, or where it went."""
        request = api_pb2.ExplainRequest(name=requests.object_name(kind, name, namespace))
        return answers.explanation(await self._call(self._stub.Explain, request))

    async def snapshot(self, decision_id: str = "") -> bytes:
        """All that decisions depend on, now or when one was made, as the content of a snapshot file; raises NotFound."""
        request = api_pb2.SnapshotRequest(decision_id=decision_id)
        call = self._stub.Snapshot(request, metadata=self._metadata)
        return b"".join([answer.data async for answer in self._read(call)])

    def logs(
        self, pod: str, namespace: str = "", *, container: str = "", follow: bool = False, tail: int = 0
    ) -> AsyncIterator[bytes]:
        """What a container wrote, in pieces: the last ``tail`` lines (0: all), with ``follow`` until it has ended."""
        request = api_pb2.LogsRequest(namespace=namespace, pod=pod, container=container, follow=follow, tail=tail)
        call = self._stub.Logs(request, metadata=self._metadata)
        return (answer.data async for answer in self._read(call))

    async def events(
        self, namespace: str = "", *, about: Key | None = None, limit: int = 0, dead: bool = False
    ) -> Happenings:
        """What was decided and done of late, oldest first; with ``dead`` the messages that could not be handled."""
        return answers.happenings(
            await self._call(self._stub.Events, requests.events_request(namespace, about, limit, dead))
        )

    async def status(self) -> SystemStatus:
        """The services, and how far each has come."""
        return answers.system_status(await self._call(self._stub.Status, api_pb2.StatusRequest()))

    async def whoami(self) -> User:
        """Who the caller is."""
        return answers.user(await self._call(self._stub.WhoAmI, api_pb2.WhoAmIRequest()))

    async def _call(self, method: "grpc.aio.UnaryUnaryMultiCallable[Q, A]", request: Q) -> A:
        try:
            return await method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None

    async def _read(self, call: Stream[A]) -> AsyncIterator[A]:
        """The messages of a stream; the call ends when nobody reads on."""
        try:
            async for answer in call:
                yield answer
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None
        finally:
            call.cancel()
