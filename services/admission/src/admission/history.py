"""What was decided and done of late, from the logs of the deciding services and the outcomes in the facts."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager

from admission.happening import Happening
from admission.writes import Writes
from bus import Bus, Entry
from chassis.fact_fold import Folded
from kube import Key, Outcome
from tidegate import subjects
from tidegate.codec.decisions import decision_heads
from tidegate.codec.facts import outcomes
from tidegate.decision.v1 import decision_pb2
from tidegate.fact.v1 import fact_pb2

_log = logging.getLogger(__name__)

KEPT = 20_000
_EVICTING = ("GangPreempted", "QueueReclaimed")


class History:
    """Follows a decision log and the facts; keeps the newest."""

    def __init__(self, bus: Bus, services: tuple[str, ...]) -> None:
        self._bus, self.services = bus, services
        self._kept: deque[Happening] = deque(maxlen=KEPT)
        self._open: dict[str, Happening] = {}
        self._early: dict[str, tuple[Outcome, int]] = {}
        self._heard: deque[Folded] = deque()
        self._come = asyncio.Event()
        self.writes = Writes()

    async def follow(self, service: str) -> None:
        """Read the log of one service from where it is kept, for ever."""
        log = self._bus.log(subjects.decisions(service))
        async for entries in log.read(max(await log.last() - KEPT // 10, await log.first() - 1)):
            for entry in entries:
                with _passing_over(service, entry.sequence):
                    self._note_commit(service, entry)

    def hear(self, folded: Folded) -> None:
        """Take in a change set that somebody has read; they come in the order of the log."""
        self._heard.append(folded)
        self._come.set()

    async def follow_outcomes(self) -> None:
        """Note what came of decisions: what is in the log until the first that is heard, then what is heard, for ever."""
        log = self._bus.log(subjects.FACTS)
        position = max(await log.last() - KEPT // 10, await log.first() - 1)
        async with aclosing(log.read(position)) as reader:
            while not self._heard or self._heard[0].revision > position + 1:
                for entry in await anext(reader):
                    position = entry.sequence
                    with _passing_over(subjects.FACTS, position):
                        self._note_entry(entry)
        while True:
            while self._heard:
                folded = self._heard.popleft()
                with _passing_over(subjects.FACTS, folded.revision):
                    if folded.revision > position:
                        self._note_facts(folded.message, folded.outcomes, folded.revision)
            self._come.clear()
            await self._come.wait()

    def _note_commit(self, service: str, entry: Entry) -> None:
        commit = decision_pb2.Commit.FromString(entry.payload)
        for decision_id, decision in decision_heads(commit):
            happening = Happening(
                commit.now_ms,
                service,
                decision.name,
                decision.reason,
                decision.message,
                decision.subject,
                id=decision_id,
            )
            self._kept.append(happening)
            early = self._early.pop(decision_id, None)
            if early is None:
                self._open[decision_id] = happening
            else:
                _settle(happening, *early)

    def _note_entry(self, entry: Entry) -> None:
        message = fact_pb2.ChangeSet.FromString(entry.payload)
        self._note_facts(message, outcomes(message), entry.sequence)

    def _note_facts(self, message: fact_pb2.ChangeSet, found: Iterable[Outcome], revision: int) -> None:
        self.writes.note(message, revision)
        for outcome in found:
            happening = self._open.pop(outcome.decision_id, None)
            if happening is not None:
                _settle(happening, outcome, revision)
                continue
            # The logs are read side by side: an outcome may come before its decision.
            self._early[outcome.decision_id] = (outcome, revision)
            if len(self._early) > KEPT:
                del self._early[next(iter(self._early))]

    def newest(
        self, namespace: str, about: Key | None, limit: int, sees: Callable[[Key], bool] = lambda _: True
    ) -> list[Happening]:
        """The newest happenings, oldest first: all, of a namespace, or about one object; of those that one ``sees``."""
        found: list[Happening] = []
        for happening in reversed(self._kept):
            key = happening.about
            if (not namespace or key.namespace in ("", namespace)) and (about is None or key == about) and sees(key):
                found.append(happening)
            if len(found) >= limit:
                break
        return sorted(found, key=lambda item: item.at_ms)

    def eviction_of(self, pod: Key) -> Happening | None:
        """The newest eviction whose words name a pod: all that is left of one that is gone."""
        name = re.compile(rf"(?<![\w.-]){re.escape(f'{pod.namespace}/{pod.name}')} \(")
        found = (item for item in reversed(self._kept) if item.name in _EVICTING and name.search(item.message))
        return next(found, None)


@contextmanager
def _passing_over(source: str, sequence: int) -> Iterator[None]:
    """Take in one entry. One that cannot be read is passed over: whoever acts on it has parked it."""
    try:
        yield
    except Exception as error:
        _log.warning("message_skipped", extra={"source": f"{source}/{sequence}", "detail": repr(error)})


def _settle(happening: Happening, outcome: Outcome, revision: int) -> None:
    happening.applied, happening.revision = outcome.applied, revision
    if not outcome.applied:
        happening.message += " — refused: " + "; ".join(f"{key} {reason}" for key, reason in outcome.reasons.items())
