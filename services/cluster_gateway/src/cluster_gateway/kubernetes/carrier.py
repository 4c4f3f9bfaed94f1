"""Carrying decisions out on an API server: many at one time, those that touch the same object one after the other.

The rule for a gang whose binding fails half-way: every member's request is made, those that can be bound are, and the
outcome names the members that cannot, with the server's reason. What was bound is a fact with the outcome in one change set,
so the scheduler completes the gang, or takes it back by its own rules, from what is so.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from apiserver.api import CONNECTIONS
from cluster_gateway.kubernetes.errands import Effect, Errands, Work
from cluster_gateway.kubernetes.volumes import until_bound
from kube import Decision, Key, Mutation, Outcome, Verb

log = logging.getLogger(__name__)

MANY = 8
"""So many requests at one time are a burst."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of one decision: its outcome, and what it made of the objects. ``settled`` is for who has folded that."""

    service: str
    sequence: int
    decision: Decision
    outcome: Outcome
    effects: tuple[Effect, ...]
    settled: Callable[[], None]


@dataclass(slots=True)
class Carrier:
    """A decision that touches an object waits until what those before it made of the object is known: folded in the mirror."""

    errands: Errands
    _busy: dict[Key, "asyncio.Future[None]"] = field(default_factory=dict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTIONS))
    _running: set["asyncio.Task[Carried]"] = field(default_factory=set)
    _asked: int = 0

    @property
    def busy(self) -> bool:
        """Whether many answers are awaited: what comes next is not alone."""
        return self._asked >= MANY

    def start(
        self, service: str, sequence: int, decision_id: str, decision: Decision, done: Callable[[Carried], None]
    ) -> None:
        """Carry out a decision of ``service``, after those that touch the same objects; ``done`` hears what came of it."""
        keys = {decision.subject, *(mutation.key for mutation in decision.mutations)}
        before = {other for key in keys if (other := self._busy.get(key)) is not None}
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._busy.update(dict.fromkeys(keys, settled))

        def settle() -> None:
            settled.set_result(None)
            for key in keys:
                if self._busy.get(key) is settled:
                    del self._busy[key]

        async def carry_out() -> Carried:
            if before:
                await asyncio.wait(before)
            work = await self._carry_out(service, decision_id, decision)
            outcome = Outcome(decision_id, decision.name, decision.subject, not work.reasons, work.reasons)
            return Carried(service, sequence, decision, outcome, tuple(work.effects), settle)

        def finished(ended: "asyncio.Task[Carried]") -> None:
            self._running.discard(ended)
            if not ended.cancelled():
                done(ended.result())

        task = asyncio.create_task(carry_out())
        self._running.add(task)
        task.add_done_callback(finished)

    @property
    def running(self) -> Iterable["asyncio.Task[Carried]"]:
        """The decisions on their way."""
        return tuple(self._running)

    @property
    def load(self) -> int:
        """How many decisions are on their way."""
        return len(self._running)

    async def _carry_out(self, service: str, decision_id: str, decision: Decision) -> Work:
        work = Work(service, decision)
        try:
            for mutations in _steps(decision.mutations):
                if mutations[0].verb is Verb.BIND:
                    work.reasons |= await until_bound(self.errands.mirror, decision.mutations)
                if work.reasons:
                    break
                if len(mutations) == 1:
                    await self._mutate(work, mutations[0])
                else:
                    await asyncio.gather(*(self._mutate(work, mutation) for mutation in mutations))
        except Exception as error:  # whatever a decision holds, it comes to its outcome, and those beside it to theirs
            log.exception("decision_failed", extra={"decision": decision_id})
            work.reasons[""] = f"cannot be carried out: {type(error).__name__}: {error}"
        return work

    async def _mutate(self, work: Work, mutation: Mutation) -> None:
        async with self._room:
            self._asked += 1
            try:
                complaint = await self.errands.run(work, mutation)
            finally:
                self._asked -= 1
        if complaint:
            work.reasons[str(mutation.key)] = complaint


def _steps(mutations: Sequence[Mutation]) -> Iterator[Sequence[Mutation]]:
    """The mutations in their order, those of one verb and kind together; two of one object never at once."""
    for _, same in groupby(mutations, key=lambda mutation: (mutation.verb, mutation.key.kind)):
        step: dict[Key, Mutation] = {}
        for mutation in same:
            if mutation.key in step:
                yield list(step.values())
                step = {}
            step[mutation.key] = mutation
        yield list(step.values())
