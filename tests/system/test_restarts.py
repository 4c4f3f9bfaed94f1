"""The system, the supervisor or everything at once is started anew: nothing is lost, nothing is there twice."""

import time

import pytest
from tidegate_system_gangs import MEMBERS, clean, fail_one, is_empty, is_whole, ring

from kube import Manifest
from tidegate.services import SERVICES

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

PARTS = ("nats", *SERVICES)


def too_large(name: str) -> Manifest:
    """A gang that has to wait."""
    job = ring(name)
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5000"}}
    return job


def identities(system) -> dict[str, str]:
    """The uids of what users wrote."""
    kinds = ("jobs.batch.volcano.sh", "queues", "configmaps", "secrets", "nodes")
    return {
        f"{kind}/{one['metadata']['name']}": one["metadata"]["uid"]
        for kind in kinds
        for one in system.patiently(lambda kind=kind: system.client.list(kind))
    }


def test_pods_run_on_when_every_part_is_killed_at_once(system) -> None:
    system.apply(ring("calm"))
    system.finally_right(lambda: is_whole(system, ["calm"]))
    before = system.pod_processes()
    system.kill(*PARTS)
    system.apply(ring("next"))
    system.finally_right(lambda: is_whole(system, ["calm", "next"]))
    after = system.pod_processes()
    assert {uid: after[uid] for uid in before} == before, "a process of a running pod was lost or started anew"
    clean(system, ["calm", "next"])


def test_an_agent_that_is_killed_again_and_again_loses_and_doubles_nothing(system) -> None:
    for number in range(3):
        system.apply(ring(f"agent-{number}"))
        system.kill("node_agent")
        time.sleep(0.2 * number)
    names = [f"agent-{number}" for number in range(3)]
    system.finally_right(lambda: is_whole(system, names))
    before = system.pod_processes()
    system.kill("node_agent")
    time.sleep(0.5)
    system.finally_right(lambda: is_whole(system, names))
    assert system.pod_processes() == before
    clean(system, names)


def test_a_member_that_fails_while_nobody_watches_is_noticed(system) -> None:
    system.apply(ring("unwatched"))
    system.finally_right(lambda: is_whole(system, ["unwatched"]))
    system.kill("node_agent", "job_controller")
    fail_one(system, "unwatched")
    system.finally_right(lambda: is_whole(system, ["unwatched"], restarts=1))
    clean(system, ["unwatched"])


def test_a_system_that_is_stopped_and_started_has_everything(system) -> None:
    """It starts from its snapshot and the log behind it; jobs that ran are started again by their own policy."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "value"}}
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "team"},
        "spec": {"weight": 3},
    }
    system.apply(config, secret, queue, ring("lasting"), too_large("waiting"))
    system.finally_right(lambda: _wrong_but(system, "lasting", "waiting", 0))
    before = identities(system)
    for restarts in (1, 2):
        system.stop()
        system.start()
        system.finally_right(lambda restarts=restarts: _wrong_but(system, "lasting", "waiting", restarts))
        assert identities(system) == before
    system.audit()
    clean(system, ["lasting", "waiting"])


def test_a_pause_of_scheduling_outlasts_a_restart(system) -> None:
    told = system.patiently(lambda: system.client.set_scheduling(paused=True, reason="repairs"))
    system.apply(ring("held"))
    system.stop()
    system.start()
    system.kill("gang_scheduler")
    system.eventually(lambda: told in [one.message for one in system.patiently(system.client.status).services])
    system.finally_right(lambda: [] if len(system.all_of("pods")) == MEMBERS else ["the job has no pods"])
    time.sleep(1.0)
    assert not any(pod["spec"].get("nodeName") for pod in system.all_of("pods"))
    system.patiently(lambda: system.client.set_scheduling(paused=False))
    system.finally_right(lambda: is_whole(system, ["held"]))
    clean(system, ["held"])


def _wrong_but(system, running: str, waiting: str, restarts: int) -> list[str]:
    """What is wrong, except that one gang waits."""
    phase = system.get("jobs.batch.volcano.sh", waiting).get("status", {}).get("state", {}).get("phase")
    wrong = [] if phase == "Pending" else [f"{waiting} is {phase}"]
    return wrong + [one for one in is_whole(system, [running], restarts) if f"podgroup {waiting}-" not in one]


def test_nothing_runs_on_without_the_supervisor_and_the_next_one_takes_up_all(system) -> None:
    system.apply(ring("orphaned"))
    system.finally_right(lambda: is_whole(system, ["orphaned"]))
    system.kill_supervisor()
    system.eventually(lambda: not system.processes())
    system.start()
    system.finally_right(lambda: is_whole(system, ["orphaned"], restarts=1))
    clean(system, ["orphaned"])
    system.finally_right(lambda: is_empty(system))
