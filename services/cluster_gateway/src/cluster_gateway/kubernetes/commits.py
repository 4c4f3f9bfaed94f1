"""The decisions of all services on their way: read from their logs, checked, begun, and ended with their outcomes."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bus import Bus, Entry
from chassis.parking import Parking
from chassis.tracing import TRACEPARENT
from cluster_gateway.batch import Batch
from cluster_gateway.domain.carrying_out import is_begun, objections
from cluster_gateway.domain.mirror import Mirror
from cluster_gateway.kubernetes.carrier import Carrier
from cluster_gateway.kubernetes.positions import Positions
from cluster_gateway.kubernetes.together import Together
from cluster_gateway.recovery import ended_already
from cluster_gateway.refused_commit import refused
from kube import Decision, Outcome
from tidegate import subjects
from tidegate.codec.decisions import decode_commit
from tidegate.decision.v1 import decision_pb2

MOST_ON_THE_WAY = 1_000
"""Decisions that are carried out at one time; those that come then wait in their logs."""
MOST_READ_AHEAD = 256
"""Commits that were read and are not begun."""


@dataclass(slots=True)
class Commits:
    """``ended`` is told of each decision that was carried out; ``wake`` is called when there is something to take."""

    bus: Bus
    parking: Parking
    mirror: Mirror
    carrier: Carrier
    positions: Positions
    ended: Together
    wake: Callable[[], None]
    _epochs: dict[str, int] = field(default_factory=dict)
    _ended_before: frozenset[str] = frozenset()
    """Decisions that a predecessor brought to their outcomes though not all before them."""

    _read: deque[tuple[str, Entry]] = field(default_factory=deque)
    _taken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waiting(self) -> bool:
        """Whether there are commits that can be begun now."""
        return bool(self._read) and self.carrier.load < MOST_ON_THE_WAY

    async def follow(self, service: str) -> None:
        """Read the decisions of a service, not many more than are begun."""
        source, position = self.bus.log(subjects.decisions(service)), self.positions.done.get(service, 0)
        ended = await ended_already(self.bus, service, position)
        self._ended_before |= ended  # not before the wait: other services' are read at the same time
        async for entries in source.read(position):
            self._read += ((service, entry) for entry in entries)
            self.wake()
            while len(self._read) > MOST_READ_AHEAD:
                self._taken.clear()
                await self._taken.wait()

    async def take(self, batch: Batch) -> None:
        """Begin the oldest commit: what of it does not hold any more comes to its outcome at once."""
        service, entry = self._read.popleft()
        self._taken.set()
        if self.positions.seen(service, entry.sequence):
            return
        commit = decision_pb2.Commit()
        batch.cause = entry.headers if TRACEPARENT in entry.headers else batch.cause
        try:
            commit.ParseFromString(entry.payload)
            decisions = list(decode_commit(commit))
        except Exception as error:
            text = await self.parking.entry(f"{subjects.decisions(service)}/{entry.sequence}", entry, error)
            batch.outcomes += refused(commit, f"cannot be read: {text}")
            self.positions.began(service, entry.sequence, 0)
            return
        if commit.leader_started:
            self._epochs[service] = commit.epoch
        begun = [
            (decision_id, decision)
            for decision_id, decision in decisions
            if decision_id not in self._ended_before and self._holds(service, commit, decision_id, decision, batch)
        ]
        self.positions.began(service, entry.sequence, len(begun))
        if begun:
            self.ended.began(service, entry.sequence, len(begun))
        for decision_id, decision in begun:
            self.carrier.start(service, entry.sequence, decision_id, decision, self.ended.ended)

    def _holds(
        self, service: str, commit: decision_pb2.Commit, decision_id: str, decision: Decision, batch: Batch
    ) -> bool:
        """Whether there is something to carry out; where not, its outcome is in the batch."""
        cluster, reasons = self.mirror.cluster, dict[str, str]()
        cluster.actor = service
        if commit.epoch < self._epochs.get(service, 0):
            reasons = {"": f"epoch {commit.epoch} of {service} is over"}
        elif not is_begun(cluster, decision):
            reasons = objections(cluster, service, decision, commit.decided_on)
        if reasons or not decision.mutations:
            batch.outcomes.append(Outcome(decision_id, decision.name, decision.subject, not reasons, reasons))
            return False
        return True
