"""Where pods tell their metrics: by the annotations that Prometheus and KServe's runtimes use, or by a port of that name.

Triton tells where it is told to, else at its usual port.
"""

from collections.abc import Iterable

from inference_autoscaler.sources.asking import PodAddress
from kube import Object

_PREFIXES = ("prometheus.kserve.io", "prometheus.io")
_PORTS = ("metrics", "http-metrics")
_DEFAULT_PATH = "/metrics"
_TRITON, _TRITON_FLAG, _TRITON_PORT = "tritonserver", "--metrics-port=", "8002"


def address_of(pod: Object) -> PodAddress:
    """Where ``pod`` is asked. Without a url while it has no address, or where it does not say which port."""
    host, port = str(pod.status.get("podIP") or ""), _annotation(pod, "port") or _named_port(pod) or _tritons_port(pod)
    if not host or not port.isdigit():
        return PodAddress(pod.name, pod.uid, "")
    host = f"[{host}]" if ":" in host else host
    scheme = "https" if _annotation(pod, "scheme") == "https" else "http"
    path = "/" + (_annotation(pod, "path") or _DEFAULT_PATH).lstrip("/")
    return PodAddress(pod.name, pod.uid, f"{scheme}://{host}:{port}{path}")


def _annotation(pod: Object, name: str) -> str:
    return next((found for prefix in _PREFIXES if (found := str(pod.annotations.get(f"{prefix}/{name}") or ""))), "")


def _named_port(pod: Object) -> str:
    """The first container port of a name that is usual for metrics."""
    ports = [port for container in pod.spec.get("containers") or () for port in container.get("ports") or ()]
    return next(
        (str(port["containerPort"]) for port in ports if port.get("name") in _PORTS and "containerPort" in port), ""
    )


def _tritons_port(pod: Object) -> str:
    for container in pod.spec.get("containers") or ():
        words: Iterable[str] = [str(word) for part in ("command", "args") for word in container.get(part) or ()]
        program = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
        if program == _TRITON or any(word.rpartition("/")[2] == _TRITON for word in words):
            told = next((word for word in words if word.startswith(_TRITON_FLAG)), f"{_TRITON_FLAG}{_TRITON_PORT}")
            return told.removeprefix(_TRITON_FLAG)
    return ""
