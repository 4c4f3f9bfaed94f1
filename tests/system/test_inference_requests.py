"""An inference service from its manifest to an answer: asked while it sleeps, woken by that, and asleep again afterwards."""

import json
import urllib.request
from pathlib import Path

import pytest

from tidegate_cli.supervisor import endpoint

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
PORT = 18_473
"""Whatever listens on all addresses of the machine listens on the pods', too: not at this port."""
MODEL = """
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps({"predictions": [1], "path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
http.server.ThreadingHTTPServer((os.environ["POD_IP"], PORT), Handler).serve_forever()
""".replace("PORT", str(PORT))
SERVICE = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {
        "name": "iris",
        "namespace": "default",
        "annotations": {
            "serving.kserve.io/deploymentMode": "Serverless",
            "autoscaling.knative.dev/window": "6s",
        },
    },
    "spec": {
        "predictor": {
            "minReplicas": 0,
            "containers": [
                {
                    "name": "kserve-container",
                    "image": "model",
                    "command": ["python", "-c", MODEL],
                    "ports": [{"containerPort": PORT}],
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                    "resources": {"requests": {"cpu": "50m"}},
                }
            ],
        }
    },
}


def ask(requests: str, path: str) -> tuple[int, dict[str, object]]:
    """One request to the service ``iris``, by its host; it waits as long as the system lets it."""
    request = urllib.request.Request(
        f"http://{requests}{path}", data=b"{}", headers={"Host": "iris.default.example.com"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.status, json.loads(answer.read())


def test_a_service_that_sleeps_is_woken_by_the_first_request_and_answers_it(system, tmp_path: Path) -> None:
    """Requests are held while it starts; none is lost; without any it has no pod."""
    system.client.apply([SERVICE])
    requests = endpoint.read(system.folder).requests

    def replicas() -> list[int]:
        return [one["spec"]["replicas"] for one in system.client.list("deployments", "default")]

    assert ask(requests, "/v2/health/ready")[0] == 200
    system.eventually(lambda: replicas() == [0] and not system.client.list("pods", "default"), 120)
    assert ask(requests, "/v1/models/iris:predict") == (200, {"predictions": [1], "path": "/v1/models/iris:predict"})
    assert ask(requests, "/v1/models/iris:predict")[0] == 200
    samples = {one["metadata"]["name"] for one in system.client.list("metricreadings", "default")}
    assert {"iris.concurrency.gateway", "iris.rps.gateway"} <= samples
