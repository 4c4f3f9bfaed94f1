"""The life of a v1 job: created, running, restarting, suspended, ended, gone."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from job_controller.domain.kubeflow.frameworks import FRAMEWORKS, PYTORCH, TENSORFLOW
from job_controller.domain.kubeflow.replica_specs import read_replicated_job
from job_controller.domain.kubeflow.verdict import has_succeeded, judge_failures
from kube import Object, from_manifest

Make = Callable[..., Any]


def replicas(count: int, container: str, **more: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    template = {"spec": {"containers": [{"name": container, "image": "busybox", "resources": resources}]}}
    return {"replicas": count, "template": template, **more}


def torch(policy: dict[str, Any] | None = None, restart: str = "OnFailure", **counts: int) -> dict[str, Any]:
    specs = {word: replicas(count, "pytorch", restartPolicy=restart) for word, count in counts.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "p"},
        "spec": {"runPolicy": policy or {}, "pytorchReplicaSpecs": specs},
    }


def tensor(policy: dict[str, Any] | None = None, restart: str = "Never", **counts: int) -> dict[str, Any]:
    specs = {word: replicas(count, "tensorflow", restartPolicy=restart) for word, count in counts.items()}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "t"},
        "spec": {"runPolicy": policy or {}, "tfReplicaSpecs": specs},
    }


def end(cluster: Any, pod: str, code: int, container: str = "tensorflow") -> None:
    """The pod fails; its container of that name ended with ``code``."""
    status = [{"name": container, "state": {"terminated": {"exitCode": code}}}]
    cluster.patch_status(f"Pod/{pod}", {"phase": "Failed", "containerStatuses": status})


def test_a_job_is_created_then_running_and_the_clock_starts_with_its_pods(cluster: Any) -> None:
    cluster.apply(torch(Master=1, Worker=1))
    status = cluster.get("PyTorchJob/p").status
    assert cluster.condition("PyTorchJob/p", "Created")["reason"] == "PyTorchJobCreated"
    assert cluster.condition("PyTorchJob/p", "Running")["reason"] == "PyTorchJobRunning"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert status["replicaStatuses"]["Worker"]["active"] == 1


def test_success_of_the_leader_is_success_whatever_a_worker_does_at_the_same_time(cluster: Any) -> None:
    cluster.apply(torch(restart="Never", Master=1, Worker=1))
    cluster.pods_become(**{"p-worker-0": "Failed", "p-master-0": "Succeeded"})
    assert cluster.condition("PyTorchJob/p", "Succeeded")["status"] == "True"
    assert cluster.condition("PyTorchJob/p", "Failed") == {}
    assert cluster.condition("PyTorchJob/p", "Running")["status"] == "False"
    assert "completionTime" in cluster.get("PyTorchJob/p").status


def test_without_a_leader_the_first_tensorflow_worker_decides(cluster: Any) -> None:
    cluster.apply(tensor(PS=1, Worker=2))
    cluster.pods_become(**{"t-worker-1": "Succeeded"})
    assert cluster.condition("TFJob/t", "Succeeded") == {}
    assert cluster.get("TFJob/t").status["replicaStatuses"]["Worker"]["succeeded"] == 1
    cluster.pods_become(**{"t-worker-0": "Succeeded"})
    assert cluster.condition("TFJob/t", "Succeeded")["status"] == "True"


def test_all_tensorflow_workers_decide_where_the_job_says_so(cluster: Any) -> None:
    manifest = tensor(Worker=2)
    manifest["spec"]["successPolicy"] = "AllWorkers"
    cluster.apply(manifest)
    cluster.pods_become(**{"t-worker-0": "Succeeded"})
    assert cluster.condition("TFJob/t", "Succeeded") == {}
    cluster.pods_become(**{"t-worker-1": "Succeeded"})
    assert cluster.condition("TFJob/t", "Succeeded")["status"] == "True"


def test_a_failed_pod_is_made_again_and_counted(cluster: Any) -> None:
    cluster.apply(torch(Worker=2))
    before = cluster.get("Pod/p-worker-1").uid
    cluster.pods_become(**{"p-worker-1": "Failed"})
    assert cluster.get("Pod/p-worker-1").uid != before
    assert cluster.pods() == {"p-worker-0": "Running", "p-worker-1": "Running"}
    assert cluster.get("PyTorchJob/p").status["restarts"] == 1
    assert "PodsRestarted" in cluster.said()


def test_restarting_holds_until_every_pod_runs_again(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(torch(Worker=2))
    cluster.pods_become(**{"p-worker-0": "Running", "p-worker-1": "Running"})
    cluster.pods_become(**{"p-worker-1": "Failed"})
    assert cluster.condition("PyTorchJob/p", "Restarting")["status"] == "True"
    assert cluster.condition("PyTorchJob/p", "Running")["status"] == "False"
    cluster.pods_become(**{"p-worker-1": "Running"})
    assert cluster.condition("PyTorchJob/p", "Restarting")["status"] == "False"
    assert cluster.condition("PyTorchJob/p", "Running")["status"] == "True"


def test_a_job_is_tried_again_as_often_as_its_backoff_limit_says(cluster: Any) -> None:
    cluster.apply(torch({"backoffLimit": 2}, Worker=2))
    for _ in range(2):
        cluster.pods_become(**{"p-worker-1": "Failed"})
    assert cluster.pods()["p-worker-1"] == "Running"
    cluster.pods_become(**{"p-worker-1": "Failed"})
    assert cluster.pods()["p-worker-1"] == "Failed"
    failed = cluster.condition("PyTorchJob/p", "Failed")
    assert failed["reason"] == "PyTorchJobFailed"
    assert "restarted 2 times" in failed["message"]
    assert "p-worker-1" in failed["message"]


def test_restarts_by_the_node_use_up_the_same_limit(cluster: Any) -> None:
    cluster.apply(torch({"backoffLimit": 3}, Worker=2))
    cluster.pods_become(**{"p-worker-0": {"phase": "Running", "restarts": 3}})
    assert cluster.condition("PyTorchJob/p", "Failed") == {}
    cluster.pods_become(**{"p-worker-1": {"phase": "Running", "restarts": 1}})
    assert cluster.condition("PyTorchJob/p", "Failed")["status"] == "True"


def test_restarts_of_containers_are_not_forgotten_with_their_pod(cluster: Any) -> None:
    cluster.apply(torch({"backoffLimit": 3}, Worker=1))
    cluster.pods_become(**{"p-worker-0": {"phase": "Running", "restarts": 2}})
    cluster.pods_become(**{"p-worker-0": {"phase": "Failed", "restarts": 2}})
    assert cluster.get("PyTorchJob/p").status["restarts"] == 3
    cluster.pods_become(**{"p-worker-0": "Failed"})
    assert cluster.condition("PyTorchJob/p", "Failed")["status"] == "True"


def test_an_exit_code_of_128_or_more_is_tried_again_and_a_lower_one_is_final(cluster: Any) -> None:
    cluster.apply(tensor(restart="ExitCode", PS=1, Worker=1))
    end(cluster, "t-worker-0", 130)
    assert cluster.pods()["t-worker-0"] == "Running"
    end(cluster, "t-worker-0", 1, container="sidecar")
    assert cluster.pods()["t-worker-0"] == "Running"
    end(cluster, "t-worker-0", 1)
    failed = cluster.condition("TFJob/t", "Failed")
    assert "exit code 1" in failed["message"]
    assert "completionTime" in cluster.get("TFJob/t").status


def test_an_evicted_pod_is_made_again_without_being_counted(cluster: Any) -> None:
    cluster.apply(torch({"backoffLimit": 0}, restart="Never", Worker=1))
    cluster.delete("Pod/p-worker-0")
    assert cluster.pods() == {"p-worker-0": "Running"}
    assert "restarts" not in cluster.get("PyTorchJob/p").status


def test_a_failed_job_keeps_its_pods_where_its_policy_is_none(cluster: Any) -> None:
    cluster.apply(torch({"cleanPodPolicy": "None"}, restart="Never", Master=1, Worker=1))
    cluster.pods_become(**{"p-master-0": "Failed", "p-worker-0": "Failed"})
    cluster.advance("10m")
    assert cluster.pods() == {"p-master-0": "Failed", "p-worker-0": "Failed"}


def test_a_finished_job_makes_no_pods_again_even_after_a_restart(cluster: Any) -> None:
    cluster.apply(torch(restart="Never", Master=1))
    cluster.pods_become(**{"p-master-0": "Failed"})
    cluster.delete("Pod/p-master-0")
    cluster.restart()
    cluster.advance("30m")
    assert cluster.pods() == {}
    assert cluster.get("PyTorchJob/p").status["replicaStatuses"]["Master"]["failed"] == 1


def test_policy_running_removes_what_still_runs_with_its_service(cluster: Any) -> None:
    cluster.apply(tensor({"cleanPodPolicy": "Running"}, Worker=3))
    cluster.pods_become(**{"t-worker-0": "Succeeded"})
    assert cluster.pods() == {"t-worker-0": "Succeeded"}
    assert cluster.has("Service/t-worker-0")
    assert not cluster.has("Service/t-worker-1")


def test_policy_all_removes_every_pod(cluster: Any) -> None:
    cluster.apply(tensor({"cleanPodPolicy": "All"}, Worker=2))
    cluster.pods_become(**{"t-worker-0": "Succeeded"})
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/t")


def test_a_pod_that_never_started_does_not_outlive_its_job(make_batch_cluster: Make) -> None:
    """Whatever the policy: it has no log to keep, and starting it would be for nothing."""
    cluster = make_batch_cluster(pod_start="never")
    cluster.apply(torch({"activeDeadlineSeconds": 60}, Worker=2))
    cluster.advance("61s")
    assert cluster.condition("PyTorchJob/p", "Failed")["status"] == "True"
    assert cluster.pods() == {}


def test_a_job_that_is_active_too_long_fails(cluster: Any) -> None:
    cluster.apply(torch({"activeDeadlineSeconds": 60, "cleanPodPolicy": "Running"}, Master=1, Worker=1))
    cluster.advance("59s")
    assert cluster.condition("PyTorchJob/p", "Failed") == {}
    cluster.advance("1s")
    assert "60 s" in cluster.condition("PyTorchJob/p", "Failed")["message"]
    assert cluster.pods() == {}


def test_waiting_for_the_queue_does_not_use_up_the_deadline(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(let_in=False)
    cluster.apply(torch({"activeDeadlineSeconds": 60}, Worker=1))
    cluster.advance("10m")
    cluster.patch_status("PodGroup/p", {"phase": "Inqueue"})
    cluster.advance("59s")
    assert cluster.condition("PyTorchJob/p", "Failed") == {}
    cluster.advance("1s")
    assert cluster.condition("PyTorchJob/p", "Failed")["status"] == "True"


def test_a_finished_job_goes_when_its_time_is_over_though_the_controller_restarts(cluster: Any) -> None:
    cluster.apply(torch({"ttlSecondsAfterFinished": 60}, Master=1))
    cluster.pods_become(**{"p-master-0": "Succeeded"})
    cluster.advance("30s")
    cluster.restart()
    cluster.advance("29s")
    assert cluster.has("PyTorchJob/p")
    cluster.advance("1s")
    assert not cluster.has("PyTorchJob/p")
    assert cluster.pods() == {}
    assert not cluster.has("Service/p-master-0")


def test_a_failed_job_has_a_time_to_live_too(cluster: Any) -> None:
    """Upstream sets no completion time after a final exit code, and such jobs stay for ever."""
    cluster.apply(tensor({"ttlSecondsAfterFinished": 10}, restart="ExitCode", Worker=1))
    end(cluster, "t-worker-0", 1)
    cluster.advance("10s")
    assert not cluster.has("TFJob/t")


def test_suspending_removes_pods_and_group_and_resuming_brings_them_back_whole(cluster: Any) -> None:
    cluster.apply(torch({"cleanPodPolicy": "None"}, Master=1, Worker=2))
    cluster.apply(torch({"suspend": True}, Master=1, Worker=2))
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/p")
    assert cluster.condition("PyTorchJob/p", "Suspended")["reason"] == "PyTorchJobSuspended"
    assert "startTime" not in cluster.get("PyTorchJob/p").status
    cluster.advance("1m")
    cluster.apply(torch({"suspend": False}, Master=1, Worker=2))
    assert len(cluster.pods()) == 3
    resumed = cluster.condition("PyTorchJob/p", "Suspended")
    assert (resumed["status"], resumed["reason"]) == ("False", "PyTorchJobResumed")
    assert cluster.get("PyTorchJob/p").status["startTime"] == "2026-01-01T00:01:00Z"
    assert cluster.env("p-worker-1")["RANK"] == "2"


def test_a_job_that_is_suspended_while_it_resumes_ends_suspended(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual", termination="10s")
    for suspend in (True, False, True):
        cluster.apply(torch({"suspend": suspend}, Worker=3))
        cluster.advance("5s")
    cluster.advance("2m")
    assert cluster.pods() == {}
    assert cluster.condition("PyTorchJob/p", "Suspended")["status"] == "True"
    cluster.apply(torch({"suspend": False}, Worker=3))
    assert len(cluster.pods()) == 3


def test_pods_that_are_still_stopping_are_waited_for(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(termination="30s")
    cluster.apply(torch(Worker=2))
    cluster.apply(torch({"suspend": True}, Worker=2))
    cluster.apply(torch({"suspend": False}, Worker=2))
    assert cluster.pods() == {"p-worker-0": "Running!", "p-worker-1": "Running!"}
    cluster.advance("30s")
    assert cluster.pods() == {"p-worker-0": "Running", "p-worker-1": "Running"}


def test_a_job_managed_by_another_controller_is_left_alone(cluster: Any) -> None:
    cluster.apply(torch({"managedBy": "kueue.x-k8s.io/multikueue"}, Worker=1))
    assert cluster.decisions == []


def test_a_job_whose_pods_were_all_evicted_says_that_it_waits(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(torch(Worker=1))
    cluster.pods_become(**{"p-worker-0": "Running"})
    cluster.delete("Pod/p-worker-0")
    waiting = cluster.condition("PyTorchJob/p", "Running")
    assert (waiting["status"], waiting["message"]) == ("False", "PyTorchJob default/p waits: 0 of 1 pod run.")


def test_a_restart_that_lost_the_last_facts_counts_nothing_twice(cluster: Any) -> None:
    cluster.apply(torch({"backoffLimit": 3}, Worker=2))
    cluster.pods_become(**{"p-worker-1": "Failed"})
    cluster.restart(replay=4)
    assert cluster.get("PyTorchJob/p").status["restarts"] == 1
    assert len(cluster.pods()) == 2


PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
POLICIES = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Any, dict[tuple[str, int], Object]]:
    """A job of any kind with pods in any phases, and some missing."""
    framework = draw(st.sampled_from(FRAMEWORKS))
    specs, members = {}, {}
    for word in draw(st.lists(st.sampled_from(framework.types), unique=True, min_size=1)):
        count = draw(st.integers(0, 3))
        specs[word] = {"replicas": count, "restartPolicy": draw(POLICIES), "template": {"spec": {}}}
        for index in range(count):
            if draw(st.booleans()):
                code = [{"name": framework.container, "state": {"terminated": {"exitCode": draw(st.integers(0, 255))}}}]
                status = {"phase": draw(PHASES), "containerStatuses": code}
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{word}-{index}"}, "status": status}
                members[(word, index)] = from_manifest(pod)
    policy = {"backoffLimit": draw(st.integers(0, 3))} if draw(st.booleans()) else {}
    spec = {framework.specs_field: specs, "runPolicy": policy}
    kind, _, group = framework.kind.partition(".")
    manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "j"}, "spec": spec}
    return read_replicated_job(from_manifest(manifest), framework), members


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_a_failure_is_final_or_tried_again_and_never_both(world: Any) -> None:
    job, members = world
    failure = judge_failures(job, members)
    failed = {pod.name for pod in members.values() if pod.status["phase"] == "Failed"}
    assert {pod.name for pod in failure.retry} <= failed
    if failed and not failure.reason:
        assert {pod.name for pod in failure.retry} == failed
        assert job.policy.backoff_limit is None or len(failed) <= job.policy.backoff_limit
    if not failed:
        assert not failure.reason


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_success_needs_a_pod_that_succeeded_and_survives_more_of_them(world: Any) -> None:
    job, members = world
    if not has_succeeded(job, members):
        return
    assert any(pod.status["phase"] == "Succeeded" for pod in members.values())
    better = {key: pod.changed(status={"phase": "Succeeded"}) for key, pod in members.items()}
    assert has_succeeded(job, better)


def test_the_order_of_types_is_fixed_and_leads_with_the_leader() -> None:
    source = from_manifest(tensor(Worker=1, PS=1, Chief=1))
    assert [replica.type for replica in read_replicated_job(source, TENSORFLOW).replicas] == ["Chief", "Worker", "PS"]


def test_replica_types_are_known_whatever_their_case() -> None:
    source = from_manifest(torch(master=1, WORKER=2))
    assert [replica.type for replica in read_replicated_job(source, PYTORCH).replicas] == ["Master", "Worker"]
