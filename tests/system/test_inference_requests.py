"""Inference services from their manifests to an answer.

One is asked while it sleeps, woken by that, and asleep again afterwards; others are the steps of graphs.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kube import Key, Manifest
from tidegate_cli.supervisor import endpoint

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
PORT = 18_473
"""Whatever listens on all addresses of the machine listens on the pods', too: not at this port."""
MODEL = """
import http.server, json, os
FACTOR, TERM = int(os.environ["FACTOR"]), int(os.environ["TERM"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = [number * FACTOR + TERM for number in given.get("instances", ())]
        body = json.dumps({"instances": found, "path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
http.server.ThreadingHTTPServer((os.environ["POD_IP"], PORT), Handler).serve_forever()
""".replace("PORT", str(PORT))
AUTOSCALING = {"autoscaling.knative.dev/window": "6s"}


def model(name: str, mode: str, least: int, factor: int = 1, term: int = 0) -> Manifest:
    """An inference service that answers each number with another one."""
    variables = [{"name": key, "value": str(value)} for key, value in (("FACTOR", factor), ("TERM", term))]
    container = {
        "name": "kserve-container",
        "image": "model",
        "command": ["python", "-c", MODEL],
        "ports": [{"containerPort": PORT}],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, *variables],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m"}},
    }
    annotations = {"serving.kserve.io/deploymentMode": mode, **(AUTOSCALING if mode == "Serverless" else {})}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": least, "containers": [container]}},
    }


def graph(name: str, kind: str, *steps: Manifest) -> Manifest:
    nodes = {"root": {"routerType": kind, "steps": list(steps)}}
    metadata = {"name": name, "namespace": "default"}
    api = "serving.kserve.io/v1alpha1"
    return {"apiVersion": api, "kind": "InferenceGraph", "metadata": metadata, "spec": {"nodes": nodes}}


def ask(requests: str, path: str, body: Manifest, host: str = "iris.default.example.com") -> tuple[int, Manifest]:
    """One request, by its host; it waits as long as the system lets it."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"http://{requests}{path}", data=data, headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_service_that_sleeps_is_woken_by_the_first_request_and_answers_it(system, tmp_path: Path) -> None:
    """Requests are held while it starts; none is lost; without any it has no pod."""
    system.apply(model("iris", "Serverless", 0, term=1))
    requests = endpoint.read(system.folder).requests

    def replicas() -> list[int]:
        return [one["spec"]["replicas"] for one in system.client.list("deployments", "default")]

    assert ask(requests, "/v2/health/ready", {})[0] == 200
    system.eventually(lambda: replicas() == [0] and not system.client.list("pods", "default"), 120)
    path, given = "/v1/models/iris:predict", {"instances": [2]}
    assert ask(requests, path, given) == (200, {"instances": [3], "path": path})
    assert ask(requests, path, given)[0] == 200
    samples = {one["metadata"]["name"] for one in system.client.list("metricreadings", "default")}
    assert {"iris.concurrency.gateway", "iris.rps.gateway"} <= samples


def test_graphs_lead_requests_to_services_by_the_gateway(system) -> None:
    """A sequence hands answers on, a switch asks whom the request means; services of both modes are found by their names."""
    more, twice = {"serviceName": "more"}, {"serviceName": "twice"}
    chain = graph("chain", "Sequence", more, {**twice, "data": "$response"})
    choice = graph("choice", "Switch", {**more, "condition": "more"}, {**twice, "condition": "twice"})
    services = model("more", "Standard", 1, term=1), model("twice", "Serverless", 1, factor=2)
    system.apply(*services, chain, choice)
    requests = endpoint.read(system.folder).requests

    def host(name: str) -> str:
        """The one that the graph's status names, once it is ready."""

        def found() -> str:
            told = (system.get("inferencegraphs", name) or {}).get("status") or {}
            is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in told.get("conditions", ()))
            return str(told["url"]).removeprefix("http://") if is_ready else ""

        return str(system.eventually(found))

    answered = {"instances": [8], "path": "/v1/models/twice:predict"}
    assert ask(requests, "/", {"instances": [3]}, host("chain")) == (200, answered)
    answered = {"instances": [4], "path": "/v1/models/more:predict"}
    assert ask(requests, "/", {"instances": [3], "more": True}, host("choice")) == (200, answered)
    answered = {"instances": [6], "path": "/v1/models/twice:predict"}
    assert ask(requests, "/", {"instances": [3], "twice": True}, "choice.default") == (200, answered)
    status, told = ask(requests, "/", {"instances": [3]}, "choice.default")
    assert (status, told["cause"]) == (404, "None of the routes matched with the switch condition")

    made = [Key("InferenceGraph.serving.kserve.io", "default", name) for name in ("chain", "choice")]
    made += [Key("InferenceService.serving.kserve.io", "default", name) for name in ("more", "twice")]
    system.patiently(lambda: system.client.delete(made))
    wanted = ("app in (isvc.chain, isvc.choice)", "serving.kserve.io/inferenceservice in (more, twice)")
    system.eventually(lambda: not any(system.all_of("pods", selector) for selector in wanted))
