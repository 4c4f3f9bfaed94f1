"""Writing for users: complete, check, and hand to the cluster gateway; what came together goes together."""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from admission.domain.admit import KEPT_METADATA, admit, admit_delete, read_key
from admission.domain.core_kinds import SECRET_IS_FIXED
from admission.domain.errors import FieldError, Rejected
from admission.domain.overlay import Marks, Overlay
from admission.domain.patching import Edit, patched_manifest
from admission.domain.templates import Templates
from admission.domain.updating import updated
from admission.view import View
from bus import Bus, BusError
from chassis.tracing import TRACEPARENT, NoTracer, Tracer
from kube import Key, Manifest, Object, from_manifest
from kube.kinds import STATED
from tidegate import subjects
from tidegate.codec.write_draft import WriteDraft
from tidegate.gateway.v1 import gateway_pb2

log = logging.getLogger(__name__)

TRIES = 20
ANSWER_SECONDS = 3.0
"""How long an answer is waited for: one that has not come by then is likely lost, and is asked for again."""
PATIENCE_SECONDS = 20.0
"""How long the gateway may be away: less than the time that clients give to a call."""
MOST_OBJECTS = 2_000
"""Objects in one write: more that wait go into the next."""


class Unavailable(Exception):
    """The cluster gateway did not answer; whether it was done is unknown. Asking again is safe."""


class NotStored(Exception):
    """The cluster gateway refuses what was asked; the text says why. Nothing of it was done."""


@dataclass(slots=True)
class Change:
    """One thing that a user wants: an object stored (``manifest``), or the object of ``delete`` gone.

    Never changed; not frozen, for many are made. With a ``name`` the one in the manifest counts for nothing.
    """

    manifest: Manifest | None = None
    name: str = ""
    delete: Key | None = None
    grace_seconds: int | None = None
    create_only: bool = False
    replace: bool = False
    """Labels and annotations that the manifest leaves out are taken away, not kept."""
    patch: Key | None = None
    """The object whose fields ``edit`` changes, as it is when it is written; ``manifest`` counts for nothing then."""
    edit: Edit | None = None


@dataclass(slots=True)
class Result:
    """What became of it: ``created``, ``configured``, ``unchanged``, ``deleted`` or ``refused`` with the errors."""

    key: Key
    outcome: str
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    uid: str = ""
    write: int | None = None
    """Its place among the writes that are sent, where it is one of them."""


@dataclass(slots=True)
class Job:
    """Changes of one request, waiting for their results."""

    actor: str
    changes: Sequence[Change]
    done: "asyncio.Future[tuple[list[Result], int]]"
    identity: gateway_pb2.Identity | None = None
    results: list[Result] = field(default_factory=list)
    meant: dict[Key, str] = field(default_factory=dict)
    """The uids of the objects to be deleted, as the first try found them."""


