"""The gateway for a cluster with an API server: what is seen of it becomes facts, what is decided becomes requests.

As on the other drivers there is one writer of facts, and nothing is answered before it is stored. Watches have no order among
one another, so the log's order is that of arrival; how far each was read is stored with the facts that came from it, and so
is how far the decisions of each service came to their outcomes. A successor goes on from both.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from apiserver.api import Api, Unreachable
from bus import Bus, Entry, StaleWriter, Subscription
from chassis.clock import Clock
from chassis.endings import end
from chassis.measures import Measures
from chassis.parking import Parking
from chassis.tracing import TRACEPARENT, NoTracer, Tracer
from cluster_gateway.batch import Batch
from cluster_gateway.domain.bootstrap import QUEUES
from cluster_gateway.domain.carrying_out import objections
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.domain.writing import Conflict
from cluster_gateway.fact_writer import FactWriter
from cluster_gateway.kubernetes.carrier import Carried, Carrier
from cluster_gateway.kubernetes.event_writer import EventWriter
from cluster_gateway.kubernetes.node_reports import NodeReports
from cluster_gateway.kubernetes.positions import Positions
from cluster_gateway.kubernetes.reflector import Listed, Watched
from cluster_gateway.kubernetes.requests import NotServed
from cluster_gateway.kubernetes.watching import Watching
from cluster_gateway.kubernetes.writer import Unwritten, Writer
from cluster_gateway.recovery import recover
from cluster_gateway.refused_commit import refused
from cluster_gateway.settings import GatewaySettings
from cluster_gateway.write_message import write_of
from kube import Decision, Key, Mutation, Outcome, Store, Verb, api_version_of
from tidegate import subjects
from tidegate.codec.blobs import BlobReader
from tidegate.codec.decisions import decode_commit
from tidegate.codec.garbage import no_collection
from tidegate.decision.v1 import decision_pb2
from tidegate.gateway.v1 import gateway_pb2
from tidegate.node.v1 import node_pb2

log = logging.getLogger(__name__)

QUEUE = "Queue.scheduling.volcano.sh"
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
        self.mirror = Mirror(Store())
        self._carrier = Carrier(api, self.mirror, {})
        self._positions = Positions({})
        self._reports = NodeReports(api, self.mirror, {})
        self._events = EventWriter(api, holder, lambda: self._carrier.busy)
        self._epochs: dict[str, int] = {}
        self._work: deque[Callable[[Batch], None]] = deque()
        self._decided: deque[tuple[str, Entry]] = deque()
        self._wake = asyncio.Event()
        self._watching = Watching(api, kinds, self._hand_on, self._kind_gone, self._wake.set)
        self._keeping: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Take the lease, rebuild the state, then go on until the log refuses a write or the task is cancelled."""
        lease = await self._bus.lease("cluster_gateway", self._holder)
        await lease.wait()
        tasks: list[asyncio.Task[None]] = []
        serving: list[Subscription] = []
        try:
            async with self._api:
                await self._begin()
                tasks.append(asyncio.create_task(self._watching.run(), name="watches"))
                tasks.append(asyncio.create_task(self._events.run(), name="events"))
                for task in tasks:
                    task.add_done_callback(lambda _: self._wake.set())
                await self._serve(tasks, serving)
        except StaleWriter as stale:
            raise SystemExit(f"another gateway writes the facts: {stale}") from stale
        finally:
            self.ready.clear()
            for subscription in serving:
                await subscription.stop()
            await end(*tasks, *self._carrier.running, *(() if self._keeping is None else (self._keeping,)))
            await lease.release()

    async def _begin(self) -> None:
        found = await recover(self._bus, self._settings.services, self._parking)
        self._facts.begin(found.fold.revision, found.snapshot_at)
        with no_collection():
            self.mirror = Mirror(found.fold.store)
        self._carrier = Carrier(self._api, self.mirror, self._watching.served)
        self._positions = Positions(found.positions)
        self._reports = NodeReports(self._api, self.mirror, self._watching.served)
        known = {name.removeprefix(WATCH): at for name, at in found.positions.items() if name.startswith(WATCH)}
        self._watching.versions.update(known)

    async def _on_write(self, payload: bytes) -> bytes:
        """A user's write: carried to the API server, answered once what it made of it is a fact."""
        request = gateway_pb2.WriteRequest.FromString(payload)
        writer = Writer(self._api, self.mirror, self._watching.served)
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

        self._work.append(take)
        self._wake.set()
        return (await reply).SerializeToString()

    async def _on_report(self, payload: bytes) -> bytes:
        """What an agent beside a kubelet says; the answer tells whether the API server has stored it."""
        error = await self._reports.take(node_pb2.Report.FromString(payload))
        return node_pb2.ReportReply(error=error).SerializeToString()

    async def _serve(self, tasks: list[asyncio.Task[None]], serving: list[Subscription]) -> None:
        """Facts first: decisions are looked at when every watch has told its state."""
        following = False
        while True:
            await self._wake.wait()
            self._wake.clear()
            for task in tasks:
                if task.done():
                    task.result()
            async with self._turn:
                await self._cycle()
            if self._watching.complete and not following:
                following = True
                for service in self._settings.services:
                    tasks.append(asyncio.create_task(self._follow(service), name=f"gateway reads {service}"))
                    tasks[-1].add_done_callback(lambda _: self._wake.set())
                self._make_queues()
                serving.append(await self._bus.serve(subjects.WRITE, self._on_write))
                serving.append(await self._bus.serve(subjects.REPORTS, self._on_report))
                self.ready.set()
            if self._work or self._decided:
                self._wake.set()
            if self._carrier.busy:
                await asyncio.sleep(GATHERING_SECONDS)

    def _make_queues(self) -> None:
        """The queues that every cluster has, where the kind is there and they are not."""
        keys = [Key(QUEUE, "", name) for name in QUEUES]
        made = tuple(
            Mutation(
                Verb.CREATE,
                key,
                manifest={"apiVersion": api_version_of(QUEUE), "kind": "Queue", "spec": QUEUES[key.name]},
            )
            for key in keys
            if self.mirror.store.get(key) is None
        )
        if made and QUEUE in self._watching.served:
            decision = Decision("QueuesMade", made[0].key, mutations=made)
            self._carrier.start("cluster_gateway", 0, "", decision, lambda _: None)

    async def _follow(self, service: str) -> None:
        source = self._bus.log(subjects.decisions(service))
        async for entries in source.read(self._positions.done.get(service, 0)):
            self._decided += ((service, entry) for entry in entries)
            self._wake.set()

    async def _hand_on(self, seen: Listed | Watched) -> None:
        """Returns once what was seen is stored: until then its watch reads no more, and the API server holds it back."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(batch: Batch) -> None:
            self._take_seen(seen)
            batch.enacted.append(stored)

        self._work.append(take)
        self._wake.set()
        await stored

    def _take_seen(self, seen: Listed | Watched) -> None:
        if isinstance(seen, Listed):
            self.mirror.listed(seen.kind, seen.items, seen.version)
        else:
            for is_gone, manifest in seen.changes:
                (self.mirror.gone if is_gone else self.mirror.seen)(seen.kind, manifest)
        self._positions.done[WATCH + seen.kind] = seen.version

    def _kind_gone(self, kind: str) -> None:
        def take(batch: Batch) -> None:
            self.mirror.without_kind(kind)
            self._positions.done.pop(WATCH + kind, None)

        self._work.append(take)
        self._wake.set()

    def _finished(self, carried: Carried) -> None:
        def take(batch: Batch) -> None:
            for effect in carried.effects:
                effect(self.mirror)
            batch.outcomes.append(carried.outcome)
            if carried.outcome.applied:
                self._events.tell(carried.service, carried.decision, self._clock.now())
            self._positions.ended(carried.service, carried.sequence)

        self._work.append(take)
        self._wake.set()

    async def _cycle(self) -> None:
        batch = Batch()
        self.mirror.begin(self._clock.now(), self._facts.last + 1)
        while self._work and self.mirror.edits < self._settings.most_edits:
            self._work.popleft()(batch)
        while self._decided and not self._work:
            await self._take_commit(*self._decided.popleft(), batch)
        edits = self.mirror.take()
        if edits or batch.outcomes:
            await self._facts.append(edits, batch, self._positions.done)
        batch.answer(self._facts.last)
        self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        """Beside the turns, where one is due: nobody waits for it."""
        if self._keeping is not None and self._keeping.done():
            self._keeping.result()
            self._keeping = None
        if self._keeping is None and self._facts.snapshot_due:
            snapshot = self._facts.snapshot(self.mirror.store.objects.values(), self._positions.done)
            self._keeping = asyncio.create_task(snapshot, name="gateway keeps a snapshot")

    async def _take_commit(self, service: str, entry: Entry, batch: Batch) -> None:
        if self._positions.seen(service, entry.sequence):
            return
        commit = decision_pb2.Commit()
        batch.cause = entry.headers if TRACEPARENT in entry.headers else batch.cause
        try:
            commit.ParseFromString(entry.payload)
            decisions = list(decode_commit(commit))
        except Exception as error:
            text = await self._parking.entry(f"{subjects.decisions(service)}/{entry.sequence}", entry, error)
            batch.outcomes += refused(commit, f"cannot be read: {text}")
            self._positions.began(service, entry.sequence, 0)
            return
        if commit.leader_started:
            self._epochs[service] = commit.epoch
        stale = commit.epoch < self._epochs.get(service, 0)
        begun = []
        for decision_id, decision in decisions:
            self.mirror.cluster.actor = service
            reasons = (
                {"": f"epoch {commit.epoch} of {service} is over"}
                if stale
                else objections(self.mirror.cluster, service, decision, commit.decided_on)
            )
            if reasons:
                batch.outcomes.append(Outcome(decision_id, decision.name, decision.subject, False, reasons))
            elif decision.mutations:
                begun.append((decision_id, decision))
            else:
                batch.outcomes.append(Outcome(decision_id, decision.name, decision.subject, True))
        self._positions.began(service, entry.sequence, len(begun))
        for decision_id, decision in begun:
            self._carrier.start(service, entry.sequence, decision_id, decision, self._finished)

    async def snapshot(self) -> None:
        """Keep the whole state as of the last change set, and drop history that is older than anybody needs."""
        async with self._turn:
            if self.ready.is_set():
                await self._facts.snapshot(self.mirror.store.objects.values(), self._positions.done)


def _reply(error: str, conflict_revision: int = 0) -> bytes:
    return gateway_pb2.WriteReply(error=error, conflict_revision=conflict_revision).SerializeToString()
