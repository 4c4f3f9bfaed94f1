"""What the benchmarks submit."""

from typing import Any

Manifest = dict[str, Any]


def gang(name: str, size: int) -> list[Manifest]:
    """A PodGroup that needs all of its pods, and the pods."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": size},
    }
    return [group, *(pod(f"{name}-{number}", {"scheduling.k8s.io/group-name": name}) for number in range(size))]


def pod(name: str, annotations: dict[str, str] | None = None, cpu: str = "10m") -> Manifest:
    """A pod for a simulated node."""
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def process_job(name: str, replicas: int) -> Manifest:
    """A Volcano Job of real processes that sleep until they are deleted."""
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": "10m"}},
    }
    task = {
        "name": "w",
        "replicas": replicas,
        "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": replicas, "tasks": [task]},
    }
