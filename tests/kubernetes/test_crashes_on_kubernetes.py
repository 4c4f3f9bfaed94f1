"""Whatever is killed while gangs start: no pod is bound twice, no gang stays half, and it goes on."""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cluster_tools import eventually
from control_plane import ControlPlane

from tidegate_cli.supervisor import endpoint

GANGS, SIZE = 12, 5
NAMESPACE = "/api/v1/namespaces/default"


def make_gangs(plane: ControlPlane) -> None:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    for number in range(GANGS):
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": f"gang{number}", "namespace": "default"},
            "spec": {
                "schedulerName": "volcano",
                "minAvailable": SIZE,
                "queue": "default",
                "tasks": [{"name": "w", "replicas": SIZE, "template": {"spec": {"containers": [container]}}}],
            },
        }
        plane.request("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", job)


def bound(plane: ControlPlane) -> list[Any]:
    pods = plane.request("GET", f"{NAMESPACE}/pods?labelSelector=volcano.sh/job-name")["items"]
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def whole(plane: ControlPlane) -> bool:
    jobs = Counter(pod["metadata"]["labels"]["volcano.sh/job-name"] for pod in bound(plane))
    return len(jobs) == GANGS and set(jobs.values()) == {SIZE}


@pytest.fixture
def cleared(plane: ControlPlane) -> Any:
    yield
    plane.request("DELETE", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs")
    eventually(lambda: not plane.request("GET", f"{NAMESPACE}/pods?labelSelector=volcano.sh/job-name")["items"], 60)


@pytest.mark.usefixtures("cleared")
@pytest.mark.parametrize("name", ["cluster_gateway", "gang_scheduler", "job_controller", "queue_manager", "nats"])
def test_a_part_that_is_killed_while_gangs_start_loses_nothing(plane: ControlPlane, system: Path, name: str) -> None:
    make_gangs(plane)
    eventually(lambda: bound(plane), 60)
    found = endpoint.read(system)
    assert found is not None

    os.kill(found.children[name], signal.SIGKILL)

    eventually(lambda: whole(plane), 60)


@pytest.mark.usefixtures("cleared", "system")
def test_an_api_server_that_is_killed_and_comes_back_finds_the_gangs_whole(plane: ControlPlane) -> None:
    make_gangs(plane)
    eventually(lambda: bound(plane), 60)

    plane.kill("kube-apiserver")
    plane.start_again("kube-apiserver")
    plane.wait_ready()

    eventually(lambda: whole(plane), 90)
