"""What a new cluster begins with."""

from cluster_gateway.domain.cluster import Cluster
from kube import Decision, Key, Manifest, Mutation, Store, Verb, api_version_of

_NAMESPACES = ("default", "kube-system")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
QUEUE = "Queue.scheduling.volcano.sh"
QUEUES: dict[str, Manifest] = {
    "root": {"weight": 1, "reclaimable": False},
    "default": {"weight": 1, "reclaimable": True, "parent": "root"},
}


def bootstrap(cluster: Cluster) -> None:
    """Make what is not there yet: the namespaces, queues and priority classes that every cluster has."""
    cluster.actor = "cluster_gateway"
    for namespace in _NAMESPACES:
        _ensure(cluster, Key("Namespace", "", namespace), {}, {"phase": "Active"})
    for name, value in _PRIORITIES.items():
        _ensure(cluster, Key("PriorityClass.scheduling.k8s.io", "", name), {"value": value}, {})
    for name, spec in QUEUES.items():
        _ensure(cluster, Key(QUEUE, "", name), {"spec": spec}, {"state": "Open"})


def missing_queues(store: Store) -> Decision | None:
    """That the queues which every cluster has are made where somebody else keeps the objects; None if they are there."""
    keys = [key for name in QUEUES if (key := Key(QUEUE, "", name)) not in store.of_kind(QUEUE)]
    kind = {"apiVersion": api_version_of(QUEUE), "kind": "Queue"}
    made = tuple(Mutation(Verb.CREATE, key, manifest={**kind, "spec": QUEUES[key.name]}) for key in keys)
    return Decision("QueuesMade", made[0].key, mutations=made) if made else None


def _ensure(cluster: Cluster, key: Key, body: Manifest, status: Manifest) -> None:
    if cluster.store.get(key) is None:
        cluster.create(key, {}, body, status)
