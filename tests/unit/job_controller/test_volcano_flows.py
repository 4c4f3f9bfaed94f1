"""JobFlows, JobTemplates and CronJobs of Volcano."""

from collections.abc import Callable
from typing import Any

import pytest

from kube.pods import asked_probes

TEMPLATES = "\n---\n".join(
    f"""
kind: JobTemplate
metadata: {{name: {name}}}
spec:
  minAvailable: 1
  tasks: [{{name: w, replicas: 1, template: {{spec: {{restartPolicy: Never, containers: [{{name: c}}]}}}}}}]
"""
    for name in ("a", "b")
)


def flow(depends: str, **spec: str) -> str:
    more = "\n".join(f"  {key}: {value}" for key, value in spec.items())
    return f"kind: JobFlow\nmetadata: {{name: f}}\nspec:\n  flows: [{{name: a}}, {{name: b, dependsOn: {depends} }}]\n{more}"


def cron(**spec: object) -> str:
    more = "\n".join(f"  {key}: {value}" for key, value in spec.items())
    task = "{name: w, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}"
    return f"kind: CronJob\nmetadata: {{name: c}}\nspec:\n  jobTemplate: {{spec: {{tasks: [{task}]}}}}\n{more}"


def jobs(cluster: Any) -> dict[str, str]:
    return {key.name: cluster.phase(f"Job/{key.name}") for key in sorted(cluster.store.of_kind("Job.batch.volcano.sh"))}


def test_a_step_is_made_when_those_it_depends_on_are_completed(cluster: Any) -> None:
    cluster.apply(TEMPLATES, flow("{targets: [a]}"))
    assert jobs(cluster) == {"f-a": "Running"}
    assert "b waits for a" in cluster.get("JobFlow/f").status["state"]["message"]
    cluster.pods_become(**{"f-a-w-0": "Succeeded"})
    assert jobs(cluster) == {"f-a": "Completed", "f-b": "Running"}
    assert cluster.get("JobFlow/f").status["state"]["phase"] == "Running"
    cluster.pods_become(**{"f-b-w-0": "Succeeded"})
    status = cluster.get("JobFlow/f").status
    assert status["state"] == {"phase": "Succeed"}
    assert status["completedJobs"] == ["f-a", "f-b"]
    assert cluster.get("JobTemplate/a").status["jobDependsOnList"] == ["f-a"]
    assert "f is Running: f-a Completed, f-b Running" in [decision.message for decision in cluster.decisions]


def test_a_flow_that_does_not_retain_its_jobs_deletes_them_at_the_end_and_makes_none_again(cluster: Any) -> None:
    cluster.apply(TEMPLATES, flow("{targets: [a]}", jobRetainPolicy="delete"))
    for name in ("a", "b"):
        cluster.pods_become(**{f"f-{name}-w-0": "Succeeded"})
    assert jobs(cluster) == {}
    cluster.restart()
    assert jobs(cluster) == {}
    assert cluster.get("JobFlow/f").status["state"]["phase"] == "Succeed"


def test_a_probe_lets_a_step_begin_while_its_target_still_runs(cluster: Any) -> None:
    cluster.apply(TEMPLATES, flow("{targets: [a], probe: {taskStatusList: [{taskName: w, phase: Running}]}}"))
    assert jobs(cluster) == {"f-a": "Running", "f-b": "Running"}


ASKING = "{targets: [a], probe: {tcpSocketList: [{taskName: w, port: 80}], httpGetList: [{taskName: w, port: 81}]}}"


