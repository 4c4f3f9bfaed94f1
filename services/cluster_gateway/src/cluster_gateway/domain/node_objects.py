"""The objects that describe a node beside the Node itself, from what its agent reports."""

from collections.abc import Mapping, Sequence

from kube import Key, Manifest, Object, merge, rfc3339
from resources import Amounts, format_amounts

METRIC = "NodeMetric.slo.koordinator.sh"
DEVICE = "Device.scheduling.koordinator.sh"
INVENTORY = "tidegate.dev/inventory"
"""The annotation with NUMA nodes, GPUs and their connections; a Device has no place for the last."""

MANAGED_BY, TIDEGATE = "app.kubernetes.io/managed-by", "tidegate"
_UNKNOWN = -1


def metric_status(
    samples: Sequence[Manifest],
    pods: Mapping[str, Key],
    system: Amounts | None = None,
    more: Manifest | None = None,
) -> Manifest | None:
    """The status of a NodeMetric from one usage summary; None without a sample of the whole node.

    A sample is ``{uid, at, cpu_milli, memory_bytes}``; the one with an empty uid is of the whole node, and
    ``<uid>/<name>`` is a container. ``system`` is what
    belongs to no pod. ``more`` is laid over it: means and percentiles over windows, programs that are no pods.
    """
    whole = next((sample for sample in samples if not sample["uid"]), None)
    if whole is None:
        return None
    containers: dict[str, list[Manifest]] = {}
    for sample in samples:
        uid, of_container, name = str(sample["uid"]).partition("/")
        if of_container:
            containers.setdefault(uid, []).append({"name": name, "usage": _usage(sample)})
    of_pods = [
        {"namespace": pods[uid].namespace, "name": pods[uid].name, "podUsage": _usage(sample)}
        | ({"containers": containers[uid]} if uid in containers else {})
        for sample in samples
        if (uid := str(sample["uid"])) in pods
    ]
    metric = {"nodeUsage": _usage(whole)}
    if system is not None:
        metric["systemUsage"] = {"resources": format_amounts({"cpu": 0, "memory": 0, **system})}
    status = {"updateTime": rfc3339(int(whole["at"])), "nodeMetric": metric, "podsMetric": of_pods}
    return merge(status, more) if more else status


def device_spec(inventory: Manifest) -> Manifest:
    """The spec of a Device: the GPUs of an inventory as Koordinator's own agent tells them."""
    return {"devices": [_gpu(gpu) for gpu in inventory.get("gpus") or ()]}


def owner(node: Object) -> Manifest:
    """The owner reference that lets an object go with its Node."""
    return {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}


def _usage(sample: Manifest) -> Manifest:
    amounts = {"cpu": int(sample["cpu_milli"]), "memory": int(sample["memory_bytes"])}
    return {"resources": format_amounts(amounts)}


def _gpu(gpu: Manifest) -> Manifest:
    numa = gpu.get("numa")
    return {
        "type": "gpu",
        "id": str(gpu.get("uuid") or ""),
        "minor": int(gpu["index"]),
        "health": True,
        "labels": {"gpu-model": str(gpu.get("model") or "").replace(" ", "-")},
        "resources": {
            "koordinator.sh/gpu-core": "100",
            "koordinator.sh/gpu-memory": str(gpu.get("memory") or 0),
            "koordinator.sh/gpu-memory-ratio": "100",
        },
        "topology": {"socketID": _UNKNOWN, "nodeID": _UNKNOWN if numa is None else int(numa), "pcieID": ""},
    }
