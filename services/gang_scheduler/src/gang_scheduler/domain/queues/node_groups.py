"""Which nodes are for which queues: Volcano's node groups.

A node with the label ``volcano.sh/nodegroup-name`` is of that group, and only for queues that say anything of groups. A queue
says it in ``spec.affinity``: ``nodeGroupAffinity`` names the groups that its pods have to be in, or would rather be in,
``nodeGroupAntiAffinity`` those that they have to stay or would rather stay out of. A queue that says nothing has what the
nearest queue above it says. Pods of DaemonSets go with their nodes, whosever these are.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gang_scheduler.domain.terms.node_rules import NODE_GROUP, Demands, NodeTerm
from gang_scheduler.domain.terms.selectors import Requirement

PREFERRED, AVOIDED = 50, -1
"""What it counts to be in a group that a queue wants, or does not want, as Volcano weighs it."""

CLOSED = Demands((Requirement(NODE_GROUP, "DoesNotExist"),))
"""What is demanded of the nodes of a queue that says nothing of groups."""


class NodeGroups(NamedTuple):
    """The names of groups in what a queue says."""

    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    def demands(self) -> Demands:
        """What is demanded and wished of the nodes of its pods."""
        conditions = [Requirement(NODE_GROUP, "In", self.required)] if self.required else []
        conditions += [Requirement(NODE_GROUP, "NotIn", self.forbidden)] if self.forbidden else []
        wishes = ((PREFERRED, self.preferred), (AVOIDED, self.avoided))
        preferred = (
            (weight, NodeTerm((Requirement(NODE_GROUP, "In", names),), ())) for weight, names in wishes if names
        )
        return Demands(tuple(conditions), tuple(preferred))


def node_groups_of(said: Mapping[str, Any] | None) -> NodeGroups | None:
    """What queue_manager says of a queue; None where it says nothing."""
    if not said:
        return None
    return NodeGroups(*(tuple(said.get(name) or ()) for name in NodeGroups._fields))
