"""Manifests of the field, applied by kubectl to a real API server, run to their end under Tidegate's services."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from control_plane import ControlPlane

pytestmark = pytest.mark.usefixtures("system")

POD = {
    "metadata": {"annotations": {"lab/runs-for": "1s"}},
    "spec": {
        "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    },
}


def kubectl(plane: ControlPlane, *words: str, given: Any = None) -> str:
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), *words]
    done = subprocess.run(
        command, input=json.dumps(given) if given else None, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def get(plane: ControlPlane, path: str) -> Any:
    return plane.request("GET", path)


def test_a_volcano_job_runs_to_its_end(plane: ControlPlane, system: Path) -> None:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 5,
            "tasks": [
                {"name": "ps", "replicas": 1, "template": POD},
                {"name": "worker", "replicas": 4, "template": POD},
            ],
        },
    }
    kubectl(plane, "apply", "-f", "-", given=job)

    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/train"
    state = eventually(
        lambda: (
            phase
            if (phase := get(plane, path).get("status", {}).get("state", {}).get("phase")) in ("Completed", "Failed")
            else None
        )
    )

    assert state == "Completed"
    assert "Completed" in kubectl(plane, "get", "vcjob", "train")
    pods = get(plane, "/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3Dtrain")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} <= {f"n{number:03}" for number in range(100)}
    group = get(plane, "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups")["items"]
    assert [item["spec"]["minMember"] for item in group] == [5]
