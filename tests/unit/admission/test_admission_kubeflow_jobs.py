"""Kubeflow's jobs: TFJob, PyTorchJob, XGBoostJob, PaddleJob, JAXJob, MPIJob."""

from typing import Any

import pytest

from admission.domain.frameworks import FRAMEWORKS


def replica(container: str, replicas: int | None = None, **more: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": container, "image": "busybox"}]}}
    return {"template": template, **({} if replicas is None else {"replicas": replicas}), **more}


def job(kind: str, types: dict[str, dict[str, Any]], name: str = "j", **spec: Any) -> dict[str, Any]:
    field = FRAMEWORKS[f"{kind}.kubeflow.org"].replicas
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": {field: types, **spec}}


def torch(name: str = "j", **spec: Any) -> dict[str, Any]:
    return job("PyTorchJob", {"Master": replica("pytorch"), "Worker": replica("pytorch", 2)}, name, **spec)


@pytest.mark.parametrize(
    ("kind", "leader", "port", "policy"),
    [
        ("TFJob", "Chief", ("tfjob-port", 2222), "Never"),
        ("PyTorchJob", "Master", ("pytorchjob-port", 23456), "OnFailure"),
        ("XGBoostJob", "Master", ("xgboostjob-port", 9999), "Never"),
        ("PaddleJob", "Master", ("master", 36543), "OnFailure"),
        ("JAXJob", "Worker", ("jaxjob-port", 6666), "Never"),
    ],
)
def test_each_framework_fills_in_its_port_and_its_restart_policy(
    gate: Any, kind: str, leader: str, port: tuple[str, int], policy: str
) -> None:
    framework = FRAMEWORKS[f"{kind}.kubeflow.org"]
    spec = gate.apply(job(kind, {leader.lower(): replica(framework.container)}))["spec"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "None", "suspend": False}
    made = spec[framework.replicas][leader]
    assert (made["replicas"], made["restartPolicy"]) == (1, policy)
    ports = made["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"name": port[0], "containerPort": port[1], "protocol": "TCP"}]


def test_a_port_of_the_name_that_is_there_stays(gate: Any) -> None:
    own = torch()
    ports = [{"name": "pytorchjob-port", "containerPort": 1234}]
    own["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["ports"] = ports
    stored = gate.apply(own)["spec"]["pytorchReplicaSpecs"]["Master"]
    assert [port["containerPort"] for port in stored["template"]["spec"]["containers"][0]["ports"]] == [1234]


@pytest.mark.parametrize(("workers", "said"), [(1, "minReplicas (2)"), (5, "maxReplicas (4)")])
def test_an_elastic_job_is_scaled_between_its_bounds(gate: Any, workers: int, said: str) -> None:
    job = torch(elasticPolicy={"minReplicas": 2, "maxReplicas": 4})
    gate.apply(job)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 4
    gate.apply(job)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers
    [(path, rule)] = gate.wrong(job).items()
    assert path == "spec.pytorchReplicaSpecs.Worker.replicas" and said in rule and "from 2 to 4" in rule
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 5}
    assert not gate.wrong(job)


def test_an_elastic_job_ranges_from_its_workers_to_its_workers(gate: Any) -> None:
    spec = gate.apply(torch(elasticPolicy={}, nprocPerNode=4))["spec"]
    assert spec["elasticPolicy"] == {"minReplicas": 2, "maxReplicas": 2, "rdzvBackend": "c10d"}
    assert spec["nprocPerNode"] == "4"
    assert gate.apply(torch("k", elasticPolicy={"maxReplicas": 5}))["spec"]["elasticPolicy"]["minReplicas"] == 5


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (torch(nprocPerNode="many"), "spec.nprocPerNode"),
        (torch(elasticPolicy={"minReplicas": 3, "maxReplicas": 2}), "spec.elasticPolicy.maxReplicas"),
        (torch(elasticPolicy={"rdzvBackend": "dns"}), "spec.elasticPolicy.rdzvBackend"),
        (torch(runPolicy={"cleanPodPolicy": "Some"}), "spec.runPolicy.cleanPodPolicy"),
        (torch(runPolicy={"backoffLimit": -1}), "spec.runPolicy.backoffLimit"),
        (torch(runPolicy={"managedBy": "me"}), "spec.runPolicy.managedBy"),
        (torch(runPolicy={"schedulingPolicy": {"queue": "nowhere"}}), "spec.runPolicy.schedulingPolicy.queue"),
        (torch("1job"), "metadata.name"),
        (torch("j" * 60), "metadata.name"),
        (job("PyTorchJob", {}), "spec.pytorchReplicaSpecs"),
        (
            job("PyTorchJob", {"Worker": {"template": {"spec": {"containers": [{"name": "pytorch"}]}}}}),
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].image",
        ),
        (job("PyTorchJob", {"Worker": replica("pytorch", -1)}), "spec.pytorchReplicaSpecs.Worker.replicas"),
        (
            job("PyTorchJob", {"Worker": replica("pytorch", restartPolicy="Maybe")}),
            "spec.pytorchReplicaSpecs.Worker.restartPolicy",
        ),
        (job("XGBoostJob", {"Worker": replica("xgboost")}), "spec.xgbReplicaSpecs"),
        (job("TFJob", {"Chief": replica("tensorflow"), "Master": replica("tensorflow")}), "spec.tfReplicaSpecs"),
        (job("TFJob", {"Worker": replica("tensorflow")}, successPolicy="Some"), "spec.successPolicy"),
        (job("JAXJob", {"Master": replica("jax")}), "spec.jaxReplicaSpecs.Master"),
    ],
)
def test_a_training_job_that_cannot_work_is_refused_by_field(gate: Any, wrong: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(wrong)


def test_queue_and_manager_of_a_job_that_exists_stay_and_the_rest_may_change(gate: Any) -> None:
    gate.apply(torch(runPolicy={"schedulingPolicy": {"queue": "default"}}))
    assert not gate.wrong(torch(runPolicy={"suspend": True, "schedulingPolicy": {"queue": "default"}}))
    wrong = gate.wrong(torch(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))
    assert set(wrong) == {"spec.runPolicy.schedulingPolicy.queue", "spec.runPolicy.managedBy"}


def mpi(**spec: Any) -> dict[str, Any]:
    types = {"Launcher": replica("mpi"), "Worker": replica("mpi", 2)}
    body = {"mpiReplicaSpecs": types, **spec}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "m"}, "spec": body}


