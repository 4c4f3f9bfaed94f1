"""Writes the log of facts: one change set after the other, each behind the last, and a snapshot now and then."""

import asyncio
import time
import uuid
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence

from bus import Bus
from chassis.clock import Clock
from chassis.measures import Measures
from chassis.tracing import Tracer
from cluster_gateway.batch import Batch
from cluster_gateway.recovery import REQUESTS
from cluster_gateway.settings import GatewaySettings
from kube import Edit, Object
from tidegate import subjects
from tidegate.codec import facts


class FactWriter:
    """``last`` is the revision that was written last: what is appended expects it, so another writer is refused."""

    def __init__(
        self, bus: Bus, clock: Clock, settings: GatewaySettings, holder: str, measures: Measures, tracer: Tracer
    ) -> None:
        self._log, self._clock, self._settings = bus.log(subjects.FACTS), clock, settings
        self._measures, self._tracer = measures, tracer
        # Two processes may have one name: what either of them appends must never pass for the other's.
        self._writer = f"fact/{holder}/{uuid.uuid4().hex}"
        self.last = self._snapshot_at = 0
        self._told: dict[str, int] = {}

    def begin(self, last: int, snapshot_at: int) -> None:
        """Go on behind ``last``; the newest snapshot stands for ``snapshot_at``."""
        self._told = {}
        self.last, self._snapshot_at = last, snapshot_at

    async def append(self, edits: Sequence[Edit], batch: Batch, positions: Mapping[str, int]) -> None:
        """Store one change set with what came of decisions; raises StaleWriter when somebody else has written.

        Of ``positions`` only those that moved go into it: readers lay them over what they know.
        """
        outcomes = tuple(batch.outcomes)
        moved = {name: position for name, position in positions.items() if self._told.get(name) != position}
        payload = facts.encode(facts.FactSet(self._clock.now(), tuple(edits), outcomes, moved))
        headers = {REQUESTS: ",".join(batch.requests)} if batch.requests else {}
        message_id = f"{self._writer}/{self.last + 1}"
        started = time.perf_counter()
        with self._tracer.span("facts stored", batch.cause, changes=len(edits), outcomes=len(outcomes)):
            self.last = await self._log.append(
                payload, expected=self.last, message_id=message_id, headers=headers | self._tracer.carrier()
            )
        self._told |= moved
        self._measures.commit_seconds.observe(time.perf_counter() - started)
        self._measures.facts.inc()
        self._measures.revision.set(self.last)
        for outcome in outcomes:
            self._measures.outcomes.labels(outcome.name, str(outcome.applied).lower()).inc()

    @property
    def snapshot_due(self) -> bool:
        """Whether a reader that starts has too much to read behind the newest snapshot."""
        return self.last - self._snapshot_at >= self._settings.snapshot_entries

    def snapshot(self, objects: Collection[Object], positions: Mapping[str, int]) -> Coroutine[None, None, None]:
        """Keeps the whole state as of the last change set, and drops history that is older than anybody needs.

        What is kept is as it is at this call, whatever is written before the work is done.
        """
        self._snapshot_at = self.last
        return self._keep(
            self.last, facts.snapshot_pieces(list(objects), self.last, self._clock.now(), dict(positions))
        )

    async def _keep(self, sequence: int, pieces: Iterable[bytes]) -> None:
        content = []
        for piece in pieces:
            content.append(piece)
            await asyncio.sleep(0)
        await self._log.put_snapshot(sequence, b"".join(content))
        if sequence > self._settings.history_entries:
            await self._log.trim(sequence - self._settings.history_entries)
