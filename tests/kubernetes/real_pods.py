"""Pods on a real node: made by kubectl, looked at until they are as they should be."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import yaml
from cluster_tools import eventually
from control_plane import ControlPlane
from lab_image import PYTHON
from node_place import CGROUPS
from real_node import RealNode

from node_agent.kubelet.pod_groups import PodGroup, PodGroups, find_groups

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
EXAMPLES = Path(__file__).parents[2] / "examples"


def pods(plane: ControlPlane, selector: str) -> list[Any]:
    found: list[Any] = plane.request("GET", f"{PODS}?labelSelector={selector.replace('=', '%3D')}")["items"]
    return found


def is_ready(pod: Any) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def ready(plane: ControlPlane, selector: str, count: int) -> list[Any]:
    """The pods of ``selector`` once so many of them are ready."""
    return eventually(lambda: found if sum(map(is_ready, found := pods(plane, selector))) == count else None, 90)


def ring(rounds: int) -> list[dict[str, Any]]:
    """The example with this lab's image, on a small node; a pod that fails lets the job start anew."""
    made = list(yaml.safe_load_all((EXAMPLES / "ring-allreduce.yaml").read_text()))
    job = made[-1]
    job["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    for task in job["spec"]["tasks"]:
        (one,) = task["template"]["spec"]["containers"]
        one["image"], one["resources"] = PYTHON, {"requests": {"cpu": "50m", "memory": "32Mi"}}
        one["env"] = [{**entry, "value": str(rounds)} if entry["name"] == "ROUNDS" else entry for entry in one["env"]]
    return made


def apply(plane: ControlPlane, *manifests: Any) -> None:
    text = yaml.safe_dump_all(manifests)
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), "apply", "-f", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr


def log_of(plane: ControlPlane, pod: str) -> str:
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), "logs", pod]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout


def phase(plane: ControlPlane, job: str) -> str:
    found = plane.request("GET", f"{JOBS}/{job}").get("status", {}).get("state", {}).get("phase", "")
    return str(found)


def group_of(node: RealNode, uid: str) -> tuple[PodGroups, PodGroup]:
    """The control group of a pod, and how to read it."""
    groups = find_groups(CGROUPS, node.cgroup_root)
    return groups, groups.find()[uid]


def kill_container(node: RealNode, pod: Any) -> None:
    """SIGKILL its processes, as the kernel does when memory is short."""
    (status,) = pod["status"]["containerStatuses"]
    groups, group = group_of(node, pod["metadata"]["uid"])
    running = groups.cpu / group.path / status["containerID"].rpartition("/")[2] / "cgroup.procs"
    for pid in running.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
