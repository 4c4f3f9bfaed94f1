"""What a core has been given in one term: the facts, what other services decided, and its own decisions without outcome."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress

from google.protobuf.message import DecodeError

from bus import Entry
from chassis.alarm import ticks
from chassis.core import Core, CoreFailed, Piecemeal, Reading, Remembering
from chassis.fact_fold import FactFold, load, relevant
from chassis.in_flight import InFlight
from chassis.log_reader import Inbox, Readers, between
from chassis.own_log import OwnLog
from chassis.parking import Parking
from chassis.private_state import PrivateState, private_of
from chassis.quarantine import Quarantine
from chassis.role import Role, Workplace
from chassis.topics import BY_DECISION, STATE, newest
from chassis.tracing import TRACEPARENT
from kube import Decision, Event
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2

FACTS = "facts"


class Intake:
    """How far everything has been read; what cannot be read is parked, and what the core stumbles over is CoreFailed.

    With ``from_present`` the core is shown what there is now, and nothing of how it came to be. ``told`` is what the term
    before had heard: it stands in where the newest that was said is set aside.
    """

    def __init__(
        self,
        role: Role,
        workplace: Workplace,
        core: Core,
        quarantine: Quarantine,
        told: Mapping[tuple[str, str], Decision],
        from_present: bool,
    ) -> None:
        self._role, self._bus, self._measures = role, workplace.bus, workplace.measures
        self._now, self._core, self._quarantine = workplace.clock.now, core, quarantine
        self._facts = workplace.bus.log(subjects.FACTS)
        self._parking = Parking(role.service, workplace.bus, workplace.clock, workplace.measures)
        self.inbox = Inbox()
        self.readers = Readers(role.service, self.inbox)
        self.fold = FactFold(role.interest)
        self.in_flight = InFlight()
        self.heard: dict[str, int] = {}
        """How far the decisions of each input have been read."""

        self.told = dict(told)
        """The newest decisions heard, of those of which only the newest counts, by service and name."""

        self.private = PrivateState()
        self.cause: Mapping[str, str] = {}
        """The trace of the newest fact that had one: what is decided next goes on with it."""

        self._from_present = self._blind = from_present
        self._goals: dict[str, int] = {}

    async def catch_up(self, own: OwnLog, decided_on: int | None) -> None:
        """Read everything: snapshot, facts, other services, own decisions without outcome."""
        await self._restore(own)
        self.fold, events = await load(self._facts, None if self._from_present else decided_on, self._role.interest)
        if isinstance(self._core, Reading):
            self._core.read_from(self.fold.store)
        self._show(events, self.fold.at_ms)
        for (service, _), decision in self.told.items() if self._quarantine.entries else ():
            with self.asking():
                self._core.hear(service, decision)
        for service in self._role.inputs:
            await self._listen_to(service)
        goal = await self._facts.last()
        self.readers.follow(FACTS, self._facts, self.fold.revision)
        while self.fold.revision < goal or any(self.heard[name] < self._goals[name] for name in self._role.inputs):
            await self.inbox.wait()
            self.take()
        if self._from_present:
            self._blind = False
            self._show([Event(None, item) for item in self.fold.store.objects.values()], self.fold.at_ms)
        await self._recall(own)

    def take(self) -> None:
        """Give the core all that has come."""
        self.readers.check()
        for source, entry in self.inbox.take():
            try:
                if source == FACTS:
                    self._take_fact(entry)
                else:
                    self._take_decisions(source, entry)
            except CoreFailed:
                raise
            except Exception as error:
                self._park(source, entry, error)

    @contextmanager
    def asking(self, source: str = "", entry: Entry | None = None) -> Iterator[None]:
        """While the core works: what it raises is told apart from all other errors."""
        try:
            yield
        except Exception as error:
            raise CoreFailed(error, self._now(), source, entry) from error

    async def _restore(self, own: OwnLog) -> None:
        if not isinstance(self._core, Remembering | Piecemeal):
            return
        entry = await newest(own.log, STATE)
        if entry is None or (self._role.service, entry.sequence) in self._quarantine.entries:
            return
        self.private.take(private_of(decision_pb2.Commit.FromString(entry.payload)))
        for later in await between(own.log, entry.sequence, own.last) if isinstance(self._core, Piecemeal) else ():
            with suppress(DecodeError):
                self.private.take(private_of(decision_pb2.Commit.FromString(later.payload)))
        with self.asking(self._role.service, entry):
            self.private.give(self._core)

    async def _listen_to(self, service: str) -> None:
        source = self._bus.log(subjects.decisions(service))
        after = self._goals[service] = await source.last()
        for topic in sorted(set(BY_DECISION.values())):
            entry = await newest(source, topic)
            if entry is not None:
                after = min(after, entry.sequence - 1)
        self.heard[service] = after
        self.readers.follow(service, source, after)

    async def _recall(self, own: OwnLog) -> None:
        """What was told last is known, and own decisions that have no outcome yet count as done."""
        for topic in sorted(set(BY_DECISION.values())):
            told = await newest(own.log, topic)
            if told is not None:
                self._take_decisions(self._role.service, told)
        position = max(self.fold.positions.get(self._role.service, 0), await own.log.first() - 1)
        async with aclosing(own.log.read(position)) as reader:
            while position < own.last:
                for entry in await anext(reader):
                    position = entry.sequence
                    self._recall_commit(entry)

    def _recall_commit(self, entry: Entry) -> None:
        service = self._role.service
        try:
            decided = list(decode_commit(decision_pb2.Commit.FromString(entry.payload)))
        except Exception as error:
            self._park(service, entry, error)
            return
        known = (service, entry.sequence) not in self._quarantine.entries
        for decision_id, decision in decided:
            self.in_flight.add(decision_id, decision)
            with self.asking(service, entry):
                if known:
                    self._core.assume(decision_id, decision)

    def _show(self, events: Sequence[Event], at_ms: int) -> None:
        if self._blind:
            return
        shown = self._quarantine.shown(events, ticks())
        with self.asking():
            if shown or not events:
                self._core.fold(shown, at_ms)

    def _take_fact(self, entry: Entry) -> None:
        folded = self.fold.take(entry)
        if folded is None:
            return
        self._measures.facts.inc()
        self.cause = entry.headers if TRACEPARENT in entry.headers else self.cause
        outcomes = relevant(folded.outcomes, self._role.service)
        at = ticks()
        settled = Counter((item.name, item.applied) for item in outcomes if self.in_flight.settle(item, at))
        for (name, applied), count in settled.items():
            self._measures.outcomes.labels(name, str(applied).lower()).inc(count)
        if folded.events:
            self._show(folded.events, folded.at_ms)
        with self.asking():
            for outcome in () if self._blind else outcomes:
                self._core.settle(outcome)

    def _take_decisions(self, source: str, entry: Entry) -> None:
        if source != self._role.service:
            self.heard[source] = max(self.heard[source], entry.sequence)
        if (source, entry.sequence) in self._quarantine.entries:
            return
        for _, decision in decode_commit(decision_pb2.Commit.FromString(entry.payload)):
            if source == self._role.service and decision.name not in BY_DECISION:
                continue
            with self.asking(source, entry):
                self._core.hear(source, decision)
            if decision.name in BY_DECISION:
                self.told[source, decision.name] = decision

    def _park(self, source: str, entry: Entry, error: Exception) -> None:
        name = subjects.FACTS if source == FACTS else subjects.decisions(source)
        where = f"{name}/{entry.sequence}"
        self.readers.beside(self._parking.entry(where, entry, error), f"parks {where}")