def test_a_step_begins_when_its_target_answers_on_its_ports(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(pod_start="manual")
    cluster.apply(TEMPLATES, flow(ASKING))
    asked = asked_probes(cluster.get("Pod/f-a-w-0").annotations)
    assert list(asked.values()) == [{"httpGet": {"path": "/", "port": 81}}, {"tcpSocket": {"port": 80}}]
    assert jobs(cluster) == {"f-a": "Pending"}
    said = cluster.get("JobFlow/f").status["state"]["message"]
    assert "0 of 1 pod of task w answer GET / on port 81 (f-a-w-0: it is Pending)" in said
    http, tcp = asked
    refused = {"type": http, "status": "False", "message": "127.0.0.2:81: connection refused"}
    cluster.patch_status("Pod/f-a-w-0", {"phase": "Running", "conditions": [refused, {"type": tcp, "status": "True"}]})
    assert jobs(cluster) == {"f-a": "Running"}
    said = cluster.get("JobFlow/f").status["state"]["message"]
    assert said.endswith("answer GET / on port 81 (f-a-w-0: 127.0.0.2:81: connection refused)")
    cluster.patch_status("Pod/f-a-w-0", {"conditions": [{"type": http, "status": "True"}]})
    assert list(jobs(cluster)) == ["f-a", "f-b"]


def test_a_target_whose_tasks_no_probe_names_has_to_complete(cluster: Any) -> None:
    cluster.apply(TEMPLATES, flow("{targets: [a], probe: {tcpSocketList: [{taskName: other, port: 80}]}}"))
    assert jobs(cluster) == {"f-a": "Running"}
    cluster.pods_become(**{"f-a-w-0": "Succeeded"})
    assert list(jobs(cluster)) == ["f-a", "f-b"]


def test_a_failed_step_fails_the_flow_and_nothing_follows(cluster: Any) -> None:
    cluster.apply(TEMPLATES, flow("{targets: [a]}"))
    cluster.pods_become(**{"f-a-w-0": "Failed"})
    assert jobs(cluster) == {"f-a": "Failed"}
    assert cluster.get("JobFlow/f").status["state"]["phase"] == "Failed"


def test_a_patch_is_laid_over_the_template(cluster: Any) -> None:
    text = "{kind: JobFlow, metadata: {name: f}, spec: {flows: [{name: a, patch: {jobSpec: {queue: special}}}]}}"
    cluster.apply(text)
    assert jobs(cluster) == {}
    cluster.apply(TEMPLATES)
    assert cluster.get("Job/f-a").spec["queue"] == "special"
    assert cluster.get("Job/f-a").spec["minAvailable"] == 1


def test_a_job_is_made_at_each_time_of_the_schedule(cluster: Any) -> None:
    cluster.apply(cron(schedule='"*/10 * * * *"'))
    cluster.advance("9m")
    assert jobs(cluster) == {}
    cluster.advance("11m")
    assert list(jobs(cluster).values()) == ["Running", "Running"]
    made = cluster.get(f"Job/{min(jobs(cluster))}")
    assert made.annotations["volcano.sh/cronjob-scheduled-timestamp"] == "2026-01-01T00:10:00Z"
    status = cluster.get("CronJob/c").status
    assert status["lastScheduleTime"] == "2026-01-01T00:20:00Z"
    assert [item["name"] for item in status["active"]] == list(jobs(cluster))


@pytest.mark.parametrize(("policy", "active"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_overlapping_runs_follow_the_concurrency_policy(cluster: Any, policy: str, active: int) -> None:
    cluster.apply(cron(schedule='"*/10 * * * *"', concurrencyPolicy=policy))
    cluster.advance("10m")
    first = min(jobs(cluster))
    cluster.advance("20m")
    assert len(jobs(cluster)) == active
    assert (first in jobs(cluster)) is (policy != "Replace")


def test_a_run_that_is_held_back_or_missed_is_told_once(cluster: Any) -> None:
    cluster.apply(cron(schedule='"*/10 * * * *"', concurrencyPolicy="Forbid"))
    cluster.advance("25m")
    held = [item.message for item in cluster.decisions if item.name == "RunHeldBack"]
    assert len(held) == 1 and held[0].startswith("the run of 2026-01-01T00:20:00Z waits: c-")
    cluster.apply(cron(schedule='"0 * * * *"', suspend="true", startingDeadlineSeconds=60))
    cluster.advance("40m")
    cluster.apply(cron(schedule='"0 * * * *"', suspend="false", startingDeadlineSeconds=60))
    cluster.advance("10m")
    missed = [item.message for item in cluster.decisions if item.name == "RunMissed"]
    assert missed == ["the run of 2026-01-01T01:00:00Z is 300 s late, 60 s are allowed"]


def test_history_is_kept_up_to_its_limits(cluster: Any) -> None:
    cluster.apply(cron(schedule='"*/10 * * * *"', successfulJobsHistoryLimit=2))
    for outcome in ("Failed", "Failed", "Succeeded", "Succeeded", "Succeeded"):
        cluster.advance("10m")
        running = next(name for name, phase in jobs(cluster).items() if phase == "Running")
        cluster.pods_become(**{f"{running}-w-0": outcome})
    assert sorted(jobs(cluster).values()) == ["Completed", "Completed", "Failed"]
    assert cluster.get("CronJob/c").status["lastSuccessfulTime"] == "2026-01-01T00:50:00Z"


def test_a_suspended_schedule_starts_nothing_and_a_late_run_has_a_deadline(cluster: Any) -> None:
    cluster.apply(cron(schedule='"0 * * * *"', suspend="true", startingDeadlineSeconds=60))
    cluster.advance("61m")
    cluster.advance("5m")
    assert jobs(cluster) == {}
    cluster.apply(cron(schedule='"0 * * * *"', suspend="false", startingDeadlineSeconds=60))
    assert jobs(cluster) == {}
    cluster.advance("54m")
    assert len(jobs(cluster)) == 1


def test_a_pause_counts_from_the_birth_of_the_schedule_and_from_its_last_run(cluster: Any) -> None:
    cluster.advance("17s")
    cluster.apply(cron(schedule='"@every 90s"'))
    cluster.advance("89s")
    assert jobs(cluster) == {}
    cluster.advance("91s")
    assert len(jobs(cluster)) == 2
    assert cluster.get("CronJob/c").status["lastScheduleTime"] == "2026-01-01T00:03:17Z"
    cluster.restart()
    cluster.advance("90s")
    assert len(jobs(cluster)) == 3


def test_a_run_that_was_held_back_begins_when_the_one_before_has_ended(cluster: Any) -> None:
    cluster.apply(cron(schedule='"@every 10m"', concurrencyPolicy="Forbid"))
    cluster.advance("25m")
    [first] = jobs(cluster)
    cluster.pods_become(**{f"{first}-w-0": "Succeeded"})
    assert list(jobs(cluster).values()) == ["Completed", "Running"]
    assert cluster.get("CronJob/c").status["lastScheduleTime"] == "2026-01-01T00:20:00Z"


def test_a_schedule_of_no_sense_starts_nothing(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    cluster.apply(cron(schedule="never"))
    cluster.advance("1h")
    assert jobs(cluster) == {}
