"""Manifests of the field, applied by kubectl to a real API server, run to their end under Tidegate's services."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from applied import get, has, kubectl, reaches, run, template, volcano_job
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from gang_runs import child, decisions_of


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services, for the tests of this file together."""
    with running_system(plane, tmp_path_factory.mktemp("system")) as folder:
        yield folder


JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def test_a_volcano_job_runs_to_its_end(plane: ControlPlane) -> None:
    tasks = [
        {"name": "ps", "replicas": 1, "template": template()},
        {"name": "worker", "replicas": 4, "template": template()},
    ]
    kubectl(plane, "apply", "-f", "-", given=volcano_job("train", minAvailable=5, tasks=tasks))

    reaches(plane, f"{JOBS}/train", lambda status: status.get("state", {}).get("phase") == "Completed")

    assert "Completed" in kubectl(plane, "get", "vcjob", "train")
    pods = get(plane, "/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3Dtrain")["items"]
    assert all(pod["spec"]["nodeName"] for pod in pods)
    kubectl(plane, "delete", "vcjob", "train")
    eventually(lambda: not get(plane, "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups")["items"])


def test_a_pytorch_job_runs_to_its_end(plane: ControlPlane) -> None:
    replicas = {
        "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template()},
        "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": template()},
    }
    for role in replicas.values():
        role["template"]["spec"]["containers"][0]["name"] = "pytorch"
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "pt", "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    kubectl(plane, "apply", "-f", "-", given=job)

    reaches(plane, "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/pt", has("Succeeded"))

    kubectl(plane, "delete", "pytorchjob", "pt")


def test_an_mpi_job_runs_to_its_end(plane: ControlPlane) -> None:
    replicas = {
        "Launcher": {"replicas": 1, "template": template()},
        "Worker": {"replicas": 2, "template": template()},
    }
    for role in replicas.values():
        del role["template"]["spec"]["restartPolicy"]
    del replicas["Worker"]["template"]["metadata"]
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "mpi", "namespace": "default"},
        "spec": {"mpiReplicaSpecs": replicas},
    }
    kubectl(plane, "apply", "-f", "-", given=job)

    reaches(plane, "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/mpi", has("Succeeded"))

    secret = get(plane, "/api/v1/namespaces/default/secrets/mpi-ssh")
    assert all(secret["data"].values())
    kubectl(plane, "delete", "mpijob", "mpi")


def test_a_job_of_kueue_starts_when_there_is_quota(plane: ControlPlane) -> None:
    kueue = "kueue.x-k8s.io/v1beta2"
    flavors = [
        {"name": "any", "resources": [{"name": "cpu", "nominalQuota": 2}, {"name": "memory", "nominalQuota": "8Gi"}]}
    ]
    objects = [
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "any"}},
        {
            "apiVersion": kueue,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
            },
        },
        {
            "apiVersion": kueue,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
    ]
    jobs = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
            "spec": {
                "suspend": True,
                "parallelism": 2,
                "completions": 2,
                "template": template(schedulerName="tidegate"),
            },
        }
        for name in ("first", "second")
    ]
    for one in [*objects, *jobs]:
        kubectl(plane, "apply", "-f", "-", given=one)

    for name in ("first", "second"):
        reaches(plane, f"/apis/batch/v1/namespaces/default/jobs/{name}", has("Complete"))

    for one in reversed([*objects, *jobs]):
        kubectl(plane, "delete", one["kind"].lower(), one["metadata"]["name"])


def test_what_waits_is_told_where_people_look(plane: ControlPlane) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "huge", "namespace": "default"},
        "spec": {**template("500")["spec"], "schedulerName": "tidegate"},
    }
    kubectl(plane, "apply", "-f", "-", given=pod)

    told = eventually(lambda: text if "largest node" in (text := kubectl(plane, "describe", "pod", "huge")) else None)

    assert "Insufficient cpu" in told

    def condition() -> Any:
        """It is written beside the event that the text is from, before or after it."""
        conditions = get(plane, "/api/v1/namespaces/default/pods/huge")["status"].get("conditions") or ()
        return next((one for one in conditions if one["type"] == "PodScheduled"), None)

    scheduled = eventually(condition)
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    kubectl(plane, "delete", "pod", "huge")


def test_a_gang_is_not_told_pod_by_pod_that_it_waits_for_the_others(plane: ControlPlane, system: Path) -> None:
    job = volcano_job("wide", minAvailable=60, tasks=[{"name": "w", "replicas": 60, "template": template("100m")}])
    began = time.monotonic()
    kubectl(plane, "apply", "-f", "-", given=job)

    reaches(plane, f"{JOBS}/wide", lambda status: status.get("state", {}).get("phase") == "Completed")

    seconds = time.monotonic() - began
    decided = [
        one.name
        for one in decisions_of(child(system, "gang_scheduler"), "gang_scheduler")
        if one.subject.name.startswith("wide")
    ]
    assert decided.count("GangPlaced") == 1
    assert decided.count("WaitExplained") <= seconds
    kubectl(plane, "delete", "vcjob", "wide")


def test_pods_of_other_schedulers_are_left_alone(plane: ControlPlane) -> None:
    for name, scheduler in (("theirs", "default-scheduler"), ("ours", "tidegate")):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {**template()["spec"], "schedulerName": scheduler},
        }
        kubectl(plane, "apply", "-f", "-", given=pod)

    eventually(lambda: get(plane, "/api/v1/namespaces/default/pods/ours")["spec"].get("nodeName"))

    assert "nodeName" not in get(plane, "/api/v1/namespaces/default/pods/theirs")["spec"]
    kubectl(plane, "delete", "pod", "ours", "theirs", "--force")


def test_what_is_wrong_is_refused_with_its_fields_before_it_is_stored(plane: ControlPlane) -> None:
    tasks = [{"replicas": 2, "template": template()}]
    refused = run(plane, "apply", "-f", "-", given=volcano_job("bad", minAvailable=7, maxRetry=-1, tasks=tasks))

    assert refused.returncode != 0
    assert "spec.minAvailable" in refused.stderr
    assert "spec.maxRetry" in refused.stderr


def test_defaults_are_filled_in_on_the_way(plane: ControlPlane) -> None:
    kubectl(plane, "apply", "-f", "-", given=volcano_job("plain", tasks=[{"replicas": 2, "template": template()}]))

    spec = get(plane, f"{JOBS}/plain")["spec"]

    assert (spec["minAvailable"], spec["queue"], spec["tasks"][0]["name"]) == (2, "default", "default0")
    kubectl(plane, "delete", "vcjob", "plain")


def test_what_our_own_command_line_writes_is_in_the_cluster(plane: ControlPlane, system: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(volcano_job("mine", tasks=[{"name": "a", "replicas": 1, "template": template()}])))
    words = [sys.executable, "-m", "tidegate_cli.main", "apply", "-f", str(file)]
    environment = {**os.environ, "TIDEGATE_DATA_DIR": str(system)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=90)

    assert done.returncode == 0, done.stderr
    assert get(plane, f"{JOBS}/mine")["spec"]["tasks"][0]["name"] == "a"
    kubectl(plane, "delete", "vcjob", "mine")
