"""The gRPC address of Tidegate: each call a few words of authentication, then the part that answers it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import grpc
import orjson

from admission.answers import MyStatus, applied, departed, fill_response, happened, key_text
from admission.applier import Applier, Change, NotStored, Result, Unavailable
from admission.callers import EVERYTHING, Ask, Caller, Denied, apply_asks
from admission.container_logs import ContainerLogs, NoLogs
from admission.domain.errors import Rejected
from admission.domain.patching import BadEdit, patched_manifest, read_edit
from admission.door import Door
from admission.history import History
from admission.manifests import BadManifest, ManifestReader
from admission.operations import NotPossible, key_of_name, scale, suspend
from admission.questions import Questions
from admission.reads import BadToken, Filter, Reads
from admission.request_stream import Results, answers
from admission.snapshots import SnapshotDesk
from admission.switch import SchedulingSwitch
from admission.view import GoneRevision, View
from bus import Bus
from chassis.clock import Clock, SystemClock
from kube import Key, Manifest, Object, UnknownKind, find_kind
from kube.selectors import SelectorError
from tidegate.api.v1 import api_pb2, api_pb2_grpc

R = TypeVar("R")
VERSION = "0.1.0"
PIECE = 1 << 20
"""Bytes of a snapshot in one message."""


_CODES: dict[type[Exception], grpc.StatusCode] = {
    Denied: grpc.StatusCode.PERMISSION_DENIED,
    UnknownKind: grpc.StatusCode.INVALID_ARGUMENT,
    SelectorError: grpc.StatusCode.INVALID_ARGUMENT,
    NotPossible: grpc.StatusCode.INVALID_ARGUMENT,
    BadEdit: grpc.StatusCode.INVALID_ARGUMENT,
    BadManifest: grpc.StatusCode.INVALID_ARGUMENT,
    BadToken: grpc.StatusCode.INVALID_ARGUMENT,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    NotStored: grpc.StatusCode.FAILED_PRECONDITION,
    GoneRevision: grpc.StatusCode.OUT_OF_RANGE,
    LookupError: grpc.StatusCode.NOT_FOUND,
    NoLogs: grpc.StatusCode.FAILED_PRECONDITION,
}


class Servicer(api_pb2_grpc.TidegateServiceServicer):
    """One address for users and programs."""

    def __init__(
        self, bus: Bus, view: View, applier: Applier, door: Door, history: History, clock: Clock | None = None
    ) -> None:
        self._bus, self._view, self._applier, self._door, self._history = bus, view, applier, door, history
        self._reads, self._manifests = Reads(view), ManifestReader()
        self._allowed: tuple[Caller | None, Manifest | None] = None, None
        """Who was found to be allowed what last: many manifests are like the one before."""

        self._logs = ContainerLogs(bus, view)
        clock = clock or SystemClock()
        self._snapshots = SnapshotDesk(bus, view, clock, VERSION)
        self._switch = SchedulingSwitch(view, applier, clock)

    async def Apply(self, request: api_pb2.ApplyRequest, context: Any) -> api_pb2.ApplyResponse:
        return await self._guarded(context, lambda user: self._apply(user, request))

    async def ApplyStream(
        self, request_iterator: AsyncIterator[api_pb2.ApplyStreamRequest], context: Any
    ) -> AsyncIterator[api_pb2.ApplyStreamResponse]:
        user = await self._user(context)
        try:
            async for answer in answers(request_iterator, lambda request: self._begin(user, request)):
                yield answer
        except tuple(_CODES) as error:
            await context.abort(_code(error), _text(error))

    async def _apply(self, user: Caller, request: api_pb2.ApplyRequest) -> api_pb2.ApplyResponse:
        return fill_response(api_pb2.ApplyResponse(), *await (await self._begin(user, request)))

    async def _begin(self, user: Caller, request: api_pb2.ApplyRequest) -> "asyncio.Future[Results]":
        """The results of one request, to be waited for, and a revision that holds them; 0 for a dry run."""
        read, changes = self._manifests.read, []
        for content in request.manifests:
            manifest, name = read(content)
            if user is not self._allowed[0] or manifest is not self._allowed[1]:
                await user.check(*apply_asks(manifest, self._exists, name))
                # What a cluster allows may change from one moment to the next: it is asked again.
                self._allowed = (user, manifest) if user.identity is None else (None, None)
            changes.append(Change(manifest, name, create_only=request.create_only, replace=request.replace))
        if not request.dry_run:
            return self._applier.begin(user.name, changes, user.identity)
        tried: asyncio.Future[Results] = asyncio.get_running_loop().create_future()
        tried.set_result((self._applier.dry_run(changes), 0))
        return tried

    async def Patch(self, request: api_pb2.PatchRequest, context: Any) -> api_pb2.PatchResponse:
        async def patch(user: Caller) -> api_pb2.PatchResponse:
            key = key_of_name(request.name.kind, request.name.namespace, request.name.name)
            await user.check(Ask("update", *key))
            item, edit = await self._find(user, request.name), read_edit(request.patch)
            with suppress(Rejected):  # which is told when it is tried
                await user.check(*apply_asks(patched_manifest(item, edit), self._exists))
            changes = [Change(patch=item.key, edit=edit)]
            if request.dry_run:
                return api_pb2.PatchResponse(result=applied(self._applier.dry_run(changes)[0]))
            results, revision = await self._applier.begin(user.name, changes, user.identity)
            return api_pb2.PatchResponse(result=applied(results[0]), revision=revision)

        return await self._guarded(context, patch)

    async def Delete(self, request: api_pb2.DeleteRequest, context: Any) -> api_pb2.DeleteResponse:
        async def delete(user: Caller) -> api_pb2.DeleteResponse:
            grace = request.grace_seconds if request.HasField("grace_seconds") else None
            keys = [key_of_name(name.kind, name.namespace, name.name) for name in request.names]
            await user.check(*(Ask("delete", *key) for key in keys))
            changes = [Change(delete=key, grace_seconds=grace) for key in keys]
            if request.dry_run:
                return api_pb2.DeleteResponse(results=map(applied, self._applier.dry_run(changes)))
            results, revision = await self._applier.begin(user.name, changes, user.identity)
            return api_pb2.DeleteResponse(results=map(applied, results), revision=revision)

        return await self._guarded(context, delete)

    async def Suspend(self, request: api_pb2.SuspendRequest, context: Any) -> api_pb2.SuspendResponse:
        async def change(user: Caller) -> api_pb2.SuspendResponse:
            revision, message = await self._operate(user, request.name, lambda item: suspend(item, suspended=True))
            return api_pb2.SuspendResponse(revision=revision, message=f"{message} suspended")

        return await self._guarded(context, change)

    async def Resume(self, request: api_pb2.ResumeRequest, context: Any) -> api_pb2.ResumeResponse:
        async def change(user: Caller) -> api_pb2.ResumeResponse:
            revision, message = await self._operate(user, request.name, lambda item: suspend(item, suspended=False))
            return api_pb2.ResumeResponse(revision=revision, message=f"{message} resumed")

        return await self._guarded(context, change)

    async def Scale(self, request: api_pb2.ScaleRequest, context: Any) -> api_pb2.ScaleResponse:
        async def change(user: Caller) -> api_pb2.ScaleResponse:
            revision, message = await self._operate(
                user, request.name, lambda item: scale(item, request.task, request.replicas)
            )
            return api_pb2.ScaleResponse(revision=revision, message=f"{message} scaled to {request.replicas}")

        return await self._guarded(context, change)

    async def SetScheduling(self, request: api_pb2.SetSchedulingRequest, context: Any) -> api_pb2.SetSchedulingResponse:
        async def switch(user: Caller) -> api_pb2.SetSchedulingResponse:
            results, revision, message = await self._switch.set(user, paused=request.paused, reason=request.reason)
            _raise_refused(results)
            return api_pb2.SetSchedulingResponse(revision=revision, message=message)

        return await self._guarded(context, switch)

    async def _operate(
        self, user: Caller, name: api_pb2.ObjectName, make: Callable[[Object], Manifest]
    ) -> tuple[int, str]:
        key = key_of_name(name.kind, name.namespace, name.name)
        await user.check(Ask("update", *key))
        item = await self._find(user, name)
        manifest = make(item)
        await user.check(*apply_asks(manifest, self._exists))
        results, revision = await self._applier.begin(user.name, [Change(manifest)], user.identity)
        _raise_refused(results)
        return revision, key_text(item.key)

    async def Get(self, request: api_pb2.GetRequest, context: Any) -> api_pb2.GetResponse:
        async def get(user: Caller) -> api_pb2.GetResponse:
            await self._view.reach(request.at_least_revision)
            manifest = orjson.dumps((await self._find(user, request.name)).manifest())
            return api_pb2.GetResponse(manifest=manifest, revision=self._view.revision)

        return await self._guarded(context, get)

    async def List(self, request: api_pb2.ListRequest, context: Any) -> api_pb2.ListResponse:
        async def page(user: Caller) -> api_pb2.ListResponse:
            kind = find_kind(request.kind).id
            await user.check(Ask("list", kind, request.namespace))
            await self._view.reach(request.at_least_revision)
            wanted = Filter(kind, request.namespace, "", request.label_selector, request.field_selector, user.sight)
            found = self._reads.page(wanted, request.page_size, request.page_token)
            return api_pb2.ListResponse(manifests=found.manifests, next_page_token=found.token, revision=found.revision)

        return await self._guarded(context, page)

    async def Watch(self, request: api_pb2.WatchRequest, context: Any) -> AsyncIterator[api_pb2.WatchResponse]:
        user = await self._user(context)
        try:
            kind = find_kind(request.kind).id if request.kind else ""
            await user.check(Ask("watch", kind or EVERYTHING, request.namespace))
            wanted = Filter(kind, request.namespace, request.name, request.label_selector, sees=user.sight)
            async for change in self._reads.watch(wanted, request.from_revision):
                yield api_pb2.WatchResponse(type=change.type, manifest=change.manifest, revision=change.revision)
        except tuple(_CODES) as error:
            await context.abort(_code(error), _text(error))

    async def Explain(self, request: api_pb2.ExplainRequest, context: Any) -> api_pb2.ExplainResponse:
        async def explain(user: Caller) -> api_pb2.ExplainResponse:
            try:
                item = await self._find(user, request.name)
            except LookupError:
                key = key_of_name(request.name.kind, request.name.namespace, request.name.name)
                evicted = self._history.eviction_of(key) if key.kind == "Pod" else None
                if evicted is None:
                    raise
                lines, details = departed(key, evicted)
            else:
                lines, details = await Questions(self._bus, self._view.store).explain(item)
            return api_pb2.ExplainResponse(lines=lines, details=orjson.dumps(details))

        return await self._guarded(context, explain)

    async def Snapshot(self, request: api_pb2.SnapshotRequest, context: Any) -> AsyncIterator[api_pb2.SnapshotResponse]:
        user = await self._user(context)
        try:
            if await user.overview() is not None:
                raise Denied(
                    f"user {user.name} may not read everywhere: a snapshot holds everything, and so does what whatif and "
                    "replay are answered from"
                )
            content = await self._snapshots.take(request.decision_id)
            for start in range(0, len(content), PIECE):
                yield api_pb2.SnapshotResponse(data=content[start : start + PIECE])
        except tuple(_CODES) as error:
            await context.abort(_code(error), _text(error))

    async def Logs(self, request: api_pb2.LogsRequest, context: Any) -> AsyncIterator[api_pb2.LogsResponse]:
        user = await self._user(context)
        try:
            key = Key("Pod", request.namespace or "default", request.pod)
            await user.check(Ask("get", *key, subresource="log"))
            async for data in self._logs.read(key, request):
                yield api_pb2.LogsResponse(data=data)
        except tuple(_CODES) as error:
            await context.abort(_code(error), _text(error))

    async def Events(self, request: api_pb2.EventsRequest, context: Any) -> api_pb2.EventsResponse:
        async def events(user: Caller) -> api_pb2.EventsResponse:
            limit = request.limit or 100
            if request.dead and await user.overview() is not None:
                raise Denied(f"user {user.name} may not read everywhere, and what was put aside may be of anywhere")
            if request.dead:
                parked = await self._bus.parked(limit)
                return api_pb2.EventsResponse(
                    events=[
                        api_pb2.Event(
                            at_ms=item.at_ms, source=item.service, name="Parked", reason=item.source, message=item.error
                        )
                        for item in parked
                    ]
                )
            about = None
            if request.about.name:
                about = key_of_name(request.about.kind, request.about.namespace, request.about.name)
            await user.check(Ask("get", *about) if about else Ask("list", "Event", request.namespace))
            kept = self._history.writes if request.writes else self._history
            found = kept.newest(request.namespace, about, limit, user.sight or (lambda _: True))
            return api_pb2.EventsResponse(events=map(happened, found))

        return await self._guarded(context, events)

    async def Status(self, request: api_pb2.StatusRequest, context: Any) -> api_pb2.StatusResponse:
        async def status(user: Caller) -> api_pb2.StatusResponse:
            return await MyStatus(
                self._bus, self._view, self._history.services, VERSION, await user.overview()
            ).answer()

        return await self._guarded(context, status)

    async def WhoAmI(self, request: api_pb2.WhoAmIRequest, context: Any) -> api_pb2.WhoAmIResponse:
        async def who(user: Caller) -> api_pb2.WhoAmIResponse:
            namespaces, reads = user.places
            return api_pb2.WhoAmIResponse(user=user.name, namespaces=namespaces, reads=reads)

        return await self._guarded(context, who)

    async def _user(self, context: Any) -> Caller:
        """Who calls; nobody is answered before all is read that there is."""
        await self._view.ready.wait()
        metadata = dict(context.invocation_metadata() or ())
        try:
            return await self._door.caller(str(metadata.get("authorization", "")))
        except Unavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise
        except Denied as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            raise

    async def _guarded(self, context: Any, answer: Callable[[Caller], Awaitable[R]]) -> R:
        """Answer for the caller; what a user did wrong becomes a status with a text, never a stack trace."""
        user = await self._user(context)
        try:
            return await answer(user)
        except tuple(_CODES) as error:
            await context.abort(_code(error), _text(error))
            raise

    def _exists(self, key: Key) -> bool:
        return self._view.store.get(key) is not None

    async def _find(self, user: Caller, name: api_pb2.ObjectName) -> Object:
        key = key_of_name(name.kind, name.namespace, name.name)
        await user.check(Ask("get", *key))
        found = self._view.store.get(key)
        if found is None:
            raise LookupError(f"{key} not found")
        return found


def _text(error: Exception) -> str:
    return str(error.args[0] if error.args else error)


def _code(error: Exception) -> grpc.StatusCode:
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def _raise_refused(results: Iterable[Result]) -> None:
    for result in results:
        if result.outcome == "refused":
            raise NotPossible(result.message)