def test_an_mpi_job_that_says_nothing_gets_everything_it_needs(gate: Any) -> None:
    spec = gate.apply(mpi())["spec"]
    given = ("slotsPerWorker", "runLauncherAsWorker", "launcherCreationPolicy", "mpiImplementation", "sshAuthMountPath")
    assert [spec[name] for name in given] == [1, False, "AtStartup", "OpenMPI", "/root/.ssh"]
    types = spec["mpiReplicaSpecs"]
    assert [types[name]["restartPolicy"] for name in ("Launcher", "Worker")] == ["OnFailure", "Never"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"mpiReplicaSpecs": {"Worker": replica("mpi")}}, "spec.mpiReplicaSpecs.Launcher"),
        ({"mpiReplicaSpecs": {"Launcher": replica("mpi", 2)}}, "spec.mpiReplicaSpecs.Launcher.replicas"),
        (
            {"mpiReplicaSpecs": {"Launcher": replica("mpi"), "Worker": replica("mpi", 0)}},
            "spec.mpiReplicaSpecs.Worker.replicas",
        ),
        (
            {"mpiReplicaSpecs": {"Launcher": replica("mpi", restartPolicy="Always")}},
            "spec.mpiReplicaSpecs.Launcher.restartPolicy",
        ),
        ({"mpiImplementation": "LAM"}, "spec.mpiImplementation"),
        ({"slotsPerWorker": 0}, "spec.slotsPerWorker"),
        ({"launcherCreationPolicy": "Later"}, "spec.launcherCreationPolicy"),
    ],
)
def test_an_mpi_job_that_cannot_work_is_refused_by_field(gate: Any, spec: dict[str, Any], path: str) -> None:
    assert path in gate.wrong(mpi(**spec))