class Applier:
    """Takes requests one batch after the other; while one is on its way the next gathers."""

    def __init__(self, bus: Bus, view: View, tracer: Tracer | None = None) -> None:
        self._bus, self._view, self._tracer = bus, view, tracer or NoTracer()
        self._waiting: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._templates, self._marks = Templates(view.changed_at), Marks(view.changed_at)

    async def apply(self, actor: str, changes: Sequence[Change]) -> tuple[list[Result], int]:
        """The results, in order, and a revision that holds all of it. Raises Unavailable."""
        return await self.begin(actor, changes)

    def begin(
        self, actor: str, changes: Sequence[Change], identity: gateway_pb2.Identity | None = None
    ) -> "asyncio.Future[tuple[list[Result], int]]":
        """What apply will return, to be waited for. ``identity`` is as whom an API server is to take it."""
        done: asyncio.Future[tuple[list[Result], int]] = asyncio.get_running_loop().create_future()
        self._waiting.append(Job(actor, changes, done, identity))
        self._wake.set()
        return done

    def dry_run(self, changes: Sequence[Change]) -> list[Result]:
        """What apply would answer, without writing anything."""
        job = Job("", changes, asyncio.get_running_loop().create_future())
        self._prepare([job])
        job.done.cancel()
        return job.results

    async def run(self) -> None:
        """Serve the waiting requests for ever."""
        await self._view.ready.wait()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._serve(self._next_batch())

    def _next_batch(self) -> list[Job]:
        """Requests of one user that wait, oldest first."""
        jobs = [self._waiting.popleft()]
        count = len(jobs[0].changes)
        while self._waiting and _of_one(self._waiting[0], jobs[0]) and count < MOST_OBJECTS:
            jobs.append(self._waiting.popleft())
            count += len(jobs[-1].changes)
        return jobs

    async def _serve(self, jobs: list[Job]) -> None:
        request_id = uuid.uuid4().hex
        try:
            for _ in range(TRIES):
                draft = self._prepare(jobs)
                if not draft.request.writes:
                    return self._answer(jobs, self._view.revision)
                draft.request.id, draft.request.actor = request_id, jobs[0].actor
                if jobs[0].identity is not None:
                    draft.request.identity.CopyFrom(jobs[0].identity)
                with self._tracer.span("apply", objects=draft.objects):
                    draft.request.traceparent = self._tracer.carrier().get(TRACEPARENT, "")
                    reply = await self._send(draft.request)
                if not reply.error:
                    _note_untouched(jobs, set(reply.unchanged), set(reply.immutable))
                    await self._view.reach(reply.revision)
                    return self._answer(jobs, reply.revision)
                if not reply.conflict_revision:
                    return await self._serve_apart(jobs, reply.error)
                await self._view.reach(reply.conflict_revision)
            raise Unavailable("the objects kept changing while they were written; try again")
        except Exception as error:
            for job in jobs:
                if not job.done.done():
                    job.done.set_exception(error)
        return None

    async def _serve_apart(self, jobs: list[Job], error: str) -> None:
        """Something in the batch cannot be stored: of several requests each is tried alone, so that the others go through."""
        if len(jobs) == 1:
            raise NotStored(error)
        for job in jobs:
            await self._serve([job])

    async def _send(self, request: gateway_pb2.WriteRequest) -> gateway_pb2.WriteReply:
        """The gateway's answer; the same request is sent again where one is lost, for the gateway does it once."""
        payload, clock = request.SerializeToString(), asyncio.get_running_loop().time
        until, pause = clock() + PATIENCE_SECONDS, 0.05
        while True:
            try:
                answer = await self._bus.request(subjects.WRITE, payload, timeout=ANSWER_SECONDS)
                return gateway_pb2.WriteReply.FromString(answer)
            except BusError as error:
                if clock() > until:
                    raise Unavailable(f"the cluster gateway does not answer: {error}") from error
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)

    def _answer(self, jobs: list[Job], revision: int) -> None:
        for job in jobs:
            for result in job.results:
                found = self._view.store.get(result.key)
                result.uid = found.uid if found is not None else ""
            if not job.done.done():
                job.done.set_result((job.results, revision))

    def _prepare(self, jobs: list[Job]) -> WriteDraft:
        """Check everything against the present state and what came before it in the batch."""
        draft = Draft(Overlay(self._view.store, self._marks), self._view.revision, WriteDraft(), self._templates)
        for job in jobs:
            job.results = [_prepare(change, draft, job.meant) for change in job.changes]
        return draft.written


def _of_one(job: Job, other: Job) -> bool:
    """Whether both are of one user, as far as anybody will know."""
    return job.actor == other.actor and job.identity == other.identity


class Draft(NamedTuple):
    """What is gathered for one write: the world as it will be then, on top of that of ``revision``."""

    world: Overlay
    revision: int
    written: WriteDraft
    templates: Templates


def _prepare(change: Change, draft: Draft, meant: dict[Key, str]) -> Result:
    key = change.delete or Key("", "", "")
    try:
        if change.delete is not None:
            return _prepare_delete(change, change.delete, draft, meant)
        if change.patch is not None:
            key = change.patch
            return _prepare_patch(key, change, draft)
        if change.name and (result := _prepare_likeness(change, draft)) is not None:
            return result
        manifest = _named(change)
        key = read_key(manifest)
        return _prepare_write(key, manifest, change, draft)
    except Rejected as rejected:
        return Result(key, "refused", rejected.errors, message=str(rejected))
    except Exception as error:  # what one asks for must not fail those that came with it
        log.exception("object_refused", extra={"object": str(key)})
        return Result(key, "refused", message=f"{key} cannot be checked: {type(error).__name__}: {error}")


