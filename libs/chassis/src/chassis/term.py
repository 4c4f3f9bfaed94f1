"""One term of leadership of a deciding service.

It begins with an entry in the service's own log; from then on every commit expects that log's last sequence, so a
predecessor that still runs is refused by the bus. It ends with the first commit that is refused.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import aclosing

import orjson
from google.protobuf.message import DecodeError

from bus import Bus, Entry, Log, Parked, Subscription
from bus.ports import Handler
from chassis.clock import Clock
from chassis.core import Core, Reading, Remembering
from chassis.endings import end
from chassis.fact_fold import FactFold, load, relevant
from chassis.in_flight import InFlight
from chassis.log_reader import Inbox, follow
from chassis.measures import Measures
from chassis.topics import BY_DECISION, STATE, newest, topic_of, trim
from chassis.tracing import TRACEPARENT, NoTracer, Tracer
from kube import Decision
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, decode_commit, encode_commit
from tidegate.codec.facts import Interest
from tidegate.decision.v1 import decision_pb2

log = logging.getLogger(__name__)

FACTS = "facts"
LONGEST_SLEEP_MS = 60_000
"""A deadline is looked at again after this long at most: the machine's clock may have jumped meanwhile."""

HISTORY = 50_000
"""How many commits of its own a service keeps behind those that were carried out, to be explained and replayed."""
TRIM_EVERY = 1_000


