"""Inference services from their manifests to an answer.

One is asked while it sleeps, woken by that, and asleep again afterwards; others are the steps of graphs.
"""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.bench.serving.client import Client
from tests.bench.serving.steady_load import SteadyLoad

from kube import Key, Manifest
from tidegate_cli.supervisor import endpoint

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
PORT = 18_473
"""Whatever listens on all addresses of the machine listens on the pods', too: not at this port."""
MODEL = """
import http.server, json, os, time
FACTOR, TERM = int(os.environ["FACTOR"]), int(os.environ["TERM"])
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, timeout = "HTTP/1.1", 2
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(given.get("seconds", 0))
        found = [number * FACTOR + TERM for number in given.get("instances", ())]
        body = json.dumps({"instances": found, "path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
http.server.ThreadingHTTPServer((os.environ["POD_IP"], PORT), Handler).serve_forever()
""".replace("PORT", str(PORT))
ROOT = os.getuid() == 0
"""Only root may listen at port 80, where pods ask a service by its name."""
BUSY = b'{"instances": [1], "seconds": 0.1}'
STALL_SECONDS = 2.5
"""Less than a replica serves on after it is told to go."""
AUTOSCALING = {"autoscaling.knative.dev/window": "6s"}


def model(name: str, mode: str, least: int, factor: int = 1, term: int = 0, **predictor: Any) -> Manifest:
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
        "spec": {"predictor": {"minReplicas": least, "containers": [container], **predictor}},
    }


def asking(name: str, url: str, body: Manifest) -> Manifest:
    """A pod that asks once, and has failed unless it is answered."""
    words = f"import urllib.request as r; r.urlopen({url!r}, {json.dumps(body).encode()!r}, 120).read()"
    container = {"name": "main", "image": "client", "command": ["python", "-c", words]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def graph(name: str, kind: str, *steps: Manifest) -> Manifest:
    nodes = {"root": {"routerType": kind, "steps": list(steps)}}
    metadata = {"name": name, "namespace": "default"}
    api = "serving.kserve.io/v1alpha1"
    return {"apiVersion": api, "kind": "InferenceGraph", "metadata": metadata, "spec": {"nodes": nodes}}


@contextmanager
def stalled(pid: int, seconds: float) -> Iterator[None]:
    """The process stands still from the beginning of what is done here, for so long."""
    until = time.monotonic() + seconds
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
        time.sleep(max(0.0, until - time.monotonic()))
    finally:
        os.kill(pid, signal.SIGCONT)


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
    """Requests are held while it starts, those of pods by its name, too; none is lost; without any it has no pod."""
    system.apply(model("iris", "Serverless", 0, term=1))
    requests = endpoint.read(system.folder).requests

    def replicas() -> list[int]:
        return [one["spec"]["replicas"] for one in system.client.list("deployments", "default")]

    assert ask(requests, "/v2/health/ready", {})[0] == 200
    system.eventually(lambda: replicas() == [0] and not system.client.list("pods", "default"), 120)
    path, given = "/v1/models/iris:predict", {"instances": [2]}
    system.apply(asking("by-name", "http://iris.default.svc.cluster.local" + path, given))
    assert ask(requests, path, given) == (200, {"instances": [3], "path": path})
    assert ask(requests, path, given)[0] == 200
    system.eventually(
        lambda: system.get("pod", "by-name")["status"].get("phase") == ("Succeeded" if ROOT else "Failed")
    )
    samples = {one["metadata"]["name"] for one in system.client.list("metricreadings", "default")}
    assert {"iris.concurrency.gateway", "iris.rps.gateway"} <= samples


def test_no_request_is_lost_while_replicas_come_and_go(system) -> None:
    """A server that ends at once when it is told to, whatever it is at; sizes and revisions change under a load on kept connections.

    Also while those who tell the proxy are slow, as on a machine that has too much to do.
    """

    def serving() -> list[int]:
        """Of the revisions that have pods, how many serve."""
        found = system.all_of("deployments", "serving.kserve.io/inferenceservice=busy")
        return [int(one["status"].get("readyReplicas") or 0) for one in found if one["spec"]["replicas"]]

    def resize(count: int, term: int) -> None:
        system.apply(model("busy", "Serverless", count, term=term, maxReplicas=count))
        system.eventually(lambda: serving() == [count])

    resize(1, term=0)
    client = Client(
        endpoint.read(system.folder).requests,
        "busy.default.example.com",
        "/v1/models/busy:predict",
        BUSY,
    )
    with SteadyLoad(client, 40) as asked:
        for count, term in ((3, 0), (2, 1), (1, 1), (3, 2)):
            resize(count, term)
        with stalled(system.pid("inference_gateway"), seconds=STALL_SECONDS):
            resize(1, 2)
        resize(2, 3)
        resize(1, 3)
        system.eventually(lambda: len(system.all_of("pods", "serving.kserve.io/inferenceservice=busy")) == 1)
    assert asked.lost == []
    assert len(asked.answers) > 200
    system.patiently(lambda: system.client.delete([Key("InferenceService.serving.kserve.io", "default", "busy")]))


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
