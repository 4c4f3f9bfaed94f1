"""TrainJob: a runtime, what the job adds to it, and one JobSet that starts whole."""

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]


def runtime(
    policy: dict[str, Any], *jobs: dict[str, Any], kind: str = "ClusterTrainingRuntime", **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "r"},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs) or [step()]}}, **spec},
    }


def step(name: str = "node", ancestor: str = "trainer", container: str = "node", **more: Any) -> dict[str, Any]:
    template: dict[str, Any] = {
        "spec": {"template": {"spec": {"containers": [{"name": container, "image": "busybox"}]}}}
    }
    if ancestor:
        template["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}}
    return {"name": name, "template": template, **more}


def train(trainer: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tj", **(metadata or {})},
        "spec": {"runtimeRef": {"name": "r"}, "trainer": trainer or {}, **spec},
    }


CPU = {"resourcesPerNode": {"requests": {"cpu": "2500m"}}}


def test_the_job_fills_the_template_of_its_runtime(cluster: Any) -> None:
    trainer = {
        "numNodes": 3,
        "image": "mine",
        "command": ["python"],
        "args": ["x.py"],
        "env": [{"name": "A", "value": "1"}],
    }
    cluster.apply(runtime({"numNodes": 1, "torch": {}}), train({**trainer, **CPU}))
    job = cluster.get("JobSet/tj").spec["replicatedJobs"][0]["template"]["spec"]
    assert (job["parallelism"], job["completions"]) == (3, 3)
    container = job["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"], container["args"]) == ("mine", ["python"], ["x.py"])
    assert container["resources"] == CPU["resourcesPerNode"]
    assert container["ports"] == [{"containerPort": 29500}]
    assert list(cluster.pods()) == ["tj-node-0-0-0", "tj-node-0-1-0", "tj-node-0-2-0"]


def test_torch_nodes_know_their_number_rank_and_master(cluster: Any) -> None:
    cluster.apply(runtime({"numNodes": 2, "torch": {}}), train(CPU))
    env = cluster.env("tj-node-0-1-0")
    assert env["PET_NNODES"] == "2"
    assert env["PET_NPROC_PER_NODE"] == "3"
    assert env["PET_MASTER_ADDR"] == "tj-node-0-0.tj"
    assert env["PET_MASTER_PORT"] == "29500"
    entry = cluster.get("Pod/tj-node-0-1-0").spec["containers"][0]["env"][2]
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert entry == {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def processes(cluster: Any, trainer: dict[str, Any]) -> str:
    cluster.apply(runtime({"torch": {}}), train(trainer))
    return str(cluster.env("tj-node-0-0-0")["PET_NPROC_PER_NODE"])


def test_torch_counts_processes_itself_where_the_node_has_a_gpu(cluster: Any) -> None:
    assert processes(cluster, {"resourcesPerNode": {"limits": {"cpu": "8", "nvidia.com/gpu": 4}}}) == "auto"


def test_torch_has_a_process_per_cpu_where_the_node_has_none(cluster: Any) -> None:
    assert processes(cluster, {"resourcesPerNode": {"limits": {"cpu": "8"}, "requests": {"cpu": "2"}}}) == "8"


def test_a_number_of_processes_that_is_given_stands(cluster: Any) -> None:
    assert processes(cluster, {"numProcPerNode": 2, **CPU}) == "2"


def test_jax_and_xgboost_have_their_own_variables(cluster: Any) -> None:
    cluster.apply(runtime({"numNodes": 2, "jax": {}}), train())
    assert cluster.env("tj-node-0-0-0")["JAX_COORDINATOR_ADDRESS"] == "tj-node-0-0.tj:29500"
    assert cluster.env("tj-node-0-0-0")["JAX_NUM_PROCESSES"] == "2"
    cluster.delete("TrainJob/tj")
    gpus = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}
    cluster.apply(runtime({"numNodes": 2, "xgboost": {}}), train(gpus))
    assert cluster.env("tj-node-0-0-0")["DMLC_NUM_WORKER"] == "8"
    assert cluster.env("tj-node-0-0-0")["DMLC_TRACKER_URI"] == "tj-node-0-0.tj"


