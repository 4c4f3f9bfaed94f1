"""The node groups of every queue, and whether there are any."""

from dataclasses import dataclass, field

from gang_scheduler.domain.queues.node_groups import CLOSED, NodeGroups
from gang_scheduler.domain.queues.queue_ledger import QueueLedger
from gang_scheduler.domain.terms.gang_terms import COHORTS, QUOTAS
from gang_scheduler.domain.terms.node_rules import Demands


@dataclass(slots=True)
class QueueNodes:
    """``labelled`` are the nodes that are of a group."""

    ledger: QueueLedger
    labelled: set[str] = field(default_factory=set)
    _said: dict[str, NodeGroups] = field(default_factory=dict)

    @property
    def matter(self) -> bool:
        """Whether groups matter to anybody."""
        return bool(self.labelled or self._said)

    def hear(self) -> bool:
        """The queues are others now; returns whether what they say of groups is, too."""
        queues = self.ledger.queues or {}
        before, self._said = self._said, {}
        if any(queue.node_groups is not None for queue in queues.values()):
            self._said = {name: found for name in queues if (found := self._nearest(name)) is not None}
        return self._said != before

    def label(self, node: str, group: str | None) -> bool:
        """A node is in that group now, None for none or one that is gone; returns whether that matters to queues without groups."""
        before = bool(self.labelled)
        (self.labelled.add if group else self.labelled.discard)(node)
        return bool(self.labelled) != before

    def demands(self, queue: str) -> Demands | None:
        """What is demanded of the nodes of pods in ``queue``; None where nothing is."""
        said = self._said.get(queue)
        if said is not None:
            return said.demands()
        return CLOSED if self.labelled and not queue.startswith((COHORTS, QUOTAS)) else None

    def _nearest(self, queue: str) -> NodeGroups | None:
        queues = self.ledger.queues or {}
        said = (queues[name].node_groups for name in self.ledger.chain(queue) if name in queues)
        return next((one for one in said if one is not None), None)