def _prepare_delete(change: Change, key: Key, draft: Draft, meant: dict[Key, str]) -> Result:
    world = draft.world
    old = world.get(key)
    uid = meant.get(key) or ("" if old is None else old.uid)
    if uid and (old is None or old.uid != uid):  # gone since the first try; what has its name now is not meant
        return Result(key, "deleted")
    if old is None:
        return Result(key, "refused", message=f"{key} not found")
    admit_delete(old, world)
    if uid:
        meant[key] = uid
    draft.written.delete(key, uid, change.grace_seconds)
    world.remove(key)
    return Result(key, "deleted")


def _prepare_patch(key: Key, change: Change, draft: Draft) -> Result:
    """Written over the version that is edited here, or not at all: another one is edited anew."""
    old = draft.world.get(key)
    if old is None:
        return Result(key, "refused", message=f"{key} not found")
    assert change.edit is not None, "a patch has what it changes"
    return _prepare_write(key, patched_manifest(old, change.edit), Change(replace=True), draft)


def _prepare_likeness(change: Change, draft: Draft) -> Result | None:
    """The result for a new object that is like one that was admitted, but for its name; None where it is not."""
    if (found := draft.templates.like(change.manifest or {}, change.name, draft.world)) is None:
        return None
    new, warnings = found
    return None if draft.world.get(new.key) is not None else _created(new, warnings, draft)


def _created(new: Object, warnings: tuple[str, ...], draft: Draft) -> Result:
    draft.written.store(new, draft.world.base_revision(new.key))
    draft.world.put(new)
    return Result(new.key, "created", warnings=warnings)


def _prepare_write(key: Key, manifest: Manifest, change: Change, draft: Draft) -> Result:
    world = draft.world
    old = world.get(key)
    if old is None:
        new, warnings = draft.templates.admitted(key, manifest, world, draft.revision, origin=change.manifest)
        return _created(new, warnings, draft)
    if change.create_only:
        raise Rejected(str(key), (FieldError("metadata.name", key.name, "exists already"),))
    admitted = admit(manifest if change.replace else updated(manifest, old), old, world)
    new = from_manifest(admitted.manifest, uid=old.uid)
    if new.body == old.body and _same_metadata(new, old) and (key.kind not in STATED or new.status == old.status):
        return Result(key, "unchanged", warnings=admitted.warnings)
    place = draft.written.store(new, world.base_revision(key))
    world.put(new)
    return Result(key, "configured", warnings=admitted.warnings, write=place)


def _note_untouched(jobs: list[Job], unchanged: set[int], immutable: set[int]) -> None:
    """Of Secrets only the gateway can tell whether their values are the same."""
    for result in (one for job in jobs for one in job.results):
        if result.write in unchanged:
            result.outcome = "unchanged"
        elif result.write in immutable:
            rejected = Rejected(str(result.key), (FieldError("data", None, SECRET_IS_FIXED),))
            result.outcome, result.errors, result.message = "refused", rejected.errors, str(rejected)


def _same_metadata(new: Object, old: Object) -> bool:
    """Whether all that a user may decide is the same; what was left out is not there any more."""
    names = (new.metadata.keys() | old.metadata.keys()).difference(KEPT_METADATA)
    return all((new.metadata.get(name) or None) == (old.metadata.get(name) or None) for name in names)


def _named(change: Change) -> Manifest:
    """The manifest with its name: one with generateName gets a fresh one."""
    manifest = change.manifest or {}
    metadata = manifest.get("metadata") or {}
    if change.name:
        return {**manifest, "metadata": {**metadata, "name": change.name}}
    if isinstance(metadata, dict) and not metadata.get("name") and metadata.get("generateName"):
        return {**manifest, "metadata": {**metadata, "name": f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"}}
    return manifest