def test_an_mpi_runtime_gets_hosts_and_keys(cluster: Any) -> None:
    policy = {"numNodes": 3, "mpi": {"numProcPerNode": 2, "runLauncherAsNode": True}}
    cluster.apply(runtime(policy, step("launcher"), step("node", "")), train({"image": "mine"}))
    hosts = cluster.get("ConfigMap/tj-mpi-hostfile").body["data"]["hostfile"]
    assert hosts == "tj-launcher-0-0.tj slots=2\ntj-node-0-0.tj slots=2\ntj-node-0-1.tj slots=2\n"
    assert cluster.get("Secret/tj-mpi-ssh-auth").annotations == {"tidegate.dev/generate": "ssh-keypair"}
    assert cluster.env("tj-launcher-0-0-0")["OMPI_MCA_orte_set_default_slots"] == "2"
    assert cluster.env("tj-node-0-0-0") == {}
    assert cluster.get("Pod/tj-node-0-0-0").spec["containers"][0]["image"] == "mine"


def test_all_pods_of_a_train_job_are_one_gang(cluster: Any) -> None:
    label = {"labels": {"scheduling.volcano.sh/queue-name": "q"}}
    cluster.apply(runtime({"numNodes": 3, "torch": {}}), train(CPU, label))
    spec = cluster.get("PodGroup/tj").spec
    assert spec == {"minMember": 3, "queue": "q", "minResources": {"cpu": "7500m"}}
    assert cluster.get("Pod/tj-node-0-0-0").annotations["scheduling.k8s.io/group-name"] == "tj"


def test_an_initializer_runs_before_the_gang_and_not_in_it(cluster: Any) -> None:
    """The nodes wait for it to complete, so the gang could never be whole with it."""
    first = step("dataset-initializer", "dataset-initializer", "dataset-initializer")
    node = step(dependsOn=[{"name": "dataset-initializer", "status": "Complete"}])
    data = {"dataset": {"storageUri": "hf://x", "env": [{"name": "K", "value": "v"}], "secretRef": {"name": "token"}}}
    cluster.apply(runtime({"numNodes": 2, "torch": {}}, first, node), train(CPU, initializer=data))
    assert cluster.get("PodGroup/tj").spec["minMember"] == 2
    assert list(cluster.pods()) == ["tj-dataset-initializer-0-0-0"]
    container = cluster.get("Pod/tj-dataset-initializer-0-0-0").spec["containers"][0]
    assert cluster.env("tj-dataset-initializer-0-0-0") == {"STORAGE_URI": "hf://x", "K": "v"}
    assert container["envFrom"] == [{"secretRef": {"name": "token"}}]
    cluster.pods_become(**{"tj-dataset-initializer-0-0-0": "Succeeded"})
    assert len(cluster.pods()) == 3


