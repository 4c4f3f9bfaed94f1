"""Those who wait and would take room from others: when they should ask again although no room came free.

Who found nobody to evict waits for more than room: for somebody less important in its queue, for another share of its
queue, for a budget, for a reservation or a cooldown to end, for pods that begin to leave, whose room may be enough with what others have
beside it, and who is too large for every node for other nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.evictions.victims import victim_priority
from gang_scheduler.domain.line.waiting_line import Unit, WaitingLine
from gang_scheduler.domain.pods.pod_record import PodRecord


@dataclass(slots=True)
class Askers:
    """``shares_changed`` is set when queues deserve something else; only queues that are owed something care for it."""

    cluster: Cluster
    line: WaitingLine
    shares_changed: bool = False
    _by_queue: dict[str, dict[Unit, int]] = field(default_factory=dict)
    _hopeless: dict[Unit, None] = field(default_factory=dict)
    _version: int = 0
    _reservations: int = 0

    def wait(self, unit: Unit, queue: str, priority: int) -> None:
        """The unit would take room from less important work in ``queue``, or what its queue deserves."""
        self.leave(unit)
        self._by_queue.setdefault(queue, {})[unit] = priority

    def despair(self, unit: Unit) -> None:
        """The nodes as they are can never hold the unit."""
        self.leave(unit)
        self._hopeless[unit] = None

    def leave(self, unit: Unit) -> None:
        """The unit asks no more."""
        self._hopeless.pop(unit, None)
        for units in self._by_queue.values():
            units.pop(unit, None)

    def look(self) -> None:
        """Let those ask again for whom something changed."""
        if self._version != self.cluster.room.table.version:
            self._version = self.cluster.room.table.version
            self._renew(list(self._hopeless))
        ledger, reserved = self.cluster.room.ledger, self.cluster.room.reserved
        # What an owner of a reservation leaves goes back to the reservation, until that is over.
        anything = self.cluster.budgets.changed or self.cluster.departing or self._reservations != reserved.version
        self._reservations = reserved.version
        anything = self.cluster.cooldowns.ended(ledger.now) or anything
        for queue, units in self._by_queue.items():
            changed = self.shares_changed or queue in ledger.released
            if units and (anything or (changed and ledger.has_due(queue))):
                self._renew(list(units))
        self.shares_changed = self.cluster.budgets.changed = self.cluster.departing = False

    def tempt(self, queue: str, records: Sequence[PodRecord]) -> None:
        """Pods of one gang in ``queue`` were bound: somebody more important there may want their room, or another queue."""
        ledger = self.cluster.room.ledger
        if any(ledger.has_excess(name) for name in ledger.chain(queue)):
            for other in [name for name in self._by_queue if name != queue and ledger.has_due(name)]:
                self._renew(list(self._by_queue[other]))
        askers = self._by_queue.get(queue)
        if askers:
            lowest = min(victim_priority(record, self.cluster.classes) for record in records)
            self._renew([unit for unit, priority in askers.items() if priority > lowest])

    def _renew(self, units: Sequence[Unit]) -> None:
        for unit in units:
            if unit in self.line:
                self.line.renew(unit)
