"""Carrying decisions out on an API server: many at one time, those that touch the same object one after the other.

The rule for a gang whose binding fails half-way: every member's request is made, those that can be bound are, and the
outcome names the members that cannot, with the server's reason. What was bound is a fact with the outcome in one change set,
so the scheduler completes the gang, or takes it back by its own rules, from what is so.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from apiserver.api import CONNECTIONS, Answer, Api, ApiRequest, Unreachable
from cluster_gateway.domain.carrying_out import owner_uid
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.kubernetes import requests
from cluster_gateway.kubernetes.discovery import Served
from kube import Decision, Key, Mutation, Outcome, Verb, rfc3339
from kube.devices import annotations_of

log = logging.getLogger(__name__)

NOT_FOUND, CONFLICT, TOO_MANY = 404, 409, 429
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
MANY = 8
"""So many requests at one time are a burst."""
BUDGET = "DisruptionBudget"
"""The cause that an eviction is refused with when a disruption budget forbids it."""

Effect = Callable[[Mirror], None]


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of one decision: its outcome, and what it made of the objects."""

    service: str
    sequence: int
    decision: Decision
    outcome: Outcome
    effects: tuple[Effect, ...]


@dataclass(slots=True)
class _Work:
    """One decision on its way."""

    service: str
    decision: Decision
    effects: list[Effect] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Carrier:
    """``served`` are the kinds that the cluster has, now."""

    api: Api
    mirror: Mirror
    served: Mapping[str, Served]
    _busy: dict[Key, "asyncio.Task[Carried]"] = field(default_factory=dict)
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
        before = {task for key in keys if (task := self._busy.get(key)) is not None}
        task = asyncio.create_task(self._carry_out(service, sequence, decision_id, decision, before))
        self._running.add(task)
        self._busy.update(dict.fromkeys(keys, task))

        def finished(ended: "asyncio.Task[Carried]") -> None:
            self._running.discard(ended)
            for key in keys:
                if self._busy.get(key) is ended:
                    del self._busy[key]
            if not ended.cancelled():
                done(ended.result())

        task.add_done_callback(finished)

    @property
    def running(self) -> Iterable["asyncio.Task[Carried]"]:
        """The decisions on their way."""
        return tuple(self._running)

    async def _carry_out(
        self,
        service: str,
        sequence: int,
        decision_id: str,
        decision: Decision,
        before: set["asyncio.Task[Carried]"],
    ) -> Carried:
        if before:
            await asyncio.wait(before)
        work = _Work(service, decision)
        try:
            for mutations in _steps(decision.mutations):
                if len(mutations) == 1:
                    await self._mutate(work, mutations[0])
                else:
                    await asyncio.gather(*(self._mutate(work, mutation) for mutation in mutations))
                if work.reasons:
                    break
        except Exception as error:  # whatever a decision holds, it comes to its outcome, and those beside it to theirs
            log.exception("decision_failed", extra={"decision": decision_id})
            work.reasons[""] = f"cannot be carried out: {type(error).__name__}: {error}"
        outcome = Outcome(decision_id, decision.name, decision.subject, not work.reasons, work.reasons)
        return Carried(service, sequence, decision, outcome, tuple(work.effects))

    async def _mutate(self, work: _Work, mutation: Mutation) -> None:
        async with self._room:
            self._asked += 1
            try:
                complaint = await _CARRY[mutation.verb](self, work, mutation)
            except requests.NotServed as error:
                complaint = str(error)
            finally:
                self._asked -= 1
        if complaint:
            work.reasons[str(mutation.key)] = complaint

    async def _create(self, work: _Work, mutation: Mutation) -> str:
        answer = await self._send(requests.creation(mutation, self.served, work.service))
        if answer.code == CONFLICT and answer.reason == "AlreadyExists":
            answer = await self._send(requests.reading(mutation.key, self.served))
            if answer.ok and owner_uid(answer.body["metadata"]) != owner_uid(
                (mutation.manifest or {}).get("metadata") or {}
            ):
                return "is there already and belongs to somebody else"
            if answer.ok and answer.body["metadata"].get("deletionTimestamp"):
                return "is still being deleted"
        return self._took(work, mutation, answer)

    async def _patch(self, work: _Work, mutation: Mutation) -> str:
        there = self.mirror.store.get(mutation.key)
        if there is None or (mutation.uid and there.uid != mutation.uid):
            return "is gone"
        make = requests.status_change if mutation.verb is Verb.STATUS else requests.change
        answer = await self._send(make(mutation, there, self.served, work.service))
        return self._took(work, mutation, answer)

    async def _delete(self, work: _Work, mutation: Mutation) -> str:
        there = self.mirror.store.get(mutation.key)
        if there is None or (mutation.uid and there.uid != mutation.uid):
            return ""
        return await self._ended(work, mutation, await self._send(requests.deletion(mutation, there, self.served)))

    async def _evict(self, work: _Work, mutation: Mutation) -> str:
        there = self.mirror.store.get(mutation.key)
        if there is None or there.deleting or (mutation.uid and there.uid != mutation.uid):
            return ""
        answer = await self._send(requests.eviction(mutation, there, self.served))
        if answer.code == TOO_MANY:
            return answer.message
        reason = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": work.decision.reason,
            "message": work.decision.message,
            "lastTransitionTime": rfc3339(self.mirror.cluster.now),
        }
        if answer.ok:
            told = Mutation(Verb.STATUS, mutation.key, there.uid, patch={"conditions": [reason]})
            await self._send(requests.status_change(told, there, self.served, work.service))
        return await self._ended(work, mutation, answer)

    async def _ended(self, work: _Work, mutation: Mutation, answer: Answer) -> str:
        """What is being deleted is so in the facts when the outcome is: its decider would delete it again otherwise."""
        key, uid = mutation.key, mutation.uid
        if answer.ok:
            answer = await self._send(requests.reading(key, self.served))
        if answer.code == NOT_FOUND or (answer.ok and uid and answer.body["metadata"]["uid"] != uid):
            work.effects.append(lambda mirror: mirror.missing(key, uid))
            return ""
        if answer.code == CONFLICT and "uid" in answer.message.lower():
            return ""
        return self._took(work, mutation, answer)

    async def _bind(self, work: _Work, mutation: Mutation) -> str:
        there = self.mirror.store.get(mutation.key)
        if there is None or (mutation.uid and there.uid != mutation.uid):
            return "is gone"
        answer = await self._send(requests.binding(mutation, there, self.served))
        if answer.code == CONFLICT:
            now = await self._send(requests.reading(mutation.key, self.served))
            if not now.ok or now.body["metadata"]["uid"] != there.uid:
                return "is gone"
            if now.body["spec"].get("nodeName") != mutation.node:
                return answer.message
            return self._took(work, mutation, now)
        if not answer.ok:
            return answer.message
        key, uid, node, service = mutation.key, there.uid, mutation.node, work.service
        annotations = annotations_of(mutation.devices) if mutation.devices else {}
        work.effects.append(lambda mirror: mirror.bound(key, uid, node, annotations, service))
        return ""

    def _took(self, work: _Work, mutation: Mutation, answer: Answer) -> str:
        """The object as the server has it now; or its reason why not."""
        kind, service = mutation.key.kind, work.service
        if not answer.ok:
            return "is gone" if answer.code == NOT_FOUND and mutation.verb is not Verb.CREATE else answer.message
        work.effects.append(lambda mirror: mirror.seen(kind, answer.body, service))
        return ""

    async def _send(self, request: ApiRequest) -> Answer:
        """The answer to a request, asked again until there is one: all requests can be made twice."""
        pause = FIRST_PAUSE
        while True:
            try:
                answer = await self.api.send(request)
                if not _worth_asking_again(answer):
                    return answer
                pause = max(pause, answer.retry_after)
                log.warning(
                    "request_delayed", extra={"request": f"{request.method} {request.path}", "code": answer.code}
                )
            except Unreachable as error:
                log.warning("server_unreachable", extra={"detail": str(error)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


_CARRY = {
    Verb.CREATE: Carrier._create,
    Verb.PATCH: Carrier._patch,
    Verb.STATUS: Carrier._patch,
    Verb.DELETE: Carrier._delete,
    Verb.BIND: Carrier._bind,
    Verb.EVICT: Carrier._evict,
}


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


def _worth_asking_again(answer: Answer) -> bool:
    if answer.code == TOO_MANY:
        return not answer.has_cause(BUDGET)
    return answer.code >= 500
