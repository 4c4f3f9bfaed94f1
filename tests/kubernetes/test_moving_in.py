"""Onto a cluster that is in use: what is told before, and what becomes of the work that runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from test_unchanged_manifests import JOBS, get, kubectl, reaches, template, volcano_job

PODS = "/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3Dmoved"


@pytest.fixture
def system() -> None:
    """Each test starts its own."""


def check(plane: ControlPlane, names: str) -> tuple[int, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "tidegate_cli.main", "check-cluster", "--kubeconfig", str(plane.kubeconfig)]
    command += ["--scheduler-names", names, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_what_would_differ_is_told_before_anything_is_switched(plane: ControlPlane) -> None:
    labels = {"app": "volcano-controllers"}
    container = {"name": "main", "image": "docker.io/volcanosh/vc-controller-manager:v1.13.0"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "volcano-controllers", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "strange"}}
    kubectl(plane, "apply", "-f", "-", given=deployment)
    kubectl(plane, "apply", "-f", "-", given={**queue, "spec": {"weight": 1, "parent": "nowhere"}})

    code, found = check(plane, "tidegate,volcano")
    told = {one["subject"]: one for one in found if one["level"] == "conflict"}

    assert code == 1
    assert "batch.volcano.sh" in told["Deployment default/volcano-controllers"]["text"]
    assert "spec.parent" in told["Queue/strange"]["text"]
    kubectl(plane, "delete", "queue", "strange")
    kubectl(plane, "scale", "deployment", "volcano-controllers", "--replicas=0")
    code, found = check(plane, "tidegate,volcano")
    assert code == 0, found
    kubectl(plane, "delete", "deployment", "volcano-controllers")


def test_work_that_runs_is_taken_up_by_a_system_that_knows_nothing_of_it(plane: ControlPlane, tmp_path: Path) -> None:
    """The objects are those of a cluster on which others made them: nothing of the first system is left beside them."""
    long = template()
    long["metadata"]["annotations"]["lab/runs-for"] = "3600s"
    tasks = [{"name": "w", "replicas": 3, "template": long}]
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    with running_system(plane, tmp_path / "first"):
        kubectl(plane, "apply", "-f", "-", given=volcano_job("moved", minAvailable=3, tasks=tasks, policies=policies))
        reaches(plane, f"{JOBS}/moved", lambda status: status.get("running") == 3)
    before = {pod["metadata"]["uid"] for pod in get(plane, PODS)["items"]}
    lost = get(plane, PODS)["items"][0]["metadata"]

    with running_system(plane, tmp_path / "second"):
        reaches(plane, f"{JOBS}/moved", lambda status: status.get("running") == 3)
        assert {pod["metadata"]["uid"] for pod in get(plane, PODS)["items"]} == before
        kubectl(plane, "delete", "pod", lost["name"], "--wait=false")
        eventually(lambda: _running(plane) == 3 and lost["uid"] not in _uids(plane))
        kubectl(plane, "delete", "vcjob", "moved")
        eventually(lambda: not get(plane, PODS)["items"])


def _uids(plane: ControlPlane) -> set[str]:
    return {pod["metadata"]["uid"] for pod in get(plane, PODS)["items"]}


def _running(plane: ControlPlane) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in get(plane, PODS)["items"])
