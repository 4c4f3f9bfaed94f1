"""MPIJob: workers, launcher, and what both need to find each other."""

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]
ROLE = "training.kubeflow.org/job-role"


def mpi(workers: int = 2, worker: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "mpi", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    roles = {"Launcher": {"replicas": 1, "template": template}}
    if workers:
        roles["Worker"] = {"replicas": workers, "template": template, **(worker or {})}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m"},
        "spec": {"mpiReplicaSpecs": roles, **spec},
    }


def hostfile(cluster: Any) -> str:
    return str(cluster.get("ConfigMap/m-config").body["data"]["hostfile"])


def launcher_env(cluster: Any) -> dict[str, Any]:
    return dict(cluster.env("m-launcher-0-0"))


def test_the_host_list_names_every_worker_with_its_slots(cluster: Any) -> None:
    cluster.apply(mpi(slotsPerWorker=4))
    assert hostfile(cluster) == "m-worker-0.m.default.svc slots=4\nm-worker-1.m.default.svc slots=4\n"


def test_a_launcher_that_works_too_is_the_first_host(cluster: Any) -> None:
    cluster.apply(mpi(runLauncherAsWorker=True))
    assert hostfile(cluster).splitlines()[0] == "m-launcher.m.default.svc slots=1"
    assert "NVIDIA_VISIBLE_DEVICES" not in launcher_env(cluster)
    assert cluster.get("Pod/m-worker-0").labels["training.kubeflow.org/replica-index"] == "1"


def test_intel_and_mpich_have_their_own_form_and_variables(cluster: Any) -> None:
    cluster.apply(mpi(mpiImplementation="Intel", slotsPerWorker=2))
    assert hostfile(cluster).splitlines()[0] == "m-worker-0.m.default.svc:2"
    env = launcher_env(cluster)
    assert env["I_MPI_HYDRA_HOST_FILE"] == "/etc/mpi/hostfile"
    assert env["I_MPI_PERHOST"] == "2"
    cluster.delete("MPIJob/m")
    cluster.apply(mpi(mpiImplementation="MPICH"))
    assert launcher_env(cluster)["HYDRA_HOST_FILE"] == "/etc/mpi/hostfile"