def test_patches_are_laid_over_the_runtime_in_their_order(cluster: Any) -> None:
    pod = {
        "nodeSelector": {"pool": "x"},
        "tolerations": [{"key": "gpu"}],
        "containers": [{"name": "node", "env": [{"name": "P", "value": "1"}]}],
    }
    jobs = [
        {"name": "node", "template": {"spec": {"template": {"metadata": {"labels": {"by": "kueue"}}, "spec": pod}}}}
    ]
    patch = {
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
    cluster.apply(runtime({"torch": {}}), train(CPU, runtimePatches=[patch]))
    found = cluster.get("Pod/tj-node-0-0-0")
    assert found.spec["nodeSelector"] == {"pool": "x"}
    assert found.spec["tolerations"] == [{"key": "gpu"}]
    assert found.labels["by"] == "kueue"
    assert cluster.env("tj-node-0-0-0")["P"] == "1"
    assert cluster.env("tj-node-0-0-0")["PET_NNODES"] == "1"


def test_suspension_goes_through_to_the_pods_and_the_queue(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train({"numNodes": 3, **CPU}, suspend=True))
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/tj")
    assert cluster.condition("TrainJob/tj", "Suspended")["reason"] == "Suspended"
    cluster.apply(train({"numNodes": 3, **CPU}, suspend=False))
    assert len(cluster.pods()) == 3
    resumed = cluster.condition("TrainJob/tj", "Suspended")
    assert (resumed["status"], resumed["reason"]) == ("False", "Resumed")
    cluster.apply(train({"numNodes": 3, **CPU}, suspend=True))
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/tj")


def test_a_train_job_with_another_number_of_nodes_begins_anew(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train({"numNodes": 2, **CPU}))
    first = cluster.get("JobSet/tj").uid
    cluster.apply(train({"numNodes": 3, **CPU}))
    assert len(cluster.pods()) == 3 and cluster.get("JobSet/tj").uid != first
    assert cluster.env("tj-node-0-0-0")["PET_NNODES"] == "3"
    assert cluster.get("PodGroup/tj").spec["minMember"] == 3
    assert cluster.said().count("TrainJobResized") == 1


def test_a_train_job_that_is_scaled_while_it_is_suspended_resumes_with_its_new_nodes(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train({"numNodes": 2, **CPU}))
    cluster.apply(train({"numNodes": 2, **CPU}, suspend=True))
    cluster.apply(train({"numNodes": 3, **CPU}, suspend=True))
    cluster.apply(train({"numNodes": 3, **CPU}))
    assert len(cluster.pods()) == 3 and cluster.env("tj-node-0-0-0")["PET_NNODES"] == "3"


def test_a_runtime_that_changes_does_not_touch_the_job_that_runs(cluster: Any) -> None:
    cluster.apply(runtime({"numNodes": 2, "torch": {}}), train(CPU))
    before = cluster.pods()
    cluster.apply(runtime({"numNodes": 4, "torch": {}}))
    cluster.apply(train(CPU, {"labels": {"touched": "yes"}}))
    assert cluster.pods() == before and cluster.get("PodGroup/tj").spec["minMember"] == 2


def test_the_hosts_of_an_mpi_job_follow_its_nodes(cluster: Any) -> None:
    jobs = (step("launcher"), step("node", ""))
    cluster.apply(runtime({"numNodes": 1, "mpi": {}}, *jobs), train({"numNodes": 1}))
    cluster.apply(train({"numNodes": 2}))
    hosts = cluster.get("ConfigMap/tj-mpi-hostfile").body["data"]["hostfile"]
    assert len(hosts.splitlines()) == 2 and len([name for name in cluster.pods() if "-node-" in name]) == 2


def test_a_train_job_is_complete_when_its_job_set_is(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train({"numNodes": 2, **CPU}))
    cluster.pods_become(**{"tj-node-0-0-0": "Succeeded", "tj-node-0-1-0": "Succeeded"})
    assert cluster.condition("TrainJob/tj", "Complete")["reason"] == "AllJobsCompleted"
    assert cluster.get("TrainJob/tj").status["jobsStatus"][0]["succeeded"] == 1
    assert not cluster.has("PodGroup/tj")


def test_a_train_job_that_ended_never_makes_its_job_set_again(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train(CPU))
    cluster.end_job("tj-node-0", "Failed", "BackoffLimitExceeded", "tried 6 times")
    assert cluster.condition("TrainJob/tj", "Failed")["reason"] == "FailedJobs"
    cluster.delete("JobSet/tj")
    cluster.restart()
    cluster.advance("1h")
    assert not cluster.has("JobSet/tj")


def test_a_job_set_that_is_gone_at_once_still_told_its_end(cluster: Any) -> None:
    manifest = runtime({"torch": {}})
    manifest["spec"]["template"]["spec"]["ttlSecondsAfterFinished"] = 0
    cluster.apply(manifest, train(CPU))
    cluster.pods_become(**{"tj-node-0-0-0": "Succeeded"})
    assert not cluster.has("JobSet/tj")
    assert cluster.condition("TrainJob/tj", "Complete")["status"] == "True"


def test_the_deadline_counts_from_the_last_resumption(cluster: Any) -> None:
    cluster.apply(runtime({"torch": {}}), train(CPU, activeDeadlineSeconds=60, suspend=True))
    cluster.advance("10m")
    cluster.apply(train(CPU, activeDeadlineSeconds=60, suspend=False))
    cluster.advance("59s")
    assert cluster.condition("TrainJob/tj", "Failed") == {}
    cluster.advance("1s")
    assert cluster.condition("TrainJob/tj", "Failed")["reason"] == "DeadlineExceeded"
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/tj")


def test_a_runtime_in_the_jobs_namespace_is_found_by_its_kind(cluster: Any) -> None:
    reference = {"name": "r", "kind": "TrainingRuntime"}
    cluster.apply(runtime({"torch": {}}, kind="TrainingRuntime"), train(CPU, runtimeRef=reference))
    assert cluster.has("JobSet/tj")


def test_a_train_job_without_its_runtime_fails_and_says_so(cluster: Any) -> None:
    cluster.apply(train(CPU))
    failed = cluster.condition("TrainJob/tj", "Failed")
    assert failed["reason"] == "TrainingRuntimeNotSupported"
    assert "ClusterTrainingRuntime/r" in failed["message"]


def test_a_running_train_job_can_be_suspended_though_its_runtime_is_gone(cluster: Any) -> None:
    reference = {"name": "r", "kind": "TrainingRuntime"}
    cluster.apply(runtime({"torch": {}}, kind="TrainingRuntime"), train(CPU, runtimeRef=reference))
    cluster.delete("TrainingRuntime/r")
    cluster.apply(train(CPU, runtimeRef=reference, suspend=True))
    assert cluster.pods() == {}
    assert cluster.condition("TrainJob/tj", "Suspended")["status"] == "True"
    assert not cluster.has("PodGroup/tj")
