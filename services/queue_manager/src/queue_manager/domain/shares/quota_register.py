"""All elastic quotas: their tree, and whose namespaces they are."""

from kube import Event, Key
from queue_manager.domain.shares.elastic_quota import ROOT_QUOTA, namespaces_of, quota_name, read_quota
from queue_manager.domain.shares.queue_tree import Queue, QueueTree


class QuotaRegister:
    """Keeps the tree of quotas. A name counts once in the cluster: of several namespaces' the first has it."""

    def __init__(self) -> None:
        self.tree = QueueTree(ROOT_QUOTA, ())
        self.namespaces: dict[str, str] = {}
        """The quota of the pods of a namespace that name none."""
        self._named: dict[str, dict[Key, Queue]] = {}
        self._claims: dict[str, dict[Key, None]] = {}

    def fold(self, event: Event) -> bool:
        """Take in a change of an ElasticQuota; returns whether the tree changed."""
        key = event.key
        named = self._named.setdefault(key.name, {})
        named.pop(key, None)
        if event.new is not None:
            named[key] = read_quota(event.new)
        self._fold_namespaces(event)
        if not named:
            del self._named[key.name]
            self.tree.remove(quota_name(key.name))
            return True
        return self.tree.put(named[min(named)])

    def _fold_namespaces(self, event: Event) -> None:
        before = namespaces_of(event.old) if event.old else []
        after = namespaces_of(event.new) if event.new else []
        for namespace in before:
            self._claims.get(namespace, {}).pop(event.key, None)
        for namespace in after:
            self._claims.setdefault(namespace, {})[event.key] = None
        for namespace in {*before, *after}:
            claims = self._claims[namespace]
            if claims:
                self.namespaces[namespace] = quota_name(min(claims).name)
            else:
                del self._claims[namespace]
                self.namespaces.pop(namespace, None)
