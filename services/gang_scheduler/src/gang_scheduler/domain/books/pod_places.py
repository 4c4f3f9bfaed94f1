"""Where pods are, and what they take there."""

from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import FINISHED, PodRecord
from gang_scheduler.domain.room.room import Room
from kube import Key


@dataclass(slots=True)
class PodPlaces:
    """The pods by node, and the room that is left beside them. A pod is on a node before the books count it there."""

    room: Room = field(init=False)
    on_node: dict[str, dict[Key, PodRecord]] = field(init=False, default_factory=dict)
    """By name of the node, whether it is known or not."""

    def placed(self) -> list[PodRecord]:
        """All pods that are counted on a node."""
        return [record for records in self.on_node.values() for record in records.values() if record.slot >= 0]

    def bind(self, record: PodRecord, node: str) -> None:
        """The pod is on ``node`` from now on; "" for on none."""
        if node == record.node:
            return
        if record.node:
            del self.on_node[record.node][record.key]
        if node:
            self.on_node.setdefault(node, {})[record.key] = record
        record.node = node

    def count(self, record: PodRecord) -> None:
        """Let the books show the pod where it is: on its node, unless it has finished or the node is unknown."""
        slot = self.room.table.slots.get(record.node, -1) if record.node else -1
        if record.standing in FINISHED:
            slot = -1
        if slot == record.slot:
            return
        self.lift(record)
        if slot >= 0:
            self.room.occupy([record], slot, record.group.queue if record.ours else None)

    def lift(self, record: PodRecord) -> None:
        """Take the pod out of the books."""
        if record.slot < 0:
            return
        queue = record.charged
        self.room.vacate([record])
        if queue is not None:
            self.room.ledger.release(queue)
