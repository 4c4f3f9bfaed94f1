"""A warning for who comes from Kubernetes: where nodes run processes and no images, a container has to name its command."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from admission.domain.world import Review
from kube import Key, Object
from kube.images import STOOD_IN_FOR, image_fits

_PROCESSES = "tidegate.dev/isolation"
"""Every agent that runs pods as processes of its machine has this annotation on its node."""
_RUNNING = frozenset(
    [
        "Pod",
        *(f"{kind}.apps" for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
        *(f"{kind}.{group}" for kind in ("Job", "CronJob") for group in ("batch", "batch.volcano.sh")),
        "JobTemplate.flow.volcano.sh",
        "JobSet.jobset.x-k8s.io",
        *(f"{kind}.kubeflow.org" for kind in ("JAXJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")),
    ]
)
"""Kinds whose containers run as they are written: runtimes, TrainJobs and MPIJobs get commands from elsewhere too."""
_COMMANDING_PLUGINS = frozenset(["ray"])


def warn_unrunnable(review: Review) -> Iterable[str]:
    """Containers of a new object that no node without images could start."""
    if review.key.kind not in _RUNNING or review.old is not None or _COMMANDING_PLUGINS & _plugins(review):
        return
    silent = {path: one for path, one in _containers("spec", review.spec) if not one.get("command")}
    nodes = review.world.annotated("Node", _PROCESSES) if silent else ()
    if not nodes:
        return
    stood_in_for = _stood_in_for(review.world.get(Key("Node", "", nodes[0])))
    for path, container in silent.items():
        if not image_fits(str(container.get("image") or ""), stood_in_for):
            yield (
                f"{path}.command is not set: node {nodes[0]} runs processes of its machine and no images, so the pod would "
                "end or wait there with ImageNotRunnable; name the command"
            )
            return


def _stood_in_for(node: Object | None) -> list[str]:
    """The patterns of images that programs of the node's machine stand in for."""
    try:
        told = json.loads(node.annotations.get(STOOD_IN_FOR, "[]")) if node is not None else []
    except ValueError:
        return []
    return [str(one) for one in told] if isinstance(told, list) else []


def _plugins(review: Review) -> frozenset[str]:
    plugins = review.spec.get("plugins")
    return frozenset(plugins) if isinstance(plugins, dict) else frozenset()


def _containers(path: str, part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every container below ``part`` with its path, in order."""
    if isinstance(part, list):
        for index, one in enumerate(part):
            yield from _containers(f"{path}[{index}]", one)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("containers", "initContainers") and isinstance(value, list):
                yield from ((f"{path}.{name}[{n}]", one) for n, one in enumerate(value) if isinstance(one, dict))
            else:
                yield from _containers(f"{path}.{name}", value)
