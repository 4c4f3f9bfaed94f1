"""JobSet: order, success, failure policy, restarts, suspension."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from job_controller.domain.kubeflow.jobset.failure import answer_failures
from job_controller.domain.kubeflow.jobset.spec import FailurePolicy, Rule
from kube import from_manifest, rfc3339

Make = Callable[..., Any]
PREFIX = "jobset.sigs.k8s.io/"


def replicated(name: str, replicas: int = 1, pods: int = 1, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    job = {"parallelism": pods, "completions": pods, "template": {"spec": {"containers": [container]}}}
    return {"name": name, "replicas": replicas, "template": {"spec": job}, **more}


def job_set(*jobs: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s", "annotations": annotations or {}},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def jobs(cluster: Any) -> dict[str, str]:
    """The attempt of every Job by name."""
    found = cluster.store.of_kind("Job.batch").values()
    return {job.name: job.labels[f"{PREFIX}restart-attempt"] for job in sorted(found, key=lambda job: job.name)}


def test_every_job_and_pod_knows_its_place(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a", 2), replicated("b", groupName="g")))
    assert jobs(cluster) == {"s-a-0": "0", "s-a-1": "0", "s-b-0": "0"}
    pod = cluster.get("Pod/s-a-1-0-0")
    place = {name.removeprefix(PREFIX): value for name, value in pod.labels.items()}
    assert len(place.pop("job-key")) == 40
    assert place.pop("jobset-uid") == cluster.get("JobSet/s").uid
    assert place == {
        "jobset-name": "s",
        "replicatedjob-name": "a",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "1",
        "group-name": "default",
        "group-replicas": "2",
        "job-group-index": "1",
        "restart-attempt": "0",
    }
    assert pod.spec["subdomain"] == "s"
    assert pod.spec["restartPolicy"] == "OnFailure"
    assert cluster.get("Job.batch/s-a-0").spec["completionMode"] == "Indexed"


def test_pods_have_names_in_a_headless_service(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), network={"subdomain": "net", "publishNotReadyAddresses": False}))
    service = cluster.get("Service/net").spec
    assert service["selector"] == {f"{PREFIX}jobset-name": "s"}
    assert service["publishNotReadyAddresses"] is False
    cluster.delete("JobSet/s")
    cluster.apply(job_set(replicated("a"), network={"enableDNSHostnames": False}))
    assert not cluster.has("Service/s")
    assert "subdomain" not in cluster.get("Pod/s-a-0-0-0").spec


def test_pods_are_told_where_the_coordinator_is(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), coordinator={"replicatedJob": "a", "jobIndex": 0, "podIndex": 0}))
    assert cluster.get("Pod/s-a-0-0-0").annotations[f"{PREFIX}coordinator"] == "s-a-0-0.s"


def test_a_job_waits_until_the_one_that_it_depends_on_is_complete(cluster: Any) -> None:
    main = replicated("main", 2, dependsOn=[{"name": "init", "status": "Complete"}])
    cluster.apply(job_set(replicated("init"), main))
    assert list(jobs(cluster)) == ["s-init-0"]
    cluster.pods_become(**{"s-init-0-0-0": "Succeeded"})
    assert list(jobs(cluster)) == ["s-init-0", "s-main-0", "s-main-1"]


def test_a_job_may_wait_until_another_is_ready(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    main = replicated("main", dependsOn=[{"name": "node", "status": "Ready"}])
    cluster.apply(job_set(replicated("node", pods=2), main))
    cluster.pods_become(**{"s-node-0-0-0": "Running"})
    assert list(jobs(cluster)) == ["s-node-0"]
    cluster.pods_become(**{"s-node-0-1-0": "Running"})
    assert list(jobs(cluster)) == ["s-main-0", "s-node-0"]


def test_jobs_start_in_order_where_the_set_says_so(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(job_set(replicated("a"), replicated("b"), startupPolicy={"startupPolicyOrder": "InOrder"}))
    assert list(jobs(cluster)) == ["s-a-0"]
    assert cluster.condition("JobSet/s", "StartupPolicyInProgress")["status"] == "True"
    cluster.pods_become(**{"s-a-0-0-0": "Running"})
    cluster.pods_become(**{"s-b-0-0-0": "Running"})
    assert cluster.condition("JobSet/s", "StartupPolicyCompleted")["status"] == "True"


def test_a_set_is_complete_when_all_its_jobs_are(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), replicated("b")))
    cluster.pods_become(**{"s-a-0-0-0": "Succeeded"})
    assert cluster.condition("JobSet/s", "Completed") == {}
    cluster.pods_become(**{"s-b-0-0-0": "Succeeded"})
    assert cluster.condition("JobSet/s", "Completed")["reason"] == "AllJobsCompleted"
    assert cluster.get("JobSet/s").status["terminalState"] == "Completed"


def test_any_target_may_complete_a_set_and_the_rest_is_stopped(cluster: Any) -> None:
    policy = {"operator": "Any", "targetReplicatedJobs": ["a"]}
    cluster.apply(job_set(replicated("a", 2), replicated("b"), successPolicy=policy))
    cluster.pods_become(**{"s-a-1-0-0": "Succeeded"})
    assert cluster.get("JobSet/s").status["terminalState"] == "Completed"
    assert cluster.pods() == {"s-a-1-0-0": "Succeeded"}


def test_without_a_failure_policy_any_failed_job_fails_the_set(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), replicated("b")))
    cluster.end_job("s-a-0", "Failed", "DeadlineExceeded", "too slow")
    failed = cluster.condition("JobSet/s", "Failed")
    assert failed["reason"] == "FailedJobs"
    assert "s-a-0 failed (DeadlineExceeded): too slow" in failed["message"]
    assert cluster.pods() == {}
    assert list(jobs(cluster)) == ["s-a-0"]


def test_a_set_restarts_whole_up_to_its_limit_and_then_fails(cluster: Any) -> None:
    cluster.apply(job_set(replicated("w", 2), replicated("x"), failurePolicy={"maxRestarts": 1}))
    cluster.end_job("s-w-1", "Failed", "DeadlineExceeded")
    assert jobs(cluster) == {"s-w-0": "1", "s-w-1": "1", "s-x-0": "1"}
    assert cluster.get("JobSet/s").status["restarts"] == 1
    assert cluster.condition("JobSet/s", "RestartingJobSet")["reason"] == "JobsReady"
    cluster.end_job("s-w-0", "Failed", "DeadlineExceeded")
    status = cluster.get("JobSet/s").status
    assert (status["restarts"], status["terminalState"]) == (1, "Failed")
    assert cluster.condition("JobSet/s", "Failed")["reason"] == "ReachedMaxRestarts"


def test_the_first_rule_that_matches_decides(cluster: Any) -> None:
    rules = [
        {
            "name": "stop",
            "action": "FailJobSet",
            "onJobFailureReasons": ["DeadlineExceeded"],
            "targetReplicatedJobs": ["a"],
        },
        {"action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureMessagePatterns": ["out of (luck|memory)"]},
    ]
    cluster.apply(job_set(replicated("a"), replicated("b"), failurePolicy={"maxRestarts": 0, "rules": rules}))
    cluster.end_job("s-b-0", "Failed", "BackoffLimitExceeded", "ran out of memory")
    status = cluster.get("JobSet/s").status
    assert status["restarts"] == 1
    assert status.get("restartsCountTowardsMax", 0) == 0
    cluster.end_job("s-a-0", "Failed", "DeadlineExceeded")
    failed = cluster.condition("JobSet/s", "Failed")
    assert failed["reason"] == "FailJobSetFailurePolicyAction"
    assert "by rule stop" in failed["message"]


def test_one_job_may_restart_alone(cluster: Any) -> None:
    policy = {"maxRestarts": 1, "rules": [{"action": "RestartJob"}]}
    cluster.apply(job_set(replicated("a", 2), failurePolicy=policy))
    other = cluster.get("Job.batch/s-a-0").uid
    cluster.end_job("s-a-1", "Failed", "BackoffLimitExceeded")
    assert cluster.get("Job.batch/s-a-0").uid == other
    status = cluster.get("JobSet/s").status
    assert status["restarts"] == 0
    assert status["replicatedJobsStatus"][0]["jobRestarts"] == [0, 1]
    cluster.end_job("s-a-0", "Failed", "BackoffLimitExceeded")
    assert cluster.condition("JobSet/s", "Failed")["reason"] == "ReachedMaxRestarts"


def test_a_set_that_is_scaled_while_it_is_suspended_resumes_with_its_new_jobs(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a", 2), replicated("b"), suspend=True))
    cluster.apply(job_set(replicated("a", 1, pods=2), replicated("b", 2), suspend=True))
    assert list(jobs(cluster)) == ["s-a-0", "s-b-0", "s-b-1"]
    cluster.apply(job_set(replicated("a", 1, pods=2), replicated("b", 2), suspend=False))
    assert list(cluster.pods()) == ["s-a-0-0-0", "s-a-0-1-0", "s-b-0-0-0", "s-b-1-0-0"]


def test_a_suspended_set_has_jobs_and_no_pods_and_resumes_with_its_present_template(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a", 2), suspend=True))
    assert list(jobs(cluster)) == ["s-a-0", "s-a-1"]
    assert cluster.pods() == {}
    assert cluster.get("JobSet/s").status["replicatedJobsStatus"][0]["suspended"] == 2
    changed = replicated("a", 2)
    changed["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "x"}
    cluster.apply(job_set(changed, suspend=False))
    assert len(cluster.pods()) == 2
    assert cluster.get("Pod/s-a-0-0-0").spec["nodeSelector"] == {"pool": "x"}
    assert cluster.condition("JobSet/s", "Suspended")["reason"] == "ResumeJobs"
    cluster.apply(job_set(changed, suspend=True))
    assert cluster.pods() == {}


def test_a_finished_set_goes_when_its_time_is_over(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), ttlSecondsAfterFinished=30))
    cluster.pods_become(**{"s-a-0-0-0": "Succeeded"})
    cluster.advance("29s")
    assert cluster.has("JobSet/s")
    cluster.advance("1s")
    assert not cluster.has("JobSet/s")


def test_a_set_without_a_group_annotation_makes_no_gang(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a", 2)))
    assert not cluster.store.of_kind("PodGroup.scheduling.volcano.sh")
    assert "scheduling.k8s.io/group-name" not in cluster.get("Pod/s-a-0-0-0").annotations


def test_a_set_that_names_a_group_is_a_gang_of_what_starts_together(cluster: Any) -> None:
    main = replicated("main", 2, pods=3, dependsOn=[{"name": "init", "status": "Complete"}])
    cluster.apply(job_set(replicated("init"), main, annotations={"scheduling.k8s.io/group-name": "g"}))
    assert cluster.get("PodGroup/g").spec["minMember"] == 6
    pod = cluster.get("Pod/s-init-0-0-0")
    assert "scheduling.k8s.io/group-name" not in pod.annotations
    cluster.pods_become(**{"s-init-0-0-0": "Succeeded"})
    assert cluster.get("Pod/s-main-0-0-0").annotations["scheduling.k8s.io/group-name"] == "g"


def test_exclusive_placement_is_an_affinity_of_every_pod(cluster: Any) -> None:
    cluster.apply(job_set(replicated("a"), annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}))
    affinity = cluster.get("Pod/s-a-0-0-0").spec["affinity"]
    term = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert term["topologyKey"] == "rack"
    assert affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] == "rack"


REASONS = ("BackoffLimitExceeded", "DeadlineExceeded")
RULES = st.builds(
    Rule,
    name=st.sampled_from(["r0", "r1", "r2"]),
    action=st.sampled_from(["FailJobSet", "RestartJobSet"]),
    reasons=st.lists(st.sampled_from(REASONS), max_size=2).map(tuple),
    patterns=st.lists(st.sampled_from(["a", "(", "b+"]), max_size=2).map(tuple),
    targets=st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple),
)


def failed_job(name: str, target: str, reason: str, message: str, at: int) -> Any:
    condition = {"type": "Failed", "status": "True", "reason": reason, "message": message}
    condition["lastTransitionTime"] = rfc3339(at * 1000)
    labels = {f"{PREFIX}replicatedjob-name": target}
    return from_manifest(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": labels},
            "status": {"conditions": [condition]},
        }
    )


FAILED = st.builds(
    failed_job,
    name=st.sampled_from(["j0", "j1", "j2", "j3"]),
    target=st.sampled_from(["x", "y"]),
    reason=st.sampled_from(REASONS),
    message=st.sampled_from(["a", "bb", ""]),
    at=st.integers(0, 3),
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(RULES, max_size=3), st.lists(FAILED, min_size=1, max_size=4, unique_by=lambda job: job.name), st.randoms()
)
def test_the_answer_to_failures_does_not_depend_on_their_order(rules: Any, failed: Any, random: Any) -> None:
    policy = FailurePolicy(1, False, tuple(rules))
    shuffled = list(failed)
    random.shuffle(shuffled)
    assert answer_failures(policy, failed) == answer_failures(policy, shuffled)
