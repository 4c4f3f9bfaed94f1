"""Manifests that users hand in by kubectl, and what the API server says of them afterwards."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

from cluster_tools import eventually
from control_plane import ControlPlane


def template(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "metadata": {"annotations": {"lab/runs-for": "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def run(plane: ControlPlane, *words: str, given: Any = None) -> "subprocess.CompletedProcess[str]":
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), *words]
    text = json.dumps(given) if given else None
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=90)


def kubectl(plane: ControlPlane, *words: str, given: Any = None) -> str:
    done = run(plane, *words, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(plane: ControlPlane, path: str) -> Any:
    return plane.request("GET", path)


def reaches(plane: ControlPlane, path: str, what: Callable[[Any], bool]) -> Any:
    """The object at ``path`` once its status is so."""
    return eventually(lambda: found if what((found := get(plane, path)).get("status") or {}) else None)


def has(condition: str) -> Callable[[Any], bool]:
    return lambda status: any(
        one["type"] == condition and one["status"] == "True" for one in status.get("conditions") or ()
    )


def end(plane: ControlPlane, *pods: str) -> None:
    """Let pods that run come to a good end, as their node would tell it."""
    for name in pods:
        status = {"status": {"phase": "Succeeded"}}
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        plane.request("PATCH", path, status, "application/merge-patch+json")


def volcano_job(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "volcano", **spec},
    }


def apply(plane: ControlPlane, *manifests: Any) -> None:
    """Hand them in as one file."""
    kubectl(plane, "apply", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def delete(plane: ControlPlane, *manifests: Any) -> None:
    """Take them back. The webhook hears a moment later of what is gone, and refuses until then what that needed."""
    everything = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    eventually(lambda: run(plane, "delete", "--ignore-not-found", "-f", "-", given=everything).returncode == 0)
