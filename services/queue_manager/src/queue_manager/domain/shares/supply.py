"""What the cluster has to share."""

from kube import Event, Object
from queue_manager.domain.quotas.queue_tree import amounts_of
from queue_manager.domain.quotas.sums import accumulate
from resources import Amounts


class Supply:
    """The sum of what the nodes offer that are there and not known to be broken."""

    def __init__(self) -> None:
        self.total: Amounts = {}
        self._nodes: dict[str, Amounts] = {}

    def fold(self, event: Event) -> bool:
        """Take in a change of a node; returns whether there is more or less of anything now."""
        name = event.key.name
        before = self._nodes.get(name, {})
        after = _offered(event.new)
        if before == after:
            return False
        accumulate(self.total, before, -1)
        accumulate(self.total, after, 1)
        self._nodes[name] = after
        return True


def _offered(node: Object | None) -> Amounts:
    if node is None or node.deleting or not _works(node):
        return {}
    return amounts_of(node.status.get("allocatable"))


def _works(node: Object) -> bool:
    """Whether the node does not say, and nobody says of it, that it is not ready. A cordoned node counts: its pods run on."""
    for condition in node.status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return True
