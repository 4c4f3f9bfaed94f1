"""Whether a pod's nodes are packed or spread: as its gang says, else its queue or the nearest above that says, else the cluster.

A gang says it in the annotation ``tidegate.dev/placement`` of its PodGroup, which has the annotations of its job; a pod in
no PodGroup in its own. Of a queue it is the same annotation, which queue_manager tells. It decides which nodes come first,
never whether there is room.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.queues.entitlement import Entitlement
from gang_scheduler.domain.queues.queue_ledger import QueueLedger
from gang_scheduler.domain.score.scoring import Placement

PLACEMENT = "tidegate.dev/placement"
_KNOWN = {str(choice): choice for choice in Placement}


class Choice(NamedTuple):
    """What was chosen, and who chose it, for people."""

    placement: Placement
    source: str


@dataclass(slots=True)
class PlacementChoices:
    """``default`` is the cluster's. What queues say is worked out once for each version of the queues."""

    default: Placement
    ledger: QueueLedger
    _queues: Mapping[str, Entitlement] | None = None
    _by_queue: dict[str, Choice] = field(default_factory=dict)

    def of(self, record: PodRecord) -> Choice:
        """The choice for a pod, and for all of its gang."""
        item = record.group.pod_group or record.pod
        if (own := read_placement(item.annotations.get(PLACEMENT, ""))) is not None:
            return Choice(own, f"{item.kind.partition('.')[0]} {item.name}")
        if self._queues is not self.ledger.queues:
            self._queues, self._by_queue = self.ledger.queues, {}
        queue = record.group.queue
        found = self._by_queue.get(queue)
        if found is None:
            found = self._by_queue[queue] = self._of_queue(queue)
        return found

    def _of_queue(self, queue: str) -> Choice:
        queues = self._queues or {}
        for name in self.ledger.chain(queue):
            said = read_placement(queues[name].placement) if name in queues else None
            if said is not None:
                return Choice(said, f"queue {name}")
        return Choice(self.default, "the cluster")


def read_placement(text: str) -> Placement | None:
    """What an annotation says; None where it says nothing that is known."""
    return _KNOWN.get(text)
