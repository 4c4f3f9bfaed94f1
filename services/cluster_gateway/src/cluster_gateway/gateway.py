"""The shell of the cluster gateway: gathers what has come, lets the cluster take it, writes one change set, answers.

While one change set is on its way to the log, the next gathers. Nothing is answered before it is stored. All state is
rebuilt from the log: a gateway that is killed at any moment has promised nothing that is not in it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from bus import Bus, StaleWriter, Subscription
from chassis.alarm import Alarm, ticks
from chassis.clock import Clock
from chassis.endings import end
from chassis.measures import Measures
from chassis.parking import Parking
from chassis.tracing import TRACEPARENT, NoTracer, Tracer
from cluster_gateway.assignment_message import assignment_message
from cluster_gateway.batch import Batch
from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.fact_writer import FactWriter
from cluster_gateway.inbox import Decided, Enactment, NodeReport, Request, WorkInbox
from cluster_gateway.local_cluster import LocalCluster
from cluster_gateway.recovery import recover
from cluster_gateway.refused_commit import refused
from cluster_gateway.secrets import Secrets
from cluster_gateway.settings import GatewaySettings
from cluster_gateway.write_message import refused_sample
from kube import Key
from tidegate import subjects
from tidegate.codec.garbage import no_collection
from tidegate.decision.v1 import decision_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

log = logging.getLogger(__name__)

MOST_REQUESTS = 1_000
"""Requests in one change set: their names have to fit into its header."""


class GatewayStopped(Exception):
    """The gateway stops. Whether it was done is unknown: asked again with the same id, it is done once."""


class Gateway:
    """The only writer of facts, for a cluster that keeps its objects itself (drivers `local` and `simulated`)."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        settings: GatewaySettings,
        secrets: Secrets,
        new_uid: Callable[[], str],
        *,
        holder: str = "only",
        measures: Measures | None = None,
        tracer: Tracer | None = None,
        no_room: Callable[[], str] = str,
    ) -> None:
        """``no_room`` says why nothing more can be taken in; empty while there is room."""
        self._bus, self._clock, self._settings, self._holder = bus, clock, settings, holder
        self._inbox = WorkInbox()
        self._no_room = no_room
        measures = measures or Measures("cluster_gateway")
        self._facts = FactWriter(bus, clock, settings, holder, measures, tracer or NoTracer())
        self._parking = Parking("cluster_gateway", bus, clock, measures)
        self.local = LocalCluster(settings, secrets, new_uid)
        self._positions: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._keeping: asyncio.Task[None] | None = None
        self._serving: list[Subscription] = []
        self._alarm = Alarm(self._inbox.wake)
        self._seen: dict[str, int] = {}
        self._turn = asyncio.Lock()
        self._batch = Batch()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Take the lease, rebuild the state, then serve until the log refuses a write or the task is cancelled."""
        lease = await self._bus.lease("cluster_gateway", self._holder)
        await lease.wait()
        try:
            await self._begin()
            self.ready.set()
            while True:
                await self._inbox.wait()
                async with self._turn:
                    await self._cycle()
        except StaleWriter as stale:
            raise SystemExit(f"another gateway writes the facts: {stale}") from stale
        finally:
            self.ready.clear()
            await self._end()
            await lease.release()

    async def _begin(self) -> None:
        found = await recover(self._bus, self._settings.services, self._parking)
        self._facts.begin(found.fold.revision, found.snapshot_at)
        self._positions = found.positions
        with no_collection():
            self.local.start(found.fold.store, self._clock.now(), self._facts.last + 1)
        for request_id in found.requests:
            self.local.remember(request_id)
        self._seen = self.local.agents(ticks())
        await self._write(Batch())
        for service in self._settings.services:
            self._follow(service)
        serve = self._bus.serve
        self._serving += [
            await serve(subjects.WRITE, self._on_write),
            await serve(subjects.SAMPLES, self._on_samples),
            await serve(subjects.SECRET, self._on_secret),
            await serve(subjects.CREDENTIAL, self._on_credential),
            await serve(subjects.REPORTS, self._on_report),
            await self._bus.listen(subjects.HEARTBEATS, self._on_heartbeat),
        ]
        self._arm()

    async def enact(self, action: Callable[[Cluster], None]) -> None:
        """Let the cluster side bring something about; returns once it is a fact."""
        reply: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inbox.put(Enactment(action, reply))
        await reply

    def wake(self) -> None:
        """Look again whether something is due."""
        self._inbox.wake()

    async def _end(self) -> None:
        await end(*self._tasks)
        for serving in self._serving:
            await serving.stop()
        self._alarm.cancel()
        self._batch.fail(GatewayStopped("the gateway stops; ask again"))
        while (work := self._inbox.next()) is not None:
            if not isinstance(work, Decided) and not work.reply.done():
                work.reply.set_exception(GatewayStopped("the gateway stops; ask again"))

    def _follow(self, service: str) -> None:
        async def follow() -> None:
            source = self._bus.log(subjects.decisions(service))
            async for entries in source.read(self._positions.get(service, 0)):
                for entry in entries:
                    self._inbox.put(Decided(service, entry))

        self._beside(follow(), f"gateway reads {service}")

    def _beside(self, work: Coroutine[None, None, None], doing: str) -> asyncio.Task[None]:
        """What goes on beside the turns; where it fails the gateway does."""
        task = asyncio.create_task(work, name=doing)
        task.add_done_callback(lambda _: self._inbox.wake())
        self._tasks.append(task)
        return task

    async def _on_write(self, payload: bytes) -> bytes:
        request = gateway_pb2.WriteRequest.FromString(payload)
        # Deleting makes room; and said here it is said though a write that had no room holds up all others.
        if not all(write.delete for write in request.writes) and (complaint := self._no_room()):
            return gateway_pb2.WriteReply(error=complaint).SerializeToString()
        reply: asyncio.Future[gateway_pb2.WriteReply] = asyncio.get_running_loop().create_future()
        self._inbox.put(Request(request, reply))
        return (await reply).SerializeToString()

    async def _on_samples(self, payload: bytes) -> bytes:
        """What a service measured, written as a user's write is."""
        if error := refused_sample(gateway_pb2.WriteRequest.FromString(payload)):
            return gateway_pb2.WriteReply(error=error).SerializeToString()
        return await self._on_write(payload)

    async def _on_report(self, payload: bytes) -> bytes:
        reply: asyncio.Future[node_pb2.ReportReply] = asyncio.get_running_loop().create_future()
        self._inbox.put(NodeReport(node_pb2.Report.FromString(payload), reply))
        return (await reply).SerializeToString()

    async def _on_secret(self, payload: bytes) -> bytes:
        request = node_pb2.SecretRequest.FromString(payload)
        data = self.local.secret_for(request.node, request.namespace, request.name)
        return node_pb2.SecretReply(found=data is not None, data=dict(data or {})).SerializeToString()

    async def _on_credential(self, payload: bytes) -> bytes:
        request = gateway_pb2.CredentialRequest.FromString(payload)
        data = self.local.credential(Key(request.kind, request.namespace, request.name), request.secret)
        return gateway_pb2.CredentialReply(found=data is not None, data=dict(data or {})).SerializeToString()

    def _on_heartbeat(self, payload: bytes) -> None:
        node = payload.decode()
        self._seen[node] = ticks()
        if self.local.is_silent(node):
            self._inbox.wake()

    async def _cycle(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()
        self._tasks = [task for task in self._tasks if not task.done()]
        batch = self._batch = Batch()
        self.local.begin(self._clock.now(), self._facts.last + 1)
        while self.local.edits < self._settings.most_edits and len(batch.replies) < MOST_REQUESTS:
            work = self._inbox.next()
            if work is None:
                break
            match work:
                case Request():
                    self._take_request(work, batch)
                case NodeReport():
                    self._seen[work.message.node] = ticks()
                    batch.reports.append((work.reply, self.local.report(work.message)))
                case Enactment():
                    self._take_enactment(work, batch)
                case Decided():
                    await self._take_commit(work, batch)
        else:
            self._inbox.wake()
        self.local.watch_nodes(self._seen, ticks())
        await self._write(batch)
        for node in self.local.new_nodes():
            self._seen.setdefault(node, ticks())
        self._arm()

    def _take_request(self, work: Request, batch: Batch) -> None:
        written = self.local.write(work.message)
        batch.cause = {TRACEPARENT: work.message.traceparent} if work.message.traceparent else batch.cause
        batch.replies.append((work.reply, written))
        if not written.error and work.message.id:
            batch.requests.append(work.message.id)
        elif written.error and not written.conflict_revision:
            log.error("request_refused", extra={"actor": work.message.actor, "detail": written.error})

    def _take_enactment(self, work: Enactment, batch: Batch) -> None:
        try:
            with self.local.cluster.whole():
                work.action(self.local.cluster)
        except Exception as error:
            if not work.reply.done():
                work.reply.set_exception(error)
        else:
            batch.enacted.append(work.reply)

    async def _take_commit(self, work: Decided, batch: Batch) -> None:
        service, entry = work.service, work.entry
        if entry.sequence <= self._positions.get(service, 0):
            return
        commit = decision_pb2.Commit()
        batch.cause = entry.headers if TRACEPARENT in entry.headers else batch.cause
        try:
            commit.ParseFromString(entry.payload)
            if commit.leader_started:
                self._epochs[service] = commit.epoch
            batch.outcomes += self.local.carry_out(service, commit, stale=commit.epoch < self._epochs.get(service, 0))
        except Exception as error:
            text = await self._parking.entry(f"{subjects.decisions(service)}/{entry.sequence}", entry, error)
            batch.outcomes += refused(commit, f"cannot be read: {text}")
        self._positions[service] = entry.sequence

    async def _write(self, batch: Batch) -> None:
        """Let the cluster react, store what happened, answer, and tell the nodes."""
        edits = self.local.react()
        if edits or batch.outcomes:
            await self._facts.append(edits, batch, self._positions)
            self.local.stored()
        batch.answer(self._facts.last)
        for key, text in self.local.take_failures().items():
            await self._parking.item(key, text, self.local.store.get(key))
        for assignment in self.local.changed_assignments():
            message = assignment_message(assignment, self._facts.last)
            await self._bus.set_value(subjects.assignment(assignment.node), message)
        if self._facts.snapshot_due and (self._keeping is None or self._keeping.done()):
            self._keeping = self._beside(self._snapshot(), "gateway keeps a snapshot")

    async def snapshot(self) -> None:
        """Keep the whole state as of the last change set, and drop history that is older than anybody needs."""
        async with self._turn:
            keeping = self._snapshot() if self.ready.is_set() else None
        if keeping is not None:
            await keeping

    def _snapshot(self) -> Coroutine[None, None, None]:
        return self._facts.snapshot(self.local.store.objects.values(), self._positions)

    def _arm(self) -> None:
        delays = [due - self._clock.now()] if (due := self.local.deadline()) is not None else []
        delays += [silent - ticks()] if (silent := self.local.next_silence(self._seen)) is not None else []
        self._alarm.set(delays)
