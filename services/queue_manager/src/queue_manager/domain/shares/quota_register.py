"""All elastic quotas: their tree, and whose namespaces they are."""

from kube import Event, Key
from kube.elastic_quotas import ROOT_QUOTA, NamespaceQuotas, quota_name
from queue_manager.domain.quotas.elastic_quota import read_quota
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree


class QuotaRegister:
    """Keeps the tree of quotas. A name counts once in the cluster: of several namespaces' the first has it."""

    def __init__(self) -> None:
        self.tree = QueueTree(ROOT_QUOTA, ())
        self._named: dict[str, dict[Key, Queue]] = {}
        self._owners = NamespaceQuotas()

    @property
    def namespaces(self) -> dict[str, str]:
        """The quota of the pods of a namespace that name none."""
        return self._owners.queues

    def fold(self, event: Event) -> bool:
        """Take in a change of an ElasticQuota; returns whether the tree changed."""
        key = event.key
        named = self._named.setdefault(key.name, {})
        named.pop(key, None)
        if event.new is not None:
            named[key] = read_quota(event.new)
        self._owners.fold(event)
        if not named:
            del self._named[key.name]
            self.tree.remove(quota_name(key.name))
            return True
        return self.tree.put(named[min(named)])
