"""The gateway for a cluster with an API server: what is seen of it becomes facts, what is decided becomes requests.

As on the other drivers there is one writer of facts, and nothing is answered before it is stored. Watches have no order among
one another, so the log's order is that of arrival; how far each was read is stored with the facts that came from it, and so
is how far the decisions of each service came to their outcomes. A successor goes on from both.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine

from apiserver.api import Api, Unreachable
from bus import Bus, Lease, StaleWriter, Subscription
from chassis.clock import Clock
from chassis.endings import end
from chassis.measures import Measures
from chassis.parking import Parking
from chassis.tracing import NoTracer, Tracer
from cluster_gateway.assignment_message import assignment_message
from cluster_gateway.batch import Batch
from cluster_gateway.domain.bootstrap import QUEUE, missing_queues
from cluster_gateway.domain.credentials import named_secret
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.writing import Conflict
from cluster_gateway.fact_writer import FactWriter
from cluster_gateway.kubernetes.carrier import Carried, Carrier
from cluster_gateway.kubernetes.commits import Commits
from cluster_gateway.kubernetes.errands import Errands
from cluster_gateway.kubernetes.event_writer import EventWriter
from cluster_gateway.kubernetes.node_reports import NodeReports
from cluster_gateway.kubernetes.positions import Positions
from cluster_gateway.kubernetes.reflector import BeganAnew, Listed, Seen, Watched
from cluster_gateway.kubernetes.requests import NotServed, reading, values_of
from cluster_gateway.kubernetes.sender import HELD_PAUSE, Sender
from cluster_gateway.kubernetes.together import Together
from cluster_gateway.kubernetes.watching import Watching
from cluster_gateway.kubernetes.writer import Unwritten, Writer
from cluster_gateway.recovery import recover
from cluster_gateway.settings import GatewaySettings
from cluster_gateway.write_message import refused_sample, write_of
from kube import Key, Store
from tidegate import subjects
from tidegate.codec.blobs import BlobReader
from tidegate.codec.garbage import no_collection
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

log = logging.getLogger(__name__)

GATHERING_SECONDS = 0.05
"""In a burst answers and changes are gathered for so long: each change set costs every service the same, full or not."""
WATCH = "watch/"
"""Before the kind: the place among the positions of how far its watch was read."""


class KubernetesGateway:
    """The only writer of facts, for a cluster whose objects ``api`` keeps. ``kinds`` are those that services read."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        settings: GatewaySettings,
        api: Api,
        kinds: frozenset[str],
        *,
        holder: str = "only",
        measures: Measures | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._bus, self._clock, self._settings, self._api, self._holder = bus, clock, settings, api, holder
        measures = measures or Measures("cluster_gateway")
        self._facts = FactWriter(bus, clock, settings, holder, measures, tracer or NoTracer())
        self._parking = Parking("cluster_gateway", bus, clock, measures)
        self._events = EventWriter(api, holder, lambda: self._commits.carrier.busy, self._is_there)
        self._work: deque[Callable[[Batch], None]] = deque()
        self._batch = Batch()
        self._wake = asyncio.Event()
        self._watching = Watching(api, kinds, self._hand_on, self._kind_gone, self._wake.set)
        self._lease: Lease | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._keeping: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self.ready = asyncio.Event()
        self._start(Store(), {})

    def _start(self, loaded: Store, positions: dict[str, int]) -> None:
        """Begin from the state that the log tells."""
        self.mirror = Mirror(loaded)
        self._positions = Positions(positions)
        self._reports = NodeReports(self._api, self.mirror, self._watching.served, self._settings.agent_account)
        carrier = Carrier(Errands(Sender(self._api, self._may_act), self.mirror, self._watching.served))
        self._commits = Commits(
            self._bus, self._parking, self.mirror, carrier, self._positions, Together(self._ended), self._wake.set
        )

    def _is_there(self, key: Key) -> bool:
        return self.mirror.store.get(key) is not None

    def _may_act(self) -> bool:
        """Whether no other gateway can be at work: a process that was stopped for a while does not know what was done since."""
        return self._lease is not None and self._lease.is_held()

    async def run(self) -> None:
        """Take the lease, rebuild the state, then go on until the log refuses a write or the task is cancelled."""
        self._lease = await self._bus.lease("cluster_gateway", self._holder)
        await self._lease.wait()
        try:
            async with self._api:
                await self._work_on()
        except StaleWriter as stale:
            raise SystemExit(f"another gateway writes the facts: {stale}") from stale
        finally:
            await self._lease.release()

    async def _work_on(self) -> None:
        serving: list[Subscription] = []
        try:
            await self._begin()
            self._beside(self._keep_lease(), "lease")
            self._beside(self._watching.run(), "watches")
            self._beside(self._events.run(), "events")
            await self._serve(serving)
        finally:
            self.ready.clear()
            for subscription in serving:
                await subscription.stop()
            await end(*self._tasks, *self._commits.carrier.running)

    async def _begin(self) -> None:
        found = await recover(self._bus, self._settings.services, self._parking)
        self._facts.begin(found.fold.revision, found.snapshot_at)
        with no_collection():
            self._start(found.fold.store, found.positions)
        known = {name.removeprefix(WATCH): at for name, at in found.positions.items() if name.startswith(WATCH) and at}
        self._watching.versions.update(known)

    def _beside(self, work: Coroutine[None, None, None], doing: str) -> asyncio.Task[None]:
        """What goes on beside the turns; where it fails the gateway does."""
        task = asyncio.create_task(work, name=f"gateway: {doing}")
        task.add_done_callback(lambda _: self._wake.set())
        self._tasks.append(task)
        return task

    async def _keep_lease(self) -> None:
        """Take the lease again when it was lost. Whether somebody had it meanwhile and wrote, the log says."""
        while self._lease is not None:
            await self._lease.lost()
            log.warning("lease_lost", extra={"holder": self._holder})
            await self._lease.release()
            lease = await self._bus.lease("cluster_gateway", self._holder)
            await lease.wait()
            async with self._turn:
                last = await self._bus.log(subjects.FACTS).last()
                if last != self._facts.last:
                    raise StaleWriter(subjects.FACTS, self._facts.last, last)
            self._lease = lease
            log.info("lease_taken", extra={"holder": self._holder})

    async def _serve(self, serving: list[Subscription]) -> None:
        """Facts first: decisions are looked at when every watch has told its state."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for task in self._tasks:
                if task.done():
                    task.result()
            self._tasks = [task for task in self._tasks if not task.done()]
            if not self._may_act():
                await asyncio.sleep(HELD_PAUSE)
                self._wake.set()
                continue
            async with self._turn:
                await self._cycle()
            if self._watching.complete and not serving:
                for service in self._settings.services:
                    self._beside(self._commits.follow(service), f"reads {service}")
                self._make_queues()
                serving.append(await self._bus.serve(subjects.WRITE, self._on_write))
                serving.append(await self._bus.serve(subjects.SAMPLES, self._on_samples))
                serving.append(await self._bus.serve(subjects.CREDENTIAL, self._on_credential))
                serving.append(await self._bus.serve(subjects.REPORTS, self._on_report))
                self.ready.set()
            if self._work or (self._commits.waiting and self._watching.complete):
                self._wake.set()
            if self._commits.carrier.busy:
                await asyncio.sleep(GATHERING_SECONDS)
            else:
                await self._commits.ended.settle()

    async def _cycle(self) -> None:
        """One change set. What there is when the gateway begins, or when its cluster was put back, is one as a whole."""
        batch, whole = self._batch, self._watching.complete
        self.mirror.begin(self._clock.now(), self._facts.last + 1)
        while self._work and not (whole and self.mirror.edits >= self._settings.most_edits):
            self._work.popleft()(batch)
        if not (whole and self._watching.complete):
            batch.taken_in()
            return
        while self._commits.waiting and not self._work:
            await self._commits.take(batch)
        self._batch = Batch()
        edits = self.mirror.take()
        if edits or batch.outcomes:
            await self._facts.append(edits, batch, self._positions.done)
        batch.answer(self._facts.last)
        await self._tell_agents()
        if self._facts.snapshot_due and (self._keeping is None or self._keeping.done()):
            self._keeping = self._beside(self._snapshot(), "keeps a snapshot")

    async def _tell_agents(self) -> None:
        """The agents beside kubelets hear what is new for them."""
        for assignment in self.mirror.rules.take():
            message = assignment_message(assignment, self._facts.last)
            await self._bus.set_value(subjects.assignment(assignment.node), message)

    async def snapshot(self) -> None:
        """Keep the whole state as of the last change set, and drop history that is older than anybody needs."""
        async with self._turn:
            keeping = self._snapshot() if self.ready.is_set() and not self.mirror.edits else None
        if keeping is not None:
            await keeping

    def _snapshot(self) -> Coroutine[None, None, None]:
        return self._facts.snapshot(self.mirror.store.objects.values(), self._positions.done)

    def _do(self, work: Callable[[Batch], None]) -> None:
        """In the next turn."""
        self._work.append(work)
        self._wake.set()

    # --- what is seen ------------------------------------------------------------------------------------------------

    async def _hand_on(self, seen: Seen) -> None:
        """Returns once what was seen is stored: until then its watch reads no more, and the API server holds it back."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(batch: Batch) -> None:
            self._take_seen(seen)
            batch.enacted.append(stored)

        self._do(take)
        await stored

    def _take_seen(self, seen: Seen) -> None:
        version = 0  # none: a list is to come
        match seen:
            case BeganAnew():
                self.mirror.began_anew(seen.kind)
            case Listed():
                self.mirror.listed(seen.kind, seen.there, seen.version)
                version = seen.version
            case Watched():
                for is_gone, manifest in seen.changes:
                    (self.mirror.gone if is_gone else self.mirror.seen)(seen.kind, manifest)
                version = seen.version
        self._positions.done[WATCH + seen.kind] = version

    def _kind_gone(self, kind: str) -> None:
        def take(batch: Batch) -> None:
            self.mirror.without_kind(kind)
            self._positions.done[WATCH + kind] = 0

        self._do(take)

    # --- what is carried out -----------------------------------------------------------------------------------------

    def _ended(self, carried: Carried) -> None:
        def take(batch: Batch) -> None:
            self._fold(carried)
            batch.outcomes.append(carried.outcome)
            self._events.tell(carried.service, carried.decision, carried.outcome, self._clock.now())
            self._positions.ended(carried.service, carried.sequence)

        self._do(take)

    def _fold(self, carried: Carried) -> None:
        for effect in carried.effects:
            effect(self.mirror)
        carried.settled()

    def _make_queues(self) -> None:
        """The queues that every cluster has, where the kind is there and they are not."""
        decision = missing_queues(self.mirror.store)
        if decision is not None and QUEUE in self._watching.served:
            self._commits.carrier.start(
                "cluster_gateway", 0, "", decision, lambda carried: self._do(lambda _: self._fold(carried))
            )

    async def _on_write(self, payload: bytes) -> bytes:
        """A user's write: carried to the API server, answered once what it made of it is a fact."""
        request = gateway_pb2.WriteRequest.FromString(payload)
        identity = request.identity if request.HasField("identity") else None
        writer = Writer(self._api, self.mirror, self._watching.served, identity)
        try:
            blobs = BlobReader(request.blobs)
            writes = [write_of(item, blobs) for item in request.writes]
            done = await writer.write(writes, request.actor)
        except Conflict as conflict:
            return _reply(error=str(conflict), conflict_revision=conflict.revision)
        except (NotServed, Unwritten, Unreachable) as error:
            return _reply(error=str(error))
        reply: asyncio.Future[gateway_pb2.WriteReply] = asyncio.get_running_loop().create_future()

        def take(batch: Batch) -> None:
            for key, answer in done:
                self.mirror.answered(key, answer.body if answer.ok else None, request.actor or "user")
            batch.replies.append((reply, gateway_pb2.WriteReply()))

        self._do(take)
        return (await reply).SerializeToString()

    async def _on_samples(self, payload: bytes) -> bytes:
        """What a service measured, written as a user's write is."""
        if error := refused_sample(gateway_pb2.WriteRequest.FromString(payload)):
            return _reply(error)
        return await self._on_write(payload)

    async def _on_credential(self, payload: bytes) -> bytes:
        """The values of a Secret that a trigger's authentication names: from the API server to who asks, and nowhere else."""
        request = gateway_pb2.CredentialRequest.FromString(payload)
        item = self.mirror.store.get(Key(request.kind, request.namespace, request.name))
        key, data = named_secret(item, request.secret), None
        if key is not None:
            data = values_of(await self._api.send(reading(key, self._watching.served)))
        return gateway_pb2.CredentialReply(found=data is not None, data=data or {}).SerializeToString()

    async def _on_report(self, payload: bytes) -> bytes:
        """What an agent beside a kubelet says; the answer tells whether the API server has stored it."""
        message = node_pb2.Report.FromString(payload)
        error = await self._reports.take(message, self._clock.now())
        if not error:
            self.mirror.rules.heard(message.node)
            self._wake.set()
        return node_pb2.ReportReply(error=error).SerializeToString()


def _reply(error: str, conflict_revision: int = 0) -> bytes:
    return gateway_pb2.WriteReply(error=error, conflict_revision=conflict_revision).SerializeToString()
