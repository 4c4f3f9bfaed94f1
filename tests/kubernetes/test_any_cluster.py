"""On whatever cluster there is: services that are started against it place a gang, tell why something waits, and leave it as it was."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import found_cluster
import pytest
from applied import template, volcano_job
from cluster_tools import eventually, running_services
from control_plane import ControlPlane
from found_cluster import ASKED_FOR, Found, NoCluster
from lab_programs import NoLab, programs

from admission.domain.definitions import DEFINED, definition


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and the namespace that is ours there."""

    kubeconfig: Path
    namespace: str

    def kubectl(self, *words: str, given: Any = None) -> str:
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *words]
        text = json.dumps(given) if given else None
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-n", self.namespace, "-o", "json"))

    def apply(self, manifest: Any) -> None:
        self.kubectl("apply", "-n", self.namespace, "-f", "-", given=manifest)


@contextmanager
def prepared(cluster: Found) -> Iterator[Place]:
    """The kinds that are not there, and a namespace; all of it goes at the end."""
    place = Place(cluster.kubeconfig, f"tidegate-test-{secrets.token_hex(4)}")
    there = place.kubectl("get", "crd", "-o", "name")
    wanted = [definition(kind) for kind in DEFINED]
    missing = [one for one in wanted if f"/{one['metadata']['name']}\n" not in there]
    queues = "queues.scheduling.volcano.sh"
    if missing:
        place.kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": missing})
        place.kubectl("wait", "--for=condition=Established", "crd", *(one["metadata"]["name"] for one in missing))
    before = place.kubectl("get", queues, "-o", "name").split()
    place.kubectl("create", "namespace", place.namespace)
    try:
        yield place
    finally:
        place.kubectl("delete", "namespace", place.namespace, "--wait=false")
        if made := set(place.kubectl("get", queues, "-o", "name").split()) - set(before):
            place.kubectl("delete", *made)
        if missing:
            place.kubectl("delete", "crd", *(one["metadata"]["name"] for one in missing))


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The cluster with all services, which place the pods that name them and no others."""
    folder = tmp_path_factory.mktemp("cluster")

    def lab() -> Path:
        programs("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
        plane: ControlPlane = request.getfixturevalue("plane")
        return plane.kubeconfig

    try:
        with (
            found_cluster.found_cluster(folder, lab) as cluster,
            prepared(cluster) as made,
            running_services(cluster.kubeconfig, folder / "system", ["--scheduler-names", "tidegate"]),
        ):
            yield made
    except NoCluster as error:
        pytest.skip(str(error))


def test_a_gang_is_placed_whole(place: Place) -> None:
    pods = template("10m")
    pods["metadata"]["annotations"]["lab/runs-for"] = "1h"  # a job's group goes with its end
    tasks = [{"name": "w", "replicas": 3, "template": pods}]
    job = volcano_job("gang", minAvailable=3, tasks=tasks, schedulerName="tidegate")
    job["metadata"]["namespace"] = place.namespace
    place.apply(job)

    def bound() -> bool:
        pods = place.get("pods", "-l", "volcano.sh/job-name=gang")["items"]
        return len(pods) == 3 and all(pod["spec"].get("nodeName") for pod in pods)

    eventually(bound)
    assert place.get("podgroups.scheduling.volcano.sh")["items"][0]["spec"]["minMember"] == 3


def test_who_waits_is_told_why(place: Place) -> None:
    pod = template("9000", schedulerName="tidegate")
    pod["metadata"] |= {"name": "huge", "namespace": place.namespace}
    place.apply({"apiVersion": "v1", "kind": "Pod", **pod})

    eventually(lambda: "Insufficient cpu" in place.kubectl("describe", "pod", "huge", "-n", place.namespace))


class TestWhereItComesFrom:
    """Which cluster is taken."""

    @staticmethod
    def no_lab() -> Path:
        raise NoLab("nothing is built here")

    def test_the_one_that_was_asked_for_goes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "config").write_text("{}")
        monkeypatch.setenv(ASKED_FOR, str(tmp_path / "config"))
        with found_cluster.found_cluster(tmp_path, lambda: tmp_path / "lab") as found:
            assert found == Found(tmp_path / "config", ASKED_FOR)

    def test_the_usual_kubeconfig_is_never_touched(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(ASKED_FOR, raising=False)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
        with found_cluster.found_cluster(tmp_path, lambda: tmp_path / "lab") as found:
            assert found == Found(tmp_path / "lab", "lab")

    def test_where_there_is_none_all_that_was_looked_for_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(ASKED_FOR, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with (
            pytest.raises(NoCluster, match=r"KUBECONFIG is not set; nothing is built here; Docker has no image"),
            found_cluster.found_cluster(tmp_path, self.no_lab),
        ):
            pass

    def test_an_image_of_k3s_that_docker_has_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        docker = tmp_path / "docker"
        docker.write_text("#!/bin/sh\necho rancher/k3s:v1.34.1-k3s1\n")
        docker.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        assert found_cluster.k3s_image() == "rancher/k3s:v1.34.1-k3s1"
