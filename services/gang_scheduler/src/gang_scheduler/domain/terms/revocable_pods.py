"""Pods that can be sent away with the nodes that are lent (Volcano's plugin ``tdm``).

Where zones have hours, they are also less important than all that cannot be sent away: they come after these in their queue,
make room for them on other nodes, and preempt nobody.
"""

from gang_scheduler.domain.terms.node_rules import Demands, NodeTerm, Toleration
from gang_scheduler.domain.terms.selectors import Requirement
from kube import Object

ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"

LENT = Demands(
    preferred=((100, NodeTerm((Requirement(ZONE, "Exists"),), ())),), tolerations=(Toleration(ZONE, "Exists", "", ""),)
)
"""What holds for the nodes of pods that can be sent away."""

_LAST = 1 << 33
"""What is taken off the priority of pods that can be sent away: priorities have 32 bits."""


def is_revocable(pod: Object) -> bool:
    """Whether a pod says that it may be sent away with a zone."""
    annotations = pod.annotations
    if ZONE in annotations:
        return annotations[ZONE] == "*"
    return annotations.get(PREEMPTABLE, "").lower() == "true"


def put_last(priority: int) -> int:
    """The priority of what can be sent away, below that of everything that cannot."""
    return priority - _LAST


def is_last(priority: int) -> bool:
    """Whether it is the priority of something that can be sent away."""
    return priority < -_LAST // 2


def stated_priority(priority: int) -> int:
    """The priority that the pod or its class states."""
    return priority + _LAST if is_last(priority) else priority
