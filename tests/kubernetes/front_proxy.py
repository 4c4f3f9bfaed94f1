"""An API server that hands requests on to servers behind it, and the objects by which it finds ours on this machine."""

from pathlib import Path
from typing import Any

from control_plane import ControlPlane

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAMESPACE, SERVICE = "tidegate-system", "tidegate-admission"
APIS = (
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
)


def proxy_flags(folder: Path) -> tuple[str, ...]:
    """Flags of an API server with its files in ``folder``: it shows the certificate that it also serves with."""
    return (
        f"--requestheader-client-ca-file={folder / 'ca.crt'}",
        "--requestheader-allowed-names=kube-apiserver",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={folder / 'server.crt'}",
        f"--proxy-client-key-file={folder / 'server.key'}",
    )


def register(plane: ControlPlane, port: int) -> None:
    """Our server at ``port`` of this machine answers the metrics APIs."""
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    service = {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    plane.request("POST", f"/api/v1/namespaces/{NAMESPACE}/services", service)
    for group, version in APIS:
        serve_behind(plane, group, version, port)


def serve_behind(plane: ControlPlane, group: str, version: str, port: int, **trust: Any) -> None:
    """A server at ``port`` of this machine answers this API. ``trust`` says whom the API server believes that it is that one."""
    spec: dict[str, Any] = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100}
    spec["service"] = {"namespace": NAMESPACE, "name": SERVICE, "port": port}
    body = {"metadata": {"name": f"{version}.{group}"}, "spec": {**spec, **trust}}
    plane.request("POST", API_SERVICES, body)


def are_available(plane: ControlPlane) -> bool:
    """Whether the API server reaches all of ours."""
    return all(is_available(plane, group, version) for group, version in APIS)


def is_available(plane: ControlPlane, group: str, version: str) -> bool:
    """Whether the API server reaches the one behind this API."""
    status = plane.request("GET", f"{API_SERVICES}/{version}.{group}").get("status") or {}
    return any(one["type"] == "Available" and one["status"] == "True" for one in status.get("conditions") or ())
