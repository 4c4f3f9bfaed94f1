"""What nodes say: the states of their pods, pods that have ended for good, inventory."""

from collections.abc import Mapping, Sequence

from cluster_gateway.domain.cluster import ENDED, Cluster
from cluster_gateway.domain.node_objects import METRIC, metric_status, owner
from kube import Key, Manifest, Object, merge
from kube.amplification import amplified
from kube.node_evictions import EVICTIONS, written
from resources import Amounts

ORDER = {"": 0, "Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}


def pod_status(cluster: Cluster, node: str, key: Key, uid: str, status: Manifest) -> bool:
    """Take the status that ``node`` reports of a pod; False when it is not that node's pod (any more).

    An old report that comes late cannot bring a finished pod back: a phase never goes backwards, and an end is final.
    """
    pod = cluster.store.get(key)
    if pod is None or pod.uid != uid or pod.spec.get("nodeName") != node:
        return False
    phase, before = (str(part.get("phase", "")) for part in (status, pod.status))
    if ORDER.get(phase, 0) < ORDER.get(before, 0) or (before in ENDED and phase != before):
        return True
    cluster.actor = f"node/{node}"
    cluster.set_status(pod, status)
    return True


def pod_gone(cluster: Cluster, node: str, pod: Object) -> None:
    """The processes of a deleted pod have all ended."""
    if pod.deleting and pod.spec.get("nodeName") == node:
        cluster.actor = f"node/{node}"
        cluster.gone(pod)


def node_usage(
    cluster: Cluster,
    name: str,
    samples: Sequence[Manifest],
    pods: Mapping[str, Key],
    system: Amounts | None = None,
    more: Manifest | None = None,
) -> None:
    """Take one usage summary of a node and its pods: a fact that decisions may rest on, and that people look at.

    ``samples``, ``system`` and ``more`` are as in ``node_objects.metric_status``.
    """
    node = cluster.store.get(Key("Node", "", name))
    status = metric_status(samples, pods, system, more)
    if node is None or status is None:
        return
    cluster.actor = f"node/{name}"
    key = Key(METRIC, "", name)
    known = cluster.store.get(key)
    if known is None:
        cluster.create(key, {"ownerReferences": [owner(node)]}, {"spec": {}}, status)
    else:
        cluster.set_status(known, status)


def node_evictions(cluster: Cluster, name: str, wishes: Sequence[Manifest]) -> None:
    """Take which pods a node asks to be evicted: all of them, so that one who is not named any more may stay."""
    node, key = cluster.store.get(Key("Node", "", name)), Key(METRIC, "", name)
    metric = cluster.store.get(key)
    if node is None or (not wishes and (metric is None or EVICTIONS not in metric.annotations)):
        return
    cluster.actor = f"node/{name}"
    if metric is None:  # nothing was measured for it yet
        metric = cluster.create(key, {"ownerReferences": [owner(node)]}, {"spec": {}}, {})
    text = written(cluster.now, wishes) if wishes else None
    cluster.replace(metric, merge(metric.metadata, {"annotations": {EVICTIONS: text}}), metric.body)


def node_state(cluster: Cluster, name: str, metadata: Manifest, status: Manifest) -> None:
    """A node registers, or reports what of it changed."""
    cluster.actor = f"node/{name}"
    key = Key("Node", "", name)
    node = cluster.store.get(key)
    if node is None:
        labels = {"kubernetes.io/hostname": name}
        cluster.create(key, merge({"labels": labels}, metadata), {"spec": {}}, status)
        return
    if metadata:
        node = cluster.replace(node, merge(node.metadata, metadata), node.body)
    if status:
        amplify(cluster, cluster.set_status(node, status), status.get("allocatable") or {})


def amplify(cluster: Cluster, node: Object, reported: Manifest) -> None:
    """Let ``node`` give out what its annotation says; ``reported`` is what it has just said to have itself."""
    told, amounts = amplified(node.annotations, node.status.get("allocatable") or {}, reported)
    if told:
        node = cluster.replace(node, merge(node.metadata, {"annotations": told}), node.body)
    if amounts:
        cluster.set_status(node, {"allocatable": amounts})
