"""What of metrics-server an autoscaler meets: the resource metrics of pods, here as a test tells them.

metrics-server reads them from kubelets, of which pretended nodes have none.
"""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cluster_tools import eventually
from control_plane import ControlPlane
from front_proxy import is_available, serve_behind

from kube import rfc3339

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_PATH = f"/apis/{GROUP}/{VERSION}"


class ToldMetricsServer:
    """``cpu`` is what each container of each pod uses."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.cpu = "0"

    def answer(self, path: str) -> Any:
        """What it says to a request for the pods of a namespace, or to somebody who looks what there is."""
        where, _, query = path.removeprefix(_PATH).partition("?")
        if not where.startswith("/namespaces/"):
            resource = {
                "name": "pods",
                "singularName": "",
                "namespaced": True,
                "kind": "PodMetrics",
                "verbs": ["get", "list"],
            }
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [resource],
            }
        pods = self._plane.request("GET", f"/api/v1{where}?{query}")["items"]
        return {
            "kind": "PodMetricsList",
            "apiVersion": f"{GROUP}/{VERSION}",
            "metadata": {},
            "items": [self._of(pod) for pod in pods if pod["status"].get("phase") == "Running"],
        }

    def _of(self, pod: Any) -> Any:
        names = (one["name"] for one in pod["spec"]["containers"])
        containers = [{"name": name, "usage": {"cpu": self.cpu, "memory": "1Mi"}} for name in names]
        metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
        return {
            "metadata": metadata,
            "timestamp": rfc3339(int(time.time() * 1000)),
            "window": "1s",
            "containers": containers,
        }


@contextmanager
def told_metrics_server(plane: ControlPlane) -> Iterator[ToldMetricsServer]:
    """One that the API server of ``plane`` asks, until the end. Others are registered there (``front_proxy.register``)."""
    told = ToldMetricsServer(plane)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(told.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(plane.folder / "server.crt", plane.folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        serve_behind(plane, GROUP, VERSION, server.server_address[1], insecureSkipTLSVerify=True)
        eventually(lambda: is_available(plane, GROUP, VERSION))
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
