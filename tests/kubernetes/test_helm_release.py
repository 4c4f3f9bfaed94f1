"""A release from its installation to its end, on a real API server: what users run is never touched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_tools import DEFINITIONS, REGISTRATION, eventually
from control_plane import ControlPlane
from deployed_rights import deployed_services, secret
from helm_tools import NAMESPACE, SERVICE_CHARTS, TRIAL, Helm, deep
from lab_programs import NoLab, programs
from played_jobs import kubectl, pod, volcano_job

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("helm release")]

LOGINS = tuple(
    f"tidegate-nats-{name}" for name in ("admission", "cluster-gateway", "gang-scheduler", "routes", "config")
)
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


@pytest.fixture
def helm(plane: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """Helm on the plane, where pods of the release are scheduled by kube-scheduler; nothing of it is left."""
    try:
        found = programs("helm", "kube-scheduler")
    except NoLab as error:
        pytest.skip(str(error))
    flags = [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    plane.start("kube-scheduler", [str(found["kube-scheduler"]), *flags])
    made = Helm(tmp_path, plane)
    try:
        yield made
    finally:
        made.run("uninstall", "tidegate", "--namespace", NAMESPACE, "--ignore-not-found", "--no-hooks", check=False)
        plane.kill("kube-scheduler")


def test_the_api_server_takes_all_of_it_in_a_dry_run(helm: Helm) -> None:
    said = helm.install("tidegate", TRIAL, "--dry-run=server")
    assert "Dry run complete" in said and "NOTES" in said


@pytest.mark.parametrize("chart", ["nats", *SERVICE_CHARTS])
def test_each_chart_is_installed_alone_and_taken_away(helm: Helm, chart: str) -> None:
    bus = {"nats": {"url": "nats://bus.example:4222", "credentialsSecret": "login", "authoritySecret": "bus-ca"}}
    values = {"storage": {"ephemeral": True}} if chart == "nats" else bus
    try:
        helm.install(chart, values, release="alone")
        assert f"alone-{chart}" in helm.run("get", "manifest", "alone", "--namespace", NAMESPACE).stdout
        # Its own chart again is no change that a server would refuse.
        helm.install(chart, values, release="alone")
    finally:
        helm.run("uninstall", "alone", "--namespace", NAMESPACE, "--ignore-not-found")


def test_a_job_outlives_upgrade_rollback_and_the_end_of_the_release(
    helm: Helm, plane: ControlPlane, tmp_path: Path
) -> None:
    assert "It places pods with these names" in helm.install("tidegate", TRIAL, "--wait", "--timeout", "120s")
    logins = {name: secret(plane, name) for name in LOGINS}
    with deployed_services(plane, tmp_path):
        kubectl(plane, "apply", "-f", "-", given=[volcano_job("lasting", pod("1h"), 3)])
        eventually(lambda: phase(plane) == "Running")
        before = members(plane)
        registered = eventually(lambda: found if all((found := webhooks(plane)).values()) else None)

        helm.install("tidegate", deep(TRIAL, {"gang-scheduler": {"logLevel": "DEBUG"}}), "--wait", "--timeout", "120s")
        assert {name: secret(plane, name) for name in LOGINS} == logins
        assert webhooks(plane) == registered
        assert secret(plane, "tidegate-admission-tls").keys() == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    with deployed_services(plane, tmp_path):
        assert (phase(plane), members(plane)) == ("Running", before)

        helm.run("rollback", "tidegate", "1", "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
        assert {name: secret(plane, name) for name in LOGINS} == logins
        assert webhooks(plane) == registered

    helm.run("uninstall", "tidegate", "--namespace", NAMESPACE, "--wait", "--timeout", "120s")
    assert not any(webhooks(plane).values())
    assert (phase(plane), members(plane)) == ("Running", before)
    assert plane.request("GET", f"{DEFINITIONS}/jobs.batch.volcano.sh")["metadata"]["name"]
    eventually(lambda: remains(plane) == [])
    plane.request("DELETE", f"{JOBS}/lasting")


def phase(plane: ControlPlane) -> str:
    status = plane.request("GET", f"{JOBS}/lasting").get("status") or {}
    return str(status.get("state", {}).get("phase"))


def members(plane: ControlPlane) -> list[tuple[str, str, str]]:
    found = plane.request("GET", "/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3Dlasting")["items"]
    return sorted((one["metadata"]["uid"], one["spec"]["nodeName"], one["status"]["phase"]) for one in found)


def webhooks(plane: ControlPlane) -> dict[str, list[tuple[Any, ...]]]:
    """For each configuration of ours its webhooks, with what they trust."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for word in ("mutating", "validating"):
        items = plane.request("GET", f"{REGISTRATION}/{word}webhookconfigurations")["items"]
        ours = [one for one in items if one["metadata"]["name"] == "tidegate-admission"]
        found[word] = [
            (one["name"], one["clientConfig"]["caBundle"]) for item in ours for one in item.get("webhooks", ())
        ]
    return found


def remains(plane: ControlPlane) -> list[str]:
    """What is left of the release: nothing but what Kubernetes itself keeps, and no right at all."""
    left = []
    for path in (
        f"api/v1/namespaces/{NAMESPACE}/pods",
        f"api/v1/namespaces/{NAMESPACE}/secrets",
        f"api/v1/namespaces/{NAMESPACE}/services",
        f"apis/apps/v1/namespaces/{NAMESPACE}/deployments",
        "apis/rbac.authorization.k8s.io/v1/clusterroles",
        "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    ):
        items = plane.request("GET", f"/{path}")["items"]
        left += [f"{path}/{one['metadata']['name']}" for one in items if "tidegate" in one["metadata"]["name"]]
    return left
