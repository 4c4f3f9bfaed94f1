"""With cert-manager's certificates: the webhooks are served with them, are trusted by what is filled in, and go on when they change."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import stand_in_cert_manager
from cluster_tools import REGISTRATION, eventually
from control_plane import ControlPlane
from deployed_rights import deployed_services
from helm_tools import NAMESPACE, TRIAL, Helm, deep
from lab_programs import NoLab, programs
from played_jobs import kubectl, pod, volcano_job

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("helm release")]
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
CERTIFICATE = "tidegate-admission"
VALUES = {"admission": {"certManager": {"enabled": True}}, "definitions": {"install": False}}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """As a kubelet mounts a Secret."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def shown(address: str) -> str:
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port))).strip()


def registered(plane: ControlPlane, word: str) -> list[Any]:
    path = f"{REGISTRATION}/{word}webhookconfigurations/tidegate-admission"
    return list(plane.request("GET", path).get("webhooks", []))


def test_the_webhooks_are_served_with_certificates_of_cert_manager_also_when_they_are_renewed(
    plane: ControlPlane, tmp_path: Path
) -> None:
    try:
        programs("helm")
    except NoLab as error:
        pytest.skip(str(error))
    helm, issuer, mounted = Helm(tmp_path, plane), stand_in_cert_manager.StandIn(plane, NAMESPACE), tmp_path / "tls"
    stand_in_cert_manager.define(plane)
    helm.install("tidegate", deep(TRIAL, VALUES))
    first = issuer.issue(CERTIFICATE)
    write(mounted, first)
    flags = {"admission": ("--tls-folder", str(mounted), "--inject-ca-from", f"{NAMESPACE}/{CERTIFICATE}")}
    try:
        with deployed_services(plane, tmp_path, flags) as address:
            eventually(lambda: registered(plane, "mutating") and registered(plane, "validating"))
            assert issuer.inject() >= 2
            kubectl(plane, "apply", "-f", "-", given=[volcano_job("first", pod("1h"), 1)])
            assert shown(address) == first["tls.crt"].decode().strip()

            second = issuer.issue(CERTIFICATE)
            write(mounted, second)
            issuer.inject()

            eventually(lambda: shown(address) == second["tls.crt"].decode().strip())
            eventually(lambda: applied(plane, "second"))
            assert plane.request("GET", f"{JOBS}/second")["spec"]["queue"] == "default"
            # What was filled in is left alone.
            bundles = {one["clientConfig"]["caBundle"] for one in registered(plane, "validating")}
            assert len(bundles) == 1
    finally:
        helm.run("uninstall", "tidegate", "--namespace", NAMESPACE, "--no-hooks")
        for name in ("first", "second"):
            kubectl(plane, "delete", "job.batch.volcano.sh", name, "--ignore-not-found")


def applied(plane: ControlPlane, name: str) -> bool:
    """The API server asks with a new connection once its old one is closed."""
    try:
        kubectl(plane, "apply", "-f", "-", given=[volcano_job(name, pod("1h"), 1)])
    except AssertionError:
        return False
    return True
