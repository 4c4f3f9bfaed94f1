"""Events, actions, retries and Commands of Volcano Jobs."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]
Job = Callable[..., str]


def retries(cluster: Any) -> int:
    return int(cluster.get("Job/j").status["retryCount"])


def command(action: str, name: str = "c", target: str = "j") -> str:
    api = "batch.volcano.sh/v1alpha1"
    return f"{{kind: Command, metadata: {{name: {name}}}, action: {action}, target: {{apiVersion: {api}, kind: Job, name: {target}}}}}"


def test_a_restart_makes_all_pods_again_in_the_next_version(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(termination="10s")
    cluster.apply(job(policies="[{event: PodFailed, action: RestartJob}]"))
    group = next(key for key in cluster.store.objects if key.kind.startswith("PodGroup"))
    first = cluster.store.objects[group].uid
    cluster.pods_become(**{"j-w-0": "Failed"})
    assert cluster.phase("Job/j") == "Restarting"
    assert cluster.pods() == {"j-w-1": "Running!"}
    cluster.advance("10s")
    assert cluster.pods() == {"j-w-0": "Running", "j-w-1": "Running"}
    assert (cluster.phase("Job/j"), retries(cluster)) == ("Running", 1)
    assert cluster.get("Pod/j-w-0").labels["volcano.sh/job-version"] == "1"
    assert cluster.store.objects[group].uid != first


def test_pods_that_fail_together_cost_one_retry(cluster: Any, job: Job) -> None:
    cluster.apply(job(tasks="{name: w, replicas: 4}", policies="[{event: PodFailed, action: RestartPod}]"))
    cluster.pods_become(**{"j-w-0": "Failed", "j-w-2": "Failed"})
    assert retries(cluster) == 1
    assert set(cluster.pods().values()) == {"Running"}


def test_a_restart_of_a_task_leaves_other_tasks_alone(cluster: Any, job: Job) -> None:
    cluster.apply(
        job(
            tasks="{name: a, replicas: 2}; {name: b, replicas: 1}", policies="[{event: PodFailed, action: RestartTask}]"
        )
    )
    before = {name: cluster.get(f"Pod/{name}").uid for name in cluster.pods()}
    cluster.pods_become(**{"j-a-1": "Failed"})
    after = {name: cluster.get(f"Pod/{name}").uid for name in cluster.pods()}
    assert after["j-b-0"] == before["j-b-0"]
    assert after["j-a-0"] != before["j-a-0"]
    assert after["j-a-1"] != before["j-a-1"]


def test_after_the_last_retry_failed_pods_stay_and_the_rest_is_stopped(cluster: Any, job: Job) -> None:
    cluster.apply(job(maxRetry=2, policies="[{event: PodFailed, action: RestartPod}]"))
    cluster.pods_become(**{"j-w-0": "Failed"})
    cluster.pods_become(**{"j-w-0": {"phase": "Failed", "exitCode": 9}})
    assert cluster.pods() == {"j-w-0": "Failed"}
    assert cluster.phase("Job/j") == "Failed"
    assert "exit code 9" in cluster.get("Job/j").status["state"]["message"]
    assert retries(cluster) == 2


@pytest.mark.parametrize(
    ("action", "phase"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_an_end_stops_what_runs_and_keeps_what_is_done(make_cluster: Make, job: Job, action: str, phase: str) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(job(tasks="{name: w, replicas: 3}", policies=f"[{{event: PodFailed, action: {action}}}]"))
    cluster.pods_become(**{"j-w-2": "Succeeded"})
    cluster.pods_become(**{"j-w-1": "Failed"})
    assert cluster.phase("Job/j") in ("Aborting", "Terminating", "Completing")
    cluster.advance("5s")
    assert cluster.phase("Job/j") == phase
    assert cluster.pods() == {"j-w-1": "Failed", "j-w-2": "Succeeded"}


def test_an_evicted_pod_is_an_event_and_a_pod_that_the_job_deletes_is_none(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(
        job(tasks="{name: w, replicas: 3}", minAvailable=1, policies="[{event: PodEvicted, action: RestartJob}]")
    )
    cluster.apply(
        job(tasks="{name: w, replicas: 2}", minAvailable=1, policies="[{event: PodEvicted, action: RestartJob}]")
    )
    cluster.advance("1m")
    assert retries(cluster) == 0
    cluster.delete("Pod/j-w-0")
    assert retries(cluster) == 1
    cluster.advance("1m")
    assert retries(cluster) == 1
    assert cluster.pods() == {"j-w-0": "Running", "j-w-1": "Running"}


def test_restarting_a_pod_for_a_failure_is_no_eviction(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(termination="5s")
    cluster.apply(job(policies="[{event: PodFailed, action: RestartTask}, {event: PodEvicted, action: AbortJob}]"))
    cluster.pods_become(**{"j-w-0": "Failed"})
    cluster.advance("1m")
    assert (cluster.phase("Job/j"), retries(cluster)) == ("Running", 1)


def test_a_delayed_action_is_cancelled_when_the_pod_runs_again(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(pod_start="manual")
    cluster.apply(job(policies="[{event: PodEvicted, action: AbortJob, timeout: 10s}]"))
    cluster.pods_become(**{"j-w-0": "Running", "j-w-1": "Running"})
    cluster.delete("Pod/j-w-0")
    cluster.advance("9s")
    cluster.pods_become(**{"j-w-0": "Running"})
    cluster.advance("1m")
    assert cluster.phase("Job/j") == "Running"
    cluster.delete("Pod/j-w-1")
    cluster.advance("10s")
    assert cluster.phase("Job/j") == "Aborted"


def test_pending_pods_are_an_event_only_after_the_time_that_the_policy_names(make_cluster: Make, job: Job) -> None:
    cluster = make_cluster(pod_start="never")
    cluster.apply(job(policies="[{event: PodPending, action: AbortJob, timeout: 10s}]"))
    cluster.advance("9s")
    cluster.restart()
    assert cluster.phase("Job/j") == "Pending"
    cluster.advance("2s")
    assert cluster.phase("Job/j") == "Aborted"
    assert cluster.pods() == {}


def test_a_task_has_failed_when_its_containers_restart_too_often(cluster: Any, job: Job) -> None:
    cluster.apply(
        job(tasks="{name: w, replicas: 2, maxRetry: 3, policies: [{event: TaskFailed, action: TerminateJob}]}")
    )
    cluster.pods_become(**{"j-w-0": {"phase": "Running", "restarts": 2}})
    assert cluster.phase("Job/j") == "Running"
    cluster.pods_become(**{"j-w-1": {"phase": "Running", "restarts": 1}})
    assert cluster.phase("Job/j") == "Terminated"


def test_a_changed_spec_is_an_event(cluster: Any, job: Job) -> None:
    policies = "[{event: JobUpdated, action: RestartJob}]"
    cluster.apply(job(policies=policies))
    cluster.apply(job(tasks="{name: w, replicas: 3}", policies=policies))
    assert retries(cluster) == 1
    assert len(cluster.pods()) == 3


def test_a_group_that_becomes_unknown_is_an_event(cluster: Any, job: Job) -> None:
    cluster.apply(job(policies="[{event: Unknown, action: RestartJob}]"))
    cluster.patch_status(f"PodGroup/j-{cluster.get('Job/j').uid}", {"phase": "Unknown"})
    assert (cluster.phase("Job/j"), retries(cluster)) == ("Running", 1)


def test_any_event_matches_the_star(cluster: Any, job: Job) -> None:
    cluster.apply(job(policies='[{event: "*", action: AbortJob}]'))
    cluster.delete("Pod/j-w-0")
    assert cluster.phase("Job/j") == "Aborted"


def test_commands_are_deleted_and_done(cluster: Any, job: Job) -> None:
    cluster.apply(job())
    cluster.apply(command("AbortJob"))
    assert cluster.phase("Job/j") == "Aborted"
    assert not cluster.has("Command/c")
    cluster.apply(command("ResumeJob"))
    assert (cluster.phase("Job/j"), retries(cluster)) == ("Running", 1)
    cluster.apply(command("RestartJob"))
    assert (cluster.phase("Job/j"), retries(cluster)) == ("Running", 2)
    cluster.apply(command("ResumeJob"))
    assert not cluster.has("Command/c")
    assert cluster.phase("Job/j") == "Running"
    cluster.apply(command("TerminateJob"))
    assert cluster.phase("Job/j") == "Terminated"


def test_a_command_to_a_job_that_is_not_there_is_dropped(cluster: Any, job: Job) -> None:
    cluster.apply(command("AbortJob", target="nobody"))
    assert not cluster.has("Command/c")
    assert cluster.said() == ["CommandDropped"]


def test_a_command_to_a_queue_is_left_alone(cluster: Any) -> None:
    cluster.apply("{kind: Command, metadata: {name: c}, action: CloseQueue, target: {kind: Queue, name: q}}")
    assert cluster.has("Command/c")


def test_a_policy_of_a_lower_action_waits_for_none_of_its_pods_twice(cluster: Any, job: Job) -> None:
    """A failure without a policy for its exit code stays a failure, however often the job is looked at."""
    cluster.apply(job(tasks="{name: w, replicas: 3}", policies="[{exitCode: 3, action: RestartJob}]"))
    cluster.pods_become(**{"j-w-0": {"phase": "Failed", "exitCode": 2}})
    cluster.restart()
    assert (cluster.pods()["j-w-0"], retries(cluster)) == ("Failed", 0)
