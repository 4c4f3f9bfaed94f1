"""Tidegate's own API on a cluster: the cluster says who calls and what they may do, and sees who it was that wrote."""

import base64
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_tools import eventually, running_system
from control_plane import AUDIT_LOG, ControlPlane
from gang_runs import child, command_of, environment_of

from admission.webhooks.certificates import make
from bus.server import free_port

CORE, RBAC = "/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1"
WORKLOADS = ["batch.volcano.sh", "kubeflow.org", ""]


@pytest.fixture(scope="module")
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services; a namespace ``lab-a`` where the service account ``ann`` may write jobs and read pods and their logs."""
    plane.request("POST", CORE, {"metadata": {"name": "lab-a"}})
    plane.request("POST", f"{CORE}/lab-a/serviceaccounts", {"metadata": {"name": "ann"}})
    rules = [
        {
            "apiGroups": WORKLOADS,
            "resources": ["jobs", "commands"],
            "verbs": ["get", "list", "watch", "create", "update"],
        },
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update", "get"], "resourceNames": ["mine"]},
    ]
    plane.request("POST", f"{RBAC}/namespaces/lab-a/roles", {"metadata": {"name": "worker"}, "rules": rules})
    bound = {
        "metadata": {"name": "worker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "worker"},
        "subjects": [{"kind": "ServiceAccount", "name": "ann", "namespace": "lab-a"}],
    }
    plane.request("POST", f"{RBAC}/namespaces/lab-a/rolebindings", bound)
    with running_system(plane, tmp_path_factory.mktemp("system")) as folder:
        yield folder
    plane.request("DELETE", f"{CORE}/lab-a")


@pytest.fixture(scope="module")
def kubeconfig(plane: ControlPlane, system: Path) -> Path:
    """That of ``ann``."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = plane.request("POST", f"{CORE}/lab-a/serviceaccounts/ann/token", request)
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"] = [{"name": "admin", "user": {"token": made["status"]["token"]}}]
    file = system.parent / "ann.kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


def tidegate(system: Path, *words: str, given: Any = None) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "TIDEGATE_DATA_DIR": str(system)}
    command = [sys.executable, "-m", "tidegate_cli.main", *words]
    text = json.dumps(given) if given else None
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=False, timeout=60)


def job(namespace: str, name: str = "train") -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"tasks": [{"name": "w", "replicas": 1, "template": template}]},
    }


def config(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "lab-a"},
        "data": {"a": "b"},
    }


def test_what_the_role_allows_is_done_in_the_user_s_own_name(
    plane: ControlPlane, system: Path, kubeconfig: Path
) -> None:
    done = tidegate(system, "--kubeconfig", str(kubeconfig), "apply", "-f", "-", given=job("lab-a"))

    assert done.returncode == 0, done.stderr
    stored = plane.request("GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/lab-a/jobs/train")
    assert "tidegate-system:serviceaccount:lab-a:ann" in {one["manager"] for one in stored["metadata"]["managedFields"]}
    told = tidegate(system, "--kubeconfig", str(kubeconfig), "explain", "job/train", "-n", "lab-a")
    assert told.returncode == 0, told.stderr
    assert (
        "lab-a" in tidegate(system, "--kubeconfig", str(kubeconfig), "get", "pods", "-n", "lab-a", "-o", "yaml").stdout
    )


@pytest.fixture
def secured(plane: ControlPlane, system: Path) -> Iterator[tuple[str, ...]]:
    """One more process of admission, which serves the API over TLS; the words that lead a command to it."""
    pid, port = child(system, "admission"), free_port()
    command = [*command_of(pid), "--api-port", str(port)]
    for word in ("--health-port", "--webhook-port"):
        command[command.index(word) + 1] = "0"
    log = system / "logs" / "admission-secured.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment_of(pid), stdout=output, stderr=output)
    try:
        eventually(lambda: '"event": "ready"' in log.read_text())
        secret = plane.request("GET", f"{CORE}/tidegate-system/secrets/tidegate-admission-tls")
        authority = system.parent / "ca.crt"
        authority.write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
        yield "--server", f"127.0.0.1:{port}", "--ca", str(authority)
    finally:
        process.kill()
        process.wait()


def test_over_tls_the_audit_log_of_the_cluster_sees_the_user(
    plane: ControlPlane, system: Path, kubeconfig: Path, secured: tuple[str, ...]
) -> None:
    who = ("--kubeconfig", str(kubeconfig))

    done = tidegate(system, *who, *secured, "apply", "-f", "-", given=job("lab-a", "audited"))

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (plane.folder / AUDIT_LOG).read_text().splitlines()]
    (told,) = [
        line for line in lines if line["objectRef"].get("name") == "audited" and line["responseStatus"]["code"] < 300
    ]
    assert told["impersonatedUser"]["username"] == "system:serviceaccount:lab-a:ann"
    assert told["user"]["username"] == "admin"
    refused = tidegate(system, *who, *secured, "apply", "-f", "-", given=job("default"))
    assert "may not create jobs in namespace default" in refused.stderr + refused.stdout


def test_over_tls_a_server_that_nobody_vouches_for_is_not_talked_to(
    system: Path, kubeconfig: Path, secured: tuple[str, ...]
) -> None:
    other = system.parent / "other.crt"
    made = make(("127.0.0.1",), datetime.datetime.now(datetime.UTC))
    other.write_bytes(made.authority)

    refused = tidegate(system, "--kubeconfig", str(kubeconfig), *secured[:3], str(other), "get", "pods", "-n", "lab-a")

    assert refused.returncode != 0


@pytest.mark.parametrize(
    ("words", "given", "why"),
    [
        (("apply", "-f", "-"), job("default"), "may not create jobs in namespace default"),
        (("apply", "-f", "-"), config("other"), "may not create configmaps in namespace lab-a"),
        (("get", "pods", "-n", "default"), None, "may not list pods in namespace default"),
        (("get", "pods", "-A"), None, "may not list pods in the cluster"),
        (("get", "nodes"), None, "may not list nodes in the cluster"),
        (("delete", "job/train", "-n", "lab-a"), None, "may not delete jobs"),
        (("logs", "nothing", "-n", "default"), None, "may not get pods nothing in namespace default"),
        (("snapshot", "-o", "/dev/null"), None, "may not read everywhere"),
    ],
)
def test_what_no_role_allows_is_refused(
    system: Path, kubeconfig: Path, words: tuple[str, ...], given: Any, why: str
) -> None:
    refused = tidegate(system, "--kubeconfig", str(kubeconfig), *words, given=given)

    assert refused.returncode != 0
    assert why in refused.stderr + refused.stdout


def test_one_object_can_be_granted_by_its_name(plane: ControlPlane, system: Path, kubeconfig: Path) -> None:
    plane.request("POST", f"{CORE}/lab-a/configmaps", {"metadata": {"name": "mine"}})
    owner = ("--kubeconfig", str(kubeconfig))
    eventually(lambda: tidegate(system, *owner, "get", "configmap", "mine", "-n", "lab-a").returncode == 0)

    assert tidegate(system, *owner, "apply", "-f", "-", given=config("mine")).returncode == 0
    assert plane.request("GET", f"{CORE}/lab-a/configmaps/mine")["data"] == {"a": "b"}


def test_a_token_that_the_cluster_does_not_know_is_nobody_s(system: Path) -> None:
    refused = tidegate(system, "--token", "nonsense", "get", "pods")

    assert refused.returncode != 0
    assert "the cluster does not know the token" in refused.stderr
