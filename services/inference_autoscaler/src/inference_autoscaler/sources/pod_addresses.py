"""Where pods tell their metrics: by the annotations that Prometheus and KServe's runtimes use, or by a port of that name."""

from inference_autoscaler.sources.asking import PodAddress
from kube import Object

_PREFIXES = ("prometheus.kserve.io", "prometheus.io")
_PORTS = ("metrics", "http-metrics")
_DEFAULT_PATH = "/metrics"


def address_of(pod: Object) -> PodAddress:
    """Where ``pod`` is asked. Without a url while it has no address, or where it does not say which port."""
    host, port = str(pod.status.get("podIP") or ""), _annotation(pod, "port") or _named_port(pod)
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
