"""Gangs for the fault tests, and what is wrong with them."""

import os
import signal
from collections.abc import Sequence
from typing import Any

from kube import Manifest

MEMBERS = 3


def ring(name: str) -> Manifest:
    """A gang that starts whole or not at all, and again as a whole when a member fails."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo started >> $HOME/starts; exec sleep 100000"],
        "resources": {"requests": {"cpu": "10m"}},
    }
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": MEMBERS,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "tasks": [{"name": "w", "replicas": MEMBERS, "template": {"spec": spec}}],
        },
    }


def is_whole(system: Any, names: Sequence[str], restarts: int = 0) -> list[str]:
    """What is wrong with these gangs and with all that runs."""
    jobs = {one["metadata"]["name"]: one.get("status", {}) for one in system.all_of("jobs.batch.volcano.sh")}
    pods, running, wrong = system.all_of("pods"), system.pod_processes(), []
    for name in names:
        mine = [pod for pod in pods if pod["metadata"]["labels"].get("volcano.sh/job-name") == name]
        if len(mine) != MEMBERS:
            wrong.append(f"{name} has {len(mine)} pods")
        wrong += [
            f"{pod['metadata']['name']}: {said}" for pod in mine if (said := _pod_complaint(system, pod, running))
        ]
        status = jobs.get(name, {})
        found = (status.get("state", {}).get("phase"), status.get("running"), status.get("retryCount"))
        if found != ("Running", MEMBERS, restarts):
            wrong.append(f"{name} is {found}")
    groups = [one for one in system.all_of("podgroups") if one.get("status", {}).get("phase") != "Running"]
    wrong += [f"podgroup {one['metadata']['name']} is {one.get('status', {}).get('phase')}" for one in groups]
    orphans = running.keys() - {pod["metadata"]["uid"] for pod in pods}
    return wrong + [f"processes of {uid}, which is no pod" for uid in sorted(orphans)]


def _pod_complaint(system: Any, pod: Manifest, running: dict[str, list[int]]) -> str:
    uid, status = pod["metadata"]["uid"], pod["status"]
    if status.get("phase") != "Running":
        return f"is {status.get('phase')} on {pod['spec'].get('nodeName')}"
    if len(running.get(uid, [])) != 1:
        return f"has processes {running.get(uid)}"
    if [one["restartCount"] for one in status["containerStatuses"]] != [0]:
        return f"was restarted: {status['containerStatuses']}"
    starts = system.folder / "node" / "pods" / uid / "home" / "starts"
    count = len(starts.read_text().split()) if starts.exists() else 0
    return "" if count == 1 else f"was started {count} times"


def is_empty(system: Any) -> list[str]:
    """What is left though everything was deleted."""
    kinds = ("jobs.batch.volcano.sh", "podgroups", "pods")
    left = [f"{kind} {one['metadata']['name']}" for kind in kinds for one in system.all_of(kind)]
    return left + [f"processes of {uid}: {pids}" for uid, pids in system.pod_processes().items()]


def fail_one(system: Any, name: str) -> None:
    """Kill the process of one member of a gang."""
    pods = {pod["metadata"]["uid"] for pod in system.all_of("pods", f"volcano.sh/job-name={name}")}
    victim = next(pids[0] for uid, pids in sorted(system.pod_processes().items()) if uid in pods)
    os.kill(victim, signal.SIGKILL)


def clean(system: Any, names: Sequence[str]) -> None:
    for name in names:
        system.delete("job", name)
    system.finally_right(lambda: is_empty(system))
