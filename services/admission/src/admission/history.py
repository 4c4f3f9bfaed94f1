"""What was decided and done of late, from the logs of the deciding services and the outcomes in the facts."""

import logging
import re
from collections import deque
from collections.abc import Callable

from admission.happening import Happening
from admission.writes import Writes
from bus import Bus, Entry
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
        self.writes = Writes()

    async def follow(self, service: str) -> None:
        """Read the log of one service from where it is kept, for ever."""
        log = self._bus.log(subjects.decisions(service))
        async for entries in log.read(max(await log.last() - KEPT // 10, await log.first() - 1)):
            for entry in entries:
                self._read(self._note_commit, service, entry)

    async def follow_outcomes(self) -> None:
        """Read what came of decisions, for ever."""
        log = self._bus.log(subjects.FACTS)
        async for entries in log.read(max(await log.last() - KEPT // 10, await log.first() - 1)):
            for entry in entries:
                self._read(self._note_outcomes, subjects.FACTS, entry)

    def _read(self, note: Callable[[str, Entry], None], source: str, entry: Entry) -> None:
        """Take in one entry. One that cannot be read is passed over: whoever acts on it has parked it."""
        try:
            note(source, entry)
        except Exception as error:
            _log.warning("message_skipped", extra={"source": f"{source}/{entry.sequence}", "detail": repr(error)})

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

    def _note_outcomes(self, _: str, entry: Entry) -> None:
        message = fact_pb2.ChangeSet.FromString(entry.payload)
        self.writes.note(message, entry.sequence)
        for outcome in outcomes(message):
            happening = self._open.pop(outcome.decision_id, None)
            if happening is not None:
                _settle(happening, outcome, entry.sequence)
                continue
            # The logs are read side by side: an outcome may come before its decision.
            self._early[outcome.decision_id] = (outcome, entry.sequence)
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


def _settle(happening: Happening, outcome: Outcome, revision: int) -> None:
    happening.applied, happening.revision = outcome.applied, revision
    if not outcome.applied:
        happening.message += " — refused: " + "; ".join(f"{key} {reason}" for key, reason in outcome.reasons.items())
