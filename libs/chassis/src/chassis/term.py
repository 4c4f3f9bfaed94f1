"""One term of leadership of a deciding service.

It begins with an entry in the service's own log; from then on every commit expects that log's last sequence, so a
predecessor that still runs is refused by the bus. It ends with the first commit that is refused.
"""

import time
from collections import Counter
from collections.abc import Mapping

from chassis.alarm import Alarm, ticks
from chassis.core import Confiding, Core
from chassis.intake import Intake
from chassis.own_log import OwnLog
from chassis.parking import Parking
from chassis.private_state import asking
from chassis.quarantine import Quarantine
from chassis.questions import Questions
from chassis.role import Role, Workplace
from chassis.topics import topic_of
from kube import Decision, Key, Outcome
from tidegate import subjects
from tidegate.codec.decisions import NOTHING_PRIVATE, CommitHead, Private, encode_commit


class Term:
    """A core of its own, how far it has read everything, and what it has decided without an outcome yet."""

    def __init__(
        self,
        role: Role,
        workplace: Workplace,
        core: Core,
        quarantine: Quarantine,
        *,
        told: Mapping[tuple[str, str], Decision],
        from_present: bool = False,
    ) -> None:
        self.role, self.core = role, core
        # Asked once: to look whether an object has the methods of a protocol takes longer than many a decision.
        self._confiding = core if isinstance(core, Confiding) else None
        self._ask = asking(core)
        self._work, self._quarantine = workplace, quarantine
        log = workplace.bus.log(subjects.decisions(role.service))
        self._own = OwnLog(role.service, log, workplace.holder, role.history)
        self._facts = workplace.bus.log(subjects.FACTS)
        self.intake = Intake(role, workplace, core, quarantine, told, from_present)
        self._questions = Questions(role, workplace, core, quarantine)
        self._parking = Parking(role.service, workplace.bus, workplace.clock, workplace.measures)
        self._alarm = Alarm(self.intake.inbox.wake)

    async def begin(self) -> None:
        """Claim the log, read everything, then answer questions."""
        decided_on = await self._own.claim(self._facts, self._work.clock.now())
        await self.intake.catch_up(self._own, decided_on)
        await self._questions.serve()

    async def go_on(self) -> None:
        """Decide, commit, wait; until the bus refuses a commit."""
        while True:
            await self._decide()
            self._arm()
            await self.intake.inbox.wait()
            await self._work.gate.wait()
            self.intake.take()

    async def end(self) -> None:
        """Stop reading and answering."""
        await self.intake.readers.end()
        await self._questions.stop()
        self._alarm.cancel()

    async def _decide(self) -> None:
        now, in_flight, measures = self._work.clock.now(), self.intake.in_flight, self._work.measures
        for subject, until in self._quarantine.resting():
            in_flight.rest(subject, until)
        rested = in_flight.wake(ticks())
        started = time.perf_counter()
        with self.intake.asking():
            for subject in rested:
                self.core.settle(Outcome("", "", subject, True))
            if released := self._quarantine.release(self.intake.fold.store, ticks()):
                self.core.fold(released, now)
            decisions = self.core.decide(now, in_flight)
            private = self._ask(self.intake.private)
            failures = self._confiding.take_failures() if self._confiding else {}
        for key, text in failures.items():
            self._park(key, text)
        measures.decide_seconds.observe(time.perf_counter() - started)
        if decisions or private is not None:
            with self._work.tracer.span(f"{self.role.service} decides", self.intake.cause, decisions=len(decisions)):
                await self._commit(decisions, private, now)
        measures.revision.set(self.intake.fold.revision)
        measures.in_flight.set(len(in_flight))

    async def _commit(self, decisions: list[Decision], private: Private | None, now: int) -> None:
        intake, measures = self.intake, self._work.measures
        numbered = [(self._own.next_id(), decision) for decision in decisions]
        for name, count in Counter(decision.name for decision in decisions).items():
            measures.decisions.labels(name).inc(count)
        resting = intake.in_flight.resting()
        head = CommitHead(
            self.role.service, self._own.epoch, intake.fold.revision, now, dict(intake.heard), resting=resting
        )
        with intake.asking():
            payload = encode_commit(head, numbered, private or NOTHING_PRIVATE)
            for decision_id, decision in numbered:
                self.core.assume(decision_id, decision)
        for decision_id, decision in numbered:
            intake.in_flight.add(decision_id, decision)
        whole = private is not None and private.is_whole
        topic = topic_of((decision.name for decision in decisions), with_state=whole)
        started = time.perf_counter()
        await self._own.commit(payload, self._work.tracer.carrier(), topic)
        if private is not None:
            intake.private.take(private)
        measures.commit_seconds.observe(time.perf_counter() - started)
        await self._own.drop_history(intake.fold.positions.get(self.role.service, 0))

    def _arm(self) -> None:
        """Set the alarm for the next time something is due without a fact."""
        with self.intake.asking():
            deadline = self.core.deadline()
        rests = (self.intake.in_flight.deadline(), self._quarantine.deadline())
        due = [when - ticks() for when in rests if when is not None]
        self._alarm.set(due + ([] if deadline is None else [deadline - self._work.clock.now()]))

    def _park(self, key: Key, text: str) -> None:
        """Put aside an object that the core can make nothing of; the core goes on by itself."""
        parking = self._parking.item(key, text, self.intake.fold.store.get(key))
        self.intake.readers.beside(parking, f"parks {key}")
