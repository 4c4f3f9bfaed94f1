"""What nodes say: the states of their pods, pods that have ended for good, inventory."""

from collections.abc import Mapping, Sequence

from cluster_gateway.domain.cluster import ENDED, Cluster
from kube import Key, Manifest, Object, merge, rfc3339
from resources import Amounts, format_amounts

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


METRIC = "NodeMetric.slo.koordinator.sh"


def node_usage(
    cluster: Cluster, name: str, samples: Sequence[Manifest], pods: Mapping[str, Key], system: Amounts | None = None
) -> None:
    """Take one usage summary of a node and its pods: a fact that decisions may rest on, and that people look at.

    A sample is ``{uid, at, cpu_milli, memory_bytes}``; the one with an empty uid is of the whole node. ``system`` is what
    belongs to no pod.
    """
    node = cluster.store.get(Key("Node", "", name))
    whole = next((sample for sample in samples if not sample["uid"]), None)
    if node is None or whole is None:
        return
    cluster.actor = f"node/{name}"
    of_pods = [
        {"namespace": pods[sample["uid"]].namespace, "name": pods[sample["uid"]].name, "podUsage": _usage(sample)}
        for sample in samples
        if sample["uid"] in pods
    ]
    metric = {"nodeUsage": _usage(whole)}
    if system is not None:
        metric["systemUsage"] = {"resources": format_amounts({"cpu": 0, "memory": 0, **system})}
    status: Manifest = {"updateTime": rfc3339(int(whole["at"])), "nodeMetric": metric, "podsMetric": of_pods}
    key = Key(METRIC, "", name)
    known = cluster.store.get(key)
    if known is None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}
        cluster.create(key, {"ownerReferences": [owner]}, {"spec": {}}, status)
    else:
        cluster.set_status(known, status)


def _usage(sample: Manifest) -> Manifest:
    amounts = {"cpu": int(sample["cpu_milli"]), "memory": int(sample["memory_bytes"])}
    return {"resources": format_amounts(amounts)}


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
        cluster.set_status(node, status)
