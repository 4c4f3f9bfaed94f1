"""The client for programs that wait for each answer."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import grpc
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

    def __iter__(self) -> Iterator[T]: ...

    def cancel(self) -> object: ...


class SyncClient:
    """Talks to one server; close it, or use it in a ``with``. May be shared by threads.

    Kinds are named as users do (``job``, ``pods``, ``jobs.batch``) or with their group (``Job.batch.volcano.sh``); an empty
    namespace means ``default`` for one object and all namespaces for lists. Every method raises ClientError.
    """

    def __init__(self, endpoint: Endpoint, *, timeout_seconds: float = 30.0) -> None:
        self.endpoint = endpoint
        self._timeout = timeout_seconds
        self._metadata = requests.metadata(endpoint)
        self._channel = grpc.insecure_channel(endpoint.server, options=requests.CHANNEL_OPTIONS)
        self._stub = api_pb2_grpc.TidegateServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection up; open streams end."""
        self._channel.close()

    def apply(
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
            answer = self._call(self._stub.Apply, request)
            results += answers.applied(answer.results, answer.revision)
        return results

    def apply_stream(self, parts: Iterable[Sequence[Manifest]]) -> Iterator[Results]:
        """The results of each part, in order, while further parts are sent."""
        stream = (api_pb2.ApplyStreamRequest(apply=requests.apply_request(part)) for part in parts)
        call = self._stub.ApplyStream(stream, metadata=self._metadata)
        for answer in self._read(call):
            yield answers.applied(answer.applied.results, answer.applied.revision)

    def delete(self, keys: Iterable[Key], *, grace_seconds: int | None = None, dry_run: bool = False) -> Results:
        """Delete objects, each in the time that it asks for or within ``grace_seconds``."""
        answer = self._call(self._stub.Delete, requests.delete_request(keys, grace_seconds, dry_run))
        return answers.applied(answer.results, answer.revision)

    def suspend(self, kind: str, name: str, namespace: str = "") -> str:
        """Take a job's pods away and keep the job; says in words what was done."""
        request = api_pb2.SuspendRequest(name=requests.object_name(kind, name, namespace))
        return self._call(self._stub.Suspend, request).message

    def resume(self, kind: str, name: str, namespace: str = "") -> str:
        """Let a suspended job go on."""
        request = api_pb2.ResumeRequest(name=requests.object_name(kind, name, namespace))
        return self._call(self._stub.Resume, request).message

    def scale(self, kind: str, name: str, replicas: int, *, task: str = "", namespace: str = "") -> str:
        """Set the replicas of a workload, or of a job's task; ``task`` may be left out where there is one only."""
        named = requests.object_name(kind, name, namespace)
        return self._call(self._stub.Scale, api_pb2.ScaleRequest(name=named, task=task, replicas=replicas)).message

    def get(self, kind: str, name: str, namespace: str = "", *, at_least_revision: int = 0) -> Manifest:
        """One object. Raises NotFound."""
        named = requests.object_name(kind, name, namespace)
        answer = self._call(self._stub.Get, api_pb2.GetRequest(name=named, at_least_revision=at_least_revision))
        manifest: Manifest = orjson.loads(answer.manifest)
        return manifest

    def pages(
        self,
        kind: str,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        at_least_revision: int = 0,
    ) -> Iterator[Page]:
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
            page = answers.page(self._call(self._stub.List, request))
            yield page
            if not page.token:
                return
            request.page_token = page.token

    def list(
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
        return [manifest for page in pages for manifest in page.manifests]

    def watch(
        self,
        kind: str = "",
        namespace: str = "",
        *,
        name: str = "",
        label_selector: str = "",
        from_revision: int = 0,
        timeout_seconds: float | None = None,
    ) -> Iterator[Change]:
        """What changes, without end or until TimedOut; from revision 0 it begins with what there is. Raises Expired."""
        request = api_pb2.WatchRequest(
            kind=kind, namespace=namespace, name=name, label_selector=label_selector, from_revision=from_revision
        )
        call = self._stub.Watch(request, timeout=timeout_seconds, metadata=self._metadata)
        return map(answers.change, self._read(call))

    def explain(self, kind: str, name: str, namespace: str = "") -> Explanation:
        """Why an object waits, or where it went."""
        request = api_pb2.ExplainRequest(name=requests.object_name(kind, name, namespace))
        return answers.explanation(self._call(self._stub.Explain, request))

    def snapshot(self, decision_id: str = "") -> bytes:
        """All that decisions depend on, now or when one was made, as the content of a snapshot file; raises NotFound."""
        request = api_pb2.SnapshotRequest(decision_id=decision_id)
        call = self._stub.Snapshot(request, metadata=self._metadata)
        return b"".join(answer.data for answer in self._read(call))

    def logs(
        self, pod: str, namespace: str = "", *, container: str = "", follow: bool = False, tail: int = 0
    ) -> Iterator[bytes]:
        """What a container wrote, in pieces: the last ``tail`` lines (0: all), with ``follow`` until it has ended."""
        request = api_pb2.LogsRequest(namespace=namespace, pod=pod, container=container, follow=follow, tail=tail)
        call = self._stub.Logs(request, metadata=self._metadata)
        return (answer.data for answer in self._read(call))

    def events(
        self, namespace: str = "", *, about: Key | None = None, limit: int = 0, dead: bool = False
    ) -> Happenings:
        """What was decided and done of late, oldest first; with ``dead`` the messages that could not be handled."""
        return answers.happenings(self._call(self._stub.Events, requests.events_request(namespace, about, limit, dead)))

    def status(self) -> SystemStatus:
        """The services, and how far each has come."""
        return answers.system_status(self._call(self._stub.Status, api_pb2.StatusRequest()))

    def whoami(self) -> User:
        """Who the caller is."""
        return answers.user(self._call(self._stub.WhoAmI, api_pb2.WhoAmIRequest()))

    def _call(self, method: "grpc.UnaryUnaryMultiCallable[Q, A]", request: Q) -> A:
        try:
            return method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None

    def _read(self, call: Stream[A]) -> Iterator[A]:
        """The messages of a stream; the call ends when nobody reads on."""
        try:
            yield from call
        except grpc.RpcError as error:
            raise answers.client_error(error, self.endpoint.server) from None
        finally:
            call.cancel()