class Term:
    """A core of its own, how far it has read everything, and what it has decided without an outcome yet."""

    def __init__(
        self,
        service: str,
        core: Core,
        bus: Bus,
        clock: Clock,
        inputs: tuple[str, ...],
        queries: tuple[str, ...],
        holder: str,
        measures: Measures,
        gate: asyncio.Event,
        interest: Interest | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.service, self.core, self.measures, self._gate = service, core, measures, gate
        self._bus, self._clock, self._inputs, self._queries = bus, clock, inputs, queries
        self._log = bus.log(subjects.decisions(service))
        self._facts = bus.log(subjects.FACTS)
        self._inbox = Inbox()
        self._readers: list[asyncio.Task[None]] = []
        self._serving: list[Subscription] = []
        self._timer: asyncio.TimerHandle | None = None
        self._interest = interest
        self._tracer = tracer or NoTracer()
        self._cause: Mapping[str, str] = {}
        """The trace of the newest fact that had one: what is decided next goes on with it."""
        self.fold = FactFold(interest)
        self.in_flight = InFlight()
        self.heard: dict[str, int] = {}
        self._goals: dict[str, int] = {}
        self._last = self._epoch = self._count = 0
        # Two processes may have one name: what either of them appends must never pass for the other's.
        self._writer = f"{service}/{holder}/{uuid.uuid4().hex}"

    async def begin(self) -> None:
        """Claim the log, then read everything: snapshot, facts, other services, own decisions without outcome."""
        decided_on = await self._claim()
        await self._restore()
        self.fold, events = await load(self._facts, decided_on, self._interest)
        if isinstance(self.core, Reading):
            self.core.read_from(self.fold.store)
        self.core.fold(events, self.fold.at_ms)
        for service in self._inputs:
            await self._listen_to(service)
        goal = await self._facts.last()
        self._follow(FACTS, self._facts, self.fold.revision)
        while self.fold.revision < goal or any(self.heard[name] < self._goals[name] for name in self._inputs):
            await self._inbox.wait()
            self._check_readers()
            self._take()
        await self._recall()
        for name in self._queries:
            subject = subjects.question(self.service, name)
            self._serving.append(await self._bus.serve(subject, self._answer(name)))

    async def go_on(self) -> None:
        """Decide, commit, wait; until the bus refuses a commit."""
        while True:
            await self._decide()
            self._arm()
            await self._inbox.wait()
            await self._gate.wait()
            self._check_readers()
            self._take()

    async def end(self) -> None:
        """Stop reading and answering."""
        await end(*self._readers)
        for serving in self._serving:
            await serving.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _check_readers(self) -> None:
        for reader in self._readers:
            if reader.done():
                reader.result()

    async def _claim(self) -> int | None:
        """Start the term in the log; what the predecessor had read when it decided last, if there was one."""
        self._last = await self._log.last()
        decided_on = await self._decided_on()
        self._epoch = self._last + 1
        # The first term of all begins at the present: who comes after it need not go back further.
        begun_on = await self._facts.last() if decided_on is None else decided_on
        head = CommitHead(self.service, self._epoch, begun_on, self._clock.now(), leader_started=True)
        message_id = f"{self._writer}/{self._epoch}/started"
        self._last = await self._log.append(encode_commit(head, ()), expected=self._last, message_id=message_id)
        return decided_on

    async def _decided_on(self) -> int | None:
        """What the newest commit that can be read was decided on; None where there is none."""
        sequence, first = self._last, await self._log.first()
        while sequence >= first:
            async with aclosing(self._log.read(sequence - 1)) as reader:
                (entry, *_) = await anext(reader)
            try:
                return decision_pb2.Commit.FromString(entry.payload).decided_on
            except DecodeError:
                sequence -= 1
        return None

    async def _restore(self) -> None:
        if isinstance(self.core, Remembering):
            entry = await newest(self._log, STATE)
            if entry is not None:
                self.core.restore(decision_pb2.Commit.FromString(entry.payload).private_state)

    async def _listen_to(self, service: str) -> None:
        source = self._bus.log(subjects.decisions(service))
        after = self._goals[service] = await source.last()
        for topic in sorted(set(BY_DECISION.values())):
            entry = await newest(source, topic)
            if entry is not None:
                after = min(after, entry.sequence - 1)
        self.heard[service] = after
        self._follow(service, source, after)

    def _follow(self, name: str, source: Log, after: int) -> None:
        reading = follow(self._inbox, name, source, after)
        task = asyncio.create_task(reading, name=f"{self.service} reads {name}")
        task.add_done_callback(lambda _: self._inbox.wake())
        self._readers.append(task)

    async def _recall(self) -> None:
        """What was told last is known, and own decisions that have no outcome yet count as done."""
        for topic in sorted(set(BY_DECISION.values())):
            told = await newest(self._log, topic)
            if told is not None:
                self._take_decisions(self.service, told)
        position = max(self.fold.positions.get(self.service, 0), await self._log.first() - 1)
        async with aclosing(self._log.read(position)) as reader:
            while position < self._last:
                for entry in await anext(reader):
                    position = entry.sequence
                    self._recall_commit(entry)

    def _recall_commit(self, entry: Entry) -> None:
        try:
            decided = list(decode_commit(decision_pb2.Commit.FromString(entry.payload)))
        except Exception as error:
            self._park(self.service, entry, error)
            return
        for decision_id, decision in decided:
            self._assume(decision_id, decision)

    def _assume(self, decision_id: str, decision: Decision) -> None:
        self.in_flight.add(decision_id, decision)
        self.core.assume(decision_id, decision)

    def _take(self) -> None:
        for source, entry in self._inbox.take():
            try:
                if source == FACTS:
                    self._take_fact(entry)
                else:
                    self._take_decisions(source, entry)
            except Exception as error:
                self._park(source, entry, error)

    def _take_fact(self, entry: Entry) -> None:
        folded = self.fold.take(entry)
        if folded is None:
            return
        self.measures.facts.inc()
        self._cause = entry.headers if TRACEPARENT in entry.headers else self._cause
        outcomes = relevant(folded.outcomes, self.service)
        for outcome in outcomes:
            # Before the core is asked: a fact that it stumbles over must not leave a subject in flight for ever.
            if self.in_flight.settle(outcome, self._clock.now()):
                self.measures.outcomes.labels(outcome.name, str(outcome.applied).lower()).inc()
        try:
            if folded.events:
                self.core.fold(folded.events, folded.at_ms)
        finally:
            for outcome in outcomes:
                self.core.settle(outcome)

    def _take_decisions(self, source: str, entry: Entry) -> None:
        if source != self.service:
            self.heard[source] = max(self.heard[source], entry.sequence)
        for _, decision in decode_commit(decision_pb2.Commit.FromString(entry.payload)):
            if source != self.service or decision.name in BY_DECISION:
                self.core.hear(source, decision)

    def _park(self, source: str, entry: Entry, error: Exception) -> None:
        name = subjects.FACTS if source == FACTS else subjects.decisions(source)
        where, text = f"{name}/{entry.sequence}", f"{type(error).__name__}: {error}"
        log.exception("message_parked", extra={"service": self.service, "source": where})
        self.measures.parked.inc()
        parked = Parked(self._clock.now(), self.service, where, text, entry.payload)
        self._readers.append(asyncio.create_task(self._bus.park(parked), name=f"{self.service} parks {where}"))

    async def _decide(self) -> None:
        now = self._clock.now()
        self.in_flight.wake(now)
        started = time.perf_counter()
        decisions = self.core.decide(now, self.in_flight)
        private = self.core.remember() if isinstance(self.core, Remembering) else None
        self.measures.decide_seconds.observe(time.perf_counter() - started)
        if decisions or private is not None:
            with self._tracer.span(f"{self.service} decides", self._cause, decisions=len(decisions)):
                await self._commit(decisions, private, now)
        self.measures.revision.set(self.fold.revision)
        self.measures.in_flight.set(len(self.in_flight))

    async def _commit(self, decisions: list[Decision], private: bytes | None, now: int) -> None:
        numbered: list[tuple[str, Decision]] = []
        for decision in decisions:
            self._count += 1
            numbered.append((f"{self.service}/{self._epoch}/{self._count}", decision))
            self.measures.decisions.labels(decision.name).inc()
        resting = self.in_flight.resting()
        head = CommitHead(self.service, self._epoch, self.fold.revision, now, dict(self.heard), resting=resting)
        payload = encode_commit(head, numbered, private or b"")
        for decision_id, decision in numbered:
            self._assume(decision_id, decision)
        topic = topic_of((decision.name for decision in decisions), with_state=private is not None)
        message_id = f"{self._writer}/{self._epoch}/commit/{self._last + 1}"
        started = time.perf_counter()
        self._last = await self._log.append(
            payload, expected=self._last, message_id=message_id, headers=self._tracer.carrier(), topic=topic
        )
        self.measures.commit_seconds.observe(time.perf_counter() - started)
        if self._last % TRIM_EVERY == 0:
            await trim(self._log, self.fold.positions.get(self.service, 0) - HISTORY)

    def _arm(self) -> None:
        """Set the alarm for the next time something is due without a fact."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [when for when in (self.core.deadline(), self.in_flight.deadline()) if when is not None]
        if due:
            delay_ms = min(LONGEST_SLEEP_MS, max(1, min(due) - self._clock.now()))
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._inbox.wake)

    def _answer(self, name: str) -> Handler:
        async def answer(payload: bytes) -> bytes:
            arguments = {"now": self._clock.now(), **orjson.loads(payload)}
            return orjson.dumps(self.core.query(name, arguments), option=orjson.OPT_NON_STR_KEYS)

        return answer