def test_the_open_mpi_launcher_is_told_where_the_hosts_are_and_sees_no_device(cluster: Any) -> None:
    cluster.apply(mpi())
    assert launcher_env(cluster) == {
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": "1",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }


def test_launcher_and_workers_are_one_gang(cluster: Any) -> None:
    cluster.apply(mpi())
    assert cluster.get("PodGroup/m").spec["minMember"] == 3
    launcher = cluster.get("Pod/m-launcher-0-0")
    assert launcher.annotations["scheduling.k8s.io/group-name"] == "m"
    assert launcher.labels[ROLE] == "launcher"
    worker = cluster.get("Pod/m-worker-1")
    assert worker.annotations["scheduling.k8s.io/group-name"] == "m"
    assert worker.labels[ROLE] == "worker"
    assert worker.spec["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]
    assert (worker.spec["hostname"], worker.spec["subdomain"]) == ("m-worker-1", "m")


def test_the_keys_are_made_by_the_cluster_and_mounted_by_all(cluster: Any) -> None:
    cluster.apply(mpi())
    assert cluster.get("Secret/m-ssh").annotations == {"tidegate.dev/generate": "ssh-keypair"}
    for pod in ("m-worker-0", "m-launcher-0-0"):
        volumes = cluster.get(f"Pod/{pod}").spec["volumes"]
        assert volumes[0]["secret"]["secretName"] == "m-ssh"
        assert cluster.get(f"Pod/{pod}").spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/root/.ssh"


def test_the_launcher_waits_for_all_workers_where_the_job_says_so(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(mpi(launcherCreationPolicy="WaitForWorkersReady"))
    group = cluster.get("PodGroup/m").spec
    assert (group["minMember"], group["minResources"]) == (2, {"cpu": "2"})
    cluster.pods_become(**{"m-worker-0": {"phase": "Running", "ready": True}, "m-worker-1": "Running"})
    assert not cluster.has("Job.batch/m-launcher")
    cluster.pods_become(**{"m-worker-1": {"phase": "Running", "ready": True}})
    assert cluster.has("Job.batch/m-launcher")


def test_a_job_runs_when_launcher_and_all_workers_do(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(mpi())
    cluster.pods_become(**{"m-launcher-0-0": "Running", "m-worker-0": "Running"})
    assert cluster.condition("MPIJob/m", "Running") == {}
    cluster.pods_become(**{"m-worker-1": "Running"})
    assert cluster.condition("MPIJob/m", "Running")["reason"] == "MPIJobRunning"


def test_hosts_that_run_now_are_what_elastic_horovod_discovers(make_batch_cluster: Make) -> None:
    cluster = make_batch_cluster(pod_start="manual")
    cluster.apply(mpi())
    cluster.pods_become(**{"m-worker-1": "Running"})
    script = cluster.get("ConfigMap/m-config").body["data"]["discover_hosts.sh"]
    assert script == "#!/bin/sh\necho m-worker-1.m.default.svc\n"


def test_the_end_of_the_launcher_is_the_end_of_the_job(cluster: Any) -> None:
    cluster.apply(mpi(runPolicy={"cleanPodPolicy": "Running"}))
    cluster.pods_become(**{"m-launcher-0-0": "Succeeded"})
    assert cluster.condition("MPIJob/m", "Succeeded")["reason"] == "MPIJobSucceeded"
    assert cluster.pods() == {"m-launcher-0-0": "Succeeded"}
    assert not cluster.has("PodGroup/m")
    assert cluster.get("MPIJob/m").status["replicaStatuses"]["Launcher"]["succeeded"] == 1


def test_a_launcher_that_fails_for_good_fails_the_job_with_its_reason(cluster: Any) -> None:
    cluster.apply(mpi(runPolicy={"backoffLimit": 1}))
    assert cluster.get("Job.batch/m-launcher").spec["backoffLimit"] == 1
    cluster.end_job("m-launcher", "Failed", "BackoffLimitExceeded", "tried 2 times")
    failed = cluster.condition("MPIJob/m", "Failed")
    assert "BackoffLimitExceeded" in failed["message"]


def test_a_worker_evicted_by_its_node_fails_the_job(cluster: Any) -> None:
    cluster.apply(mpi())
    cluster.patch_status("Pod/m-worker-0", {"phase": "Failed", "reason": "Evicted"})
    assert cluster.condition("MPIJob/m", "Failed")["reason"] == "MPIJobEvicted"
    assert "m-launcher-0-0" not in cluster.pods()


def test_a_failed_worker_is_made_again_within_the_limit(cluster: Any) -> None:
    cluster.apply(mpi(worker={"restartPolicy": "OnFailure"}, runPolicy={"backoffLimit": 1}))
    cluster.pods_become(**{"m-worker-0": "Failed"})
    assert cluster.pods()["m-worker-0"] == "Running"
    cluster.pods_become(**{"m-worker-0": "Failed"})
    assert cluster.pods()["m-worker-0"] == "Failed"
    assert "backoffLimit is 1" in cluster.condition("MPIJob/m", "Failed")["message"]


def test_suspending_an_mpi_job_leaves_no_pod_and_no_group(cluster: Any) -> None:
    cluster.apply(mpi())
    cluster.apply(mpi(runPolicy={"suspend": True}))
    assert cluster.pods() == {}
    assert not cluster.has("PodGroup/m")
    cluster.apply(mpi(runPolicy={"suspend": False}))
    assert len(cluster.pods()) == 3
    assert cluster.condition("MPIJob/m", "Suspended")["reason"] == "MPIJobResumed"


def test_scaling_workers_changes_the_host_list_and_the_highest_pods(cluster: Any) -> None:
    cluster.apply(mpi(workers=3))
    cluster.apply(mpi(workers=1))
    assert list(cluster.pods()) == ["m-launcher-0-0", "m-worker-0"]
    assert hostfile(cluster) == "m-worker-0.m.default.svc slots=1\n"
    assert cluster.get("PodGroup/m").spec["minMember"] == 2


def test_a_failed_worker_that_is_too_many_is_deleted_once(cluster: Any) -> None:
    cluster.apply(mpi(worker={"restartPolicy": "OnFailure"}))
    cluster.refuse = lambda decision: "not now"
    cluster.pods_become(**{"m-worker-1": "Failed"})
    cluster.refuse = lambda decision: None
    cluster.apply(mpi(workers=1, worker={"restartPolicy": "OnFailure"}))
    cluster.advance("2m")
    assert list(cluster.pods()) == ["m-launcher-0-0", "m-worker-0"]
