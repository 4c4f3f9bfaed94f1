"""One term of leadership of a deciding service.

It begins with an entry in the service's own log; from then on every commit expects that log's last sequence, so a
predecessor that still runs is refused by the bus. It ends with the first commit that is refused.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager

import orjson

from bus import Bus, Entry, Log, Parked, Subscription
from bus.ports import Handler
from chassis.clock import Clock
from chassis.core import Confiding, Core, CoreFailed, Reading, Remembering
from chassis.endings import end
from chassis.fact_fold import FactFold, load, relevant
from chassis.in_flight import InFlight
from chassis.log_reader import Inbox, follow
from chassis.measures import Measures
from chassis.own_log import OwnLog
from chassis.quarantine import Quarantine
from chassis.topics import BY_DECISION, STATE, newest, topic_of
from chassis.tracing import TRACEPARENT, NoTracer, Tracer
from kube import Decision, Event, Key, Outcome
from tidegate import subjects
from tidegate.codec.decisions import CommitHead, decode_commit, encode_commit
from tidegate.codec.facts import Interest
from tidegate.decision.v1 import decision_pb2

log = logging.getLogger(__name__)

FACTS = "facts"
LONGEST_SLEEP_MS = 60_000
"""A deadline is looked at again after this long at most: the machine's clock may have jumped meanwhile."""


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
        quarantine: Quarantine | None = None,
        from_present: bool = False,
        told: Mapping[tuple[str, str], Decision] | None = None,
    ) -> None:
        """``from_present``: the core is shown what there is now, and nothing of how it came to be.

        ``told`` is what the term before had heard: it stands in where the newest that was said is set aside.
        """
        self.service, self.core, self.measures, self._gate = service, core, measures, gate
        self._bus, self._clock, self._inputs, self._queries = bus, clock, inputs, queries
        self._own = OwnLog(service, bus.log(subjects.decisions(service)), holder)
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
        self.told = dict(told or {})
        """The newest decisions heard, of those of which only the newest counts, by service and name."""
        self.private_state: bytes | None = None
        self._quarantine = quarantine or Quarantine()
        self._from_present = self._blind = from_present
        self._goals: dict[str, int] = {}

    async def begin(self) -> None:
        """Claim the log, then read everything: snapshot, facts, other services, own decisions without outcome."""
        decided_on = await self._own.claim(self._facts, self._clock.now())
        await self._restore()
        self.fold, events = await load(self._facts, None if self._from_present else decided_on, self._interest)
        if isinstance(self.core, Reading):
            self.core.read_from(self.fold.store)
        self._show(events, self.fold.at_ms)
        for (service, _), decision in self.told.items() if self._quarantine.entries else ():
            with self._asking():
                self.core.hear(service, decision)
        for service in self._inputs:
            await self._listen_to(service)
        goal = await self._facts.last()
        self._follow(FACTS, self._facts, self.fold.revision)
        while self.fold.revision < goal or any(self.heard[name] < self._goals[name] for name in self._inputs):
            await self._inbox.wait()
            self._check_readers()
            self._take()
        if self._from_present:
            self._blind = False
            self._show([Event(None, item) for item in self.fold.store.objects.values()], self.fold.at_ms)
        await self._recall()
        for name in self._queries:
            question = subjects.question(self.service, name)
            self._serving.append(await self._bus.serve(question, self._answer(name)))

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

    async def _restore(self) -> None:
        if isinstance(self.core, Remembering):
            entry = await newest(self._own.log, STATE)
            if entry is not None and (self.service, entry.sequence) not in self._quarantine.entries:
                self.private_state = decision_pb2.Commit.FromString(entry.payload).private_state
                with self._asking(self.service, entry):
                    self.core.restore(self.private_state)

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
            told = await newest(self._own.log, topic)
            if told is not None:
                self._take_decisions(self.service, told)
        position = max(self.fold.positions.get(self.service, 0), await self._own.log.first() - 1)
        async with aclosing(self._own.log.read(position)) as reader:
            while position < self._own.last:
                for entry in await anext(reader):
                    position = entry.sequence
                    self._recall_commit(entry)

    def _recall_commit(self, entry: Entry) -> None:
        try:
            decided = list(decode_commit(decision_pb2.Commit.FromString(entry.payload)))
        except Exception as error:
            self._park(self.service, entry, error)
            return
        known = (self.service, entry.sequence) not in self._quarantine.entries
        for decision_id, decision in decided:
            self.in_flight.add(decision_id, decision)
            with self._asking(self.service, entry):
                if known:
                    self.core.assume(decision_id, decision)

    @contextmanager
    def _asking(self, source: str = "", entry: Entry | None = None) -> Iterator[None]:
        """While the core works: what it raises is told apart from all other errors."""
        try:
            yield
        except Exception as error:
            raise CoreFailed(error, self._clock.now(), source, entry) from error

    def _show(self, events: Sequence[Event], at_ms: int) -> None:
        if self._blind:
            return
        shown = self._quarantine.shown(events, _ticks())
        with self._asking():
            if shown or not events:
                self.core.fold(shown, at_ms)

    def _take(self) -> None:
        for source, entry in self._inbox.take():
            try:
                if source == FACTS:
                    self._take_fact(entry)
                else:
                    self._take_decisions(source, entry)
            except CoreFailed:
                raise
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
            if self.in_flight.settle(outcome, _ticks()):
                self.measures.outcomes.labels(outcome.name, str(outcome.applied).lower()).inc()
        if folded.events:
            self._show(folded.events, folded.at_ms)
        with self._asking():
            for outcome in () if self._blind else outcomes:
                self.core.settle(outcome)

    def _take_decisions(self, source: str, entry: Entry) -> None:
        if source != self.service:
            self.heard[source] = max(self.heard[source], entry.sequence)
        if (source, entry.sequence) in self._quarantine.entries:
            return
        for _, decision in decode_commit(decision_pb2.Commit.FromString(entry.payload)):
            if source == self.service and decision.name not in BY_DECISION:
                continue
            with self._asking(source, entry):
                self.core.hear(source, decision)
            if decision.name in BY_DECISION:
                self.told[source, decision.name] = decision

    def _park(self, source: str, entry: Entry, error: Exception) -> None:
        name = subjects.FACTS if source == FACTS else subjects.decisions(source)
        where, text = f"{name}/{entry.sequence}", f"{type(error).__name__}: {error}"
        log.exception("message_parked", extra={"service": self.service, "source": where})
        self.measures.parked.inc()
        self._put_aside(where, text, entry.payload)

    def _put_aside(self, where: str, text: str, payload: bytes) -> None:
        parked = Parked(self._clock.now(), self.service, where, text, payload)
        self._readers.append(asyncio.create_task(self._bus.park(parked), name=f"{self.service} parks {where}"))

    async def _decide(self) -> None:
        now = self._clock.now()
        for subject, until in self._quarantine.resting():
            self.in_flight.rest(subject, until)
        rested = self.in_flight.wake(_ticks())
        started = time.perf_counter()
        with self._asking():
            for subject in rested:
                self.core.settle(Outcome("", "", subject, True))
            if released := self._quarantine.release(self.fold.store, _ticks()):
                self.core.fold(released, now)
            decisions = self.core.decide(now, self.in_flight)
            private = self.core.remember() if isinstance(self.core, Remembering) else None
            failures = self.core.take_failures() if isinstance(self.core, Confiding) else {}
        for key, text in failures.items():
            self._park_object(key, text)
        self.measures.decide_seconds.observe(time.perf_counter() - started)
        if decisions or private is not None:
            with self._tracer.span(f"{self.service} decides", self._cause, decisions=len(decisions)):
                await self._commit(decisions, private, now)
        self.measures.revision.set(self.fold.revision)
        self.measures.in_flight.set(len(self.in_flight))

    async def _commit(self, decisions: list[Decision], private: bytes | None, now: int) -> None:
        numbered = [(self._own.next_id(), decision) for decision in decisions]
        for decision in decisions:
            self.measures.decisions.labels(decision.name).inc()
        resting = self.in_flight.resting()
        head = CommitHead(self.service, self._own.epoch, self.fold.revision, now, dict(self.heard), resting=resting)
        with self._asking():
            payload = encode_commit(head, numbered, private or b"")
            for decision_id, decision in numbered:
                self.core.assume(decision_id, decision)
        for decision_id, decision in numbered:
            self.in_flight.add(decision_id, decision)
        topic = topic_of((decision.name for decision in decisions), with_state=private is not None)
        started = time.perf_counter()
        await self._own.commit(payload, self._tracer.carrier(), topic)
        self.private_state = self.private_state if private is None else private
        self.measures.commit_seconds.observe(time.perf_counter() - started)
        await self._own.drop_history(self.fold.positions.get(self.service, 0))

    def _arm(self) -> None:
        """Set the alarm for the next time something is due without a fact."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._asking():
            deadline = self.core.deadline()
        rests = (self.in_flight.deadline(), self._quarantine.deadline())
        due = [when - _ticks() for when in rests if when is not None]
        due += [] if deadline is None else [deadline - self._clock.now()]
        if due:
            delay_ms = min(LONGEST_SLEEP_MS, max(1, min(due)))
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._inbox.wake)

    def _park_object(self, key: Key, text: str) -> None:
        """Put aside an object that the core can make nothing of, as it is now; the core goes on by itself."""
        log.error("object_parked", extra={"service": self.service, "object": str(key), "detail": text})
        self.measures.parked.inc()
        item = self.fold.store.get(key)
        self._put_aside(str(key), text, orjson.dumps(item.manifest()) if item is not None else b"")

    def _answer(self, name: str) -> Handler:
        async def answer(payload: bytes) -> bytes:
            question = {"now": self._clock.now(), **orjson.loads(payload)}
            content = self.core.query(name, question)
            about = Key(*(str(question.get(part) or "") for part in ("kind", "namespace", "name")))
            if aside := self._quarantine.about(about, _ticks()):
                content = {**content, "verdict": "SetAside", "rule": "", "message": aside}
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)

        return answer


def _ticks() -> int:
    """Milliseconds of a clock that never jumps: what pauses are measured with."""
    return round(asyncio.get_running_loop().time() * 1000)
