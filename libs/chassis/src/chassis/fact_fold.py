"""The fold of the facts: a store, how far it has been read, and what came of decisions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bus import Entry, Log
from chassis.garbage import Renewal
from kube import Event, Outcome, Store
from tidegate.codec import facts
from tidegate.fact.v1 import fact_pb2


@dataclass(frozen=True, slots=True)
class Folded:
    """What one change set brought."""

    revision: int
    at_ms: int
    events: list[Event]
    outcomes: list[Outcome]
    message: fact_pb2.ChangeSet


@dataclass(slots=True)
class FactFold:
    """State as of ``revision``. ``positions`` say how far each service's decisions have been carried out."""

    interest: facts.Interest | None = None
    store: Store = field(default_factory=Store)
    revision: int = 0
    at_ms: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    _renewal: Renewal = field(default_factory=Renewal, init=False, repr=False, compare=False)

    def take(self, entry: Entry) -> Folded | None:
        """Fold one entry of the log; None when it was folded before."""
        if entry.sequence <= self.revision:
            return None
        # An entry that cannot be read is behind us as well: it will not be readable the next time either.
        self.revision = entry.sequence
        message = fact_pb2.ChangeSet.FromString(entry.payload)
        events = facts.fold(self.store, message, entry.sequence, self.interest)
        self.at_ms = message.at_ms
        self.positions.update(message.positions)
        self._renewal.count(len(events))
        return Folded(entry.sequence, message.at_ms, events, list(facts.outcomes(message)), message)

    def start_from(self, content: bytes) -> list[Event]:
        """Fill the empty fold from a snapshot."""
        snapshot = fact_pb2.Snapshot.FromString(content)
        events = facts.fold_snapshot(self.store, snapshot, self.interest)
        self.revision, self.at_ms = snapshot.revision, snapshot.at_ms
        self.positions = dict(snapshot.positions)
        return events


async def load(
    log: Log, at_most: int | None = None, interest: facts.Interest | None = None
) -> tuple[FactFold, list[Event]]:
    """A fold from the newest snapshot, one at or before ``at_most`` if the log reaches back to it.

    Where no snapshot is that old and the log is whole, the fold begins empty: all is to be read from the log.
    """
    fold = FactFold(interest)
    found = await log.snapshot(at_most)
    first = await log.first()
    if found is None and at_most is not None and first == 1:
        return fold, []
    if found is None or found[0] + 1 < first:
        found = await log.snapshot()
    if found is None:
        return fold, []
    return fold, fold.start_from(found[1])


def relevant(outcomes: Iterable[Outcome], service: str) -> list[Outcome]:
    """The outcomes of ``service``'s own decisions: their ids begin with its name."""
    return [outcome for outcome in outcomes if outcome.decision_id.startswith(f"{service}/")]
