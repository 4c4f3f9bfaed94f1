"""kill -9 of each service, and of the bus, in the middle of a gang's start, of its restart and of its deletion.

Each case has several gangs at different stages of the same course when the process dies. Afterwards every gang is whole
or absent, no process is orphaned, no pod doubled, and the statuses are right. ``TIDEGATE_LONG=1`` adds many more moments.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from kube import Manifest

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

PARTS = ("nats", "cluster_gateway", "admission", "job_controller", "queue_manager", "gang_scheduler", "node_agent")
MEMBERS = 3
LONG = bool(os.environ.get("TIDEGATE_LONG"))
# How long before the kill each gang sets out, in milliseconds. Undisturbed, a gang starts in about 120 and goes in about 60.
COURSES = {"start": (5, 30, 60, 110), "restart": (5, 30, 70, 140), "delete": (0, 15, 35, 65)}
SHIFTS = range(0, 80, 8) if LONG else (0,)


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


def is_whole(system, names: Sequence[str], restarts: int = 0) -> list[str]:
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


def _pod_complaint(system, pod: Manifest, running: dict[str, list[int]]) -> str:
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


def is_empty(system) -> list[str]:
    """What is left though everything was deleted."""
    kinds = ("jobs.batch.volcano.sh", "podgroups", "pods")
    left = [f"{kind} {one['metadata']['name']}" for kind in kinds for one in system.all_of(kind)]
    return left + [f"processes of {uid}: {pids}" for uid, pids in system.pod_processes().items()]


def moments(course: str, shift: int) -> list[int]:
    """When the gangs of a case set out, milliseconds before the kill."""
    return [moment + shift for moment in COURSES[course]]


def disturbed(system, part: str, moments: Sequence[int], actions: Sequence[Callable[[], None]]) -> None:
    """Begin each action so many milliseconds before ``part`` is killed."""
    kill_at = time.monotonic() + max(moments) / 1000 + 0.02

    def begin(action: Callable[[], None], moment: int) -> None:
        time.sleep(max(0.0, kill_at - moment / 1000 - time.monotonic()))
        action()

    with ThreadPoolExecutor(len(actions)) as threads:
        begun = [threads.submit(begin, action, moment) for action, moment in zip(actions, moments, strict=True)]
        time.sleep(max(0.0, kill_at - time.monotonic()))
        system.kill(part)
        for one in begun:
            one.result()


def fail_one(system, name: str) -> None:
    """Kill the process of one member of a gang."""
    pods = {pod["metadata"]["uid"] for pod in system.all_of("pods", f"volcano.sh/job-name={name}")}
    victim = next(pids[0] for uid, pids in sorted(system.pod_processes().items()) if uid in pods)
    os.kill(victim, signal.SIGKILL)


def clean(system, names: Sequence[str]) -> None:
    for name in names:
        system.delete("job", name)
    system.finally_right(lambda: is_empty(system))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_starting_is_whole(system, part: str, shift: int) -> None:
    names = [f"start-{part.replace('_', '-')}-{number}" for number in range(4)]
    disturbed(system, part, moments("start", shift), [lambda name=name: system.apply(ring(name)) for name in names])
    system.finally_right(lambda: is_whole(system, names))
    clean(system, names)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_being_restarted_is_whole_again_and_was_restarted_once(system, part: str, shift: int) -> None:
    names = [f"again-{part.replace('_', '-')}-{number}" for number in range(4)]
    for name in names:
        system.apply(ring(name))
    system.finally_right(lambda: is_whole(system, names))
    victims = system.pod_processes()
    disturbed(system, part, moments("restart", shift), [lambda name=name: fail_one(system, name) for name in names])
    system.finally_right(lambda: is_whole(system, names, restarts=1))
    assert not victims.keys() & system.pod_processes().keys(), "a pod of before the restart runs on"
    clean(system, names)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_gang_that_was_being_deleted_is_gone(system, part: str, shift: int) -> None:
    names = [f"gone-{part.replace('_', '-')}-{number}" for number in range(4)]
    for name in names:
        system.apply(ring(name))
    system.finally_right(lambda: is_whole(system, names))
    disturbed(system, part, moments("delete", shift), [lambda name=name: system.delete("job", name) for name in names])
    system.finally_right(lambda: is_empty(system))
