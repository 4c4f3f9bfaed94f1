"""Triton behind the gateway while something breaks: no request is lost, no size flaps, and who does not serve is not asked."""

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bench.serving.client import Client
from tests.bench.serving.steady_load import SteadyLoad
from whole_system import EXAMPLES, RUNTIMES, SERVING_SECONDS, system_tools

from kube import Key, Manifest
from node_agent.program_list import default_folder

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
BODY = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.0]}]}).encode()
HOST, PATH = "{}.default.example.com", "/v2/models/pause/infer"
WINDOW_SECONDS = 12.0
OF = "serving.kserve.io/inferenceservice={}"
REST_SECONDS, LOOK_SECONDS = 75.0, 20.0
"""How long a source that fails may rest, and how long it takes an autoscaler at most to look again."""


@pytest.fixture(scope="module")
def models(environment: Callable[[str], Path]) -> Iterator[Path]:
    """A folder of repositories: ``good``, ``broken`` whose model cannot be loaded, ``stuck`` whose model is never there."""
    environment("triton")
    with tempfile.TemporaryDirectory(prefix="tidegate-faults-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for repository in ("good", "broken", "stuck"):
            shutil.copytree(EXAMPLES / "models", folder / repository)
        model = "import time\n\n\nclass TritonPythonModel:\n    def initialize(self, args):\n        {}\n"
        (folder / "broken" / "pause" / "1" / "model.py").write_text(model.format("raise ValueError('no weights')"))
        (folder / "stuck" / "pause" / "1" / "model.py").write_text(model.format("time.sleep(3600)"))
        yield folder


@pytest.fixture(scope="module")
def system(models: Path) -> Iterator[Any]:
    settings = (f"node_agent.environments={default_folder()}",)
    with system_tools().running(*(word for one in settings for word in ("--set", one))) as made:
        made.apply(*RUNTIMES)
        yield made


@pytest.fixture
def service(system: Any, models: Path) -> Iterator[Callable[..., Manifest]]:
    """The example with other words, applied; one replica of it serves."""

    def made(repository: str = "good", minimum: int = 1, **annotations: str) -> Manifest:
        (found,) = yaml.safe_load_all((EXAMPLES / "triton.yaml").read_text())
        found["spec"]["predictor"]["minReplicas"] = minimum
        found["spec"]["predictor"]["model"]["storageUri"] = f"file://{models / repository}"
        found["metadata"]["annotations"] |= annotations
        return dict(found)

    system.apply(made())
    system.eventually(lambda: ready(system), SERVING_SECONDS)
    yield made
    key = Key("InferenceService.serving.kserve.io", "default", "pause")
    system.patiently(lambda: system.client.delete([key]))
    system.eventually(lambda: not system.all_of("pods", OF.format("pause")), SERVING_SECONDS)


@pytest.fixture
def source() -> Iterator["Source"]:
    made = Source()
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class Source(ThreadingHTTPServer):
    """A Prometheus that answers each query with what it ``says``, and counts the queries."""

    def __init__(self) -> None:
        self.says, self.queries = "1", 0
        super().__init__(("127.0.0.1", 0), _Answering)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answering(BaseHTTPRequestHandler):
    server: Source

    def do_GET(self) -> None:
        self.server.queries += 1
        series = {"metric": {}, "value": [time.time(), self.server.says]}
        told = {"status": "success", "data": {"resultType": "vector", "result": [series]}}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


def load(system: Any, rate: float, name: str = "pause") -> SteadyLoad:
    address = json.loads((system.folder / "endpoint.json").read_text())["requests"]
    return SteadyLoad(Client(address, HOST.format(name), PATH, BODY), rate)


def deployments(system: Any, name: str) -> list[Manifest]:
    return list(system.all_of("deployments", OF.format(name)))


def wanted(system: Any) -> dict[str, int]:
    """The size of each revision."""
    return {
        one["metadata"]["labels"]["serving.knative.dev/revision"]: int(one["spec"].get("replicas", 1))
        for one in deployments(system, "pause")
    }


def size(system: Any, name: str = "pause") -> int:
    return sum(int(one["spec"].get("replicas", 1)) for one in deployments(system, name))


def ready(system: Any, name: str = "pause") -> int:
    return sum(int(one.get("status", {}).get("readyReplicas") or 0) for one in deployments(system, name))


def traffic(system: Any) -> dict[str, int]:
    """Percent of the requests by revision."""
    status = system.get("inferenceservice", "pause")["status"]
    return {one["revisionName"]: one["percent"] for one in status["components"]["predictor"].get("traffic", ())}


def sizes_for(system: Any, seconds: float, name: str = "pause") -> list[int]:
    """The sizes that were seen in that time, each once in a row."""
    found, until = [size(system, name)], time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.25)
        if (now := size(system, name)) != found[-1]:
            found.append(now)
    return found


def test_an_autoscaler_killed_in_a_scale_up_goes_on_with_it(system: Any, service: Callable[..., Manifest]) -> None:
    with load(system, 60) as asked:
        system.eventually(lambda: size(system) > 1)
        system.kill("inference_autoscaler")
        sizes = sizes_for(system, WINDOW_SECONDS)
        system.eventually(lambda: ready(system) >= 3)
    assert sizes == sorted(sizes), f"it went down under load: {sizes}"
    assert asked.lost == []


def test_no_news_of_the_load_is_not_no_load(system: Any, service: Callable[..., Manifest]) -> None:
    """The source of the samples stands still for longer than a window; the proxy goes on, and so do all replicas."""
    with load(system, 50) as asked:
        system.eventually(lambda: ready(system) >= 2)
        source = system.pid("inference_gateway")
        before = size(system)
        os.kill(source, signal.SIGSTOP)
        try:
            sizes = sizes_for(system, 1.5 * WINDOW_SECONDS)
        finally:
            os.kill(source, signal.SIGCONT)
        after = sizes_for(system, 5)
    assert min(sizes + after) >= min(before, 2), f"from {before} it went to {sizes}, then {after}"
    assert asked.lost == []


def test_a_source_that_answers_with_no_number_changes_no_size(system: Any, models: Path, source: Source) -> None:
    """NaN and infinities are neither nothing nor much: under load the size stays, and the next number is heeded."""
    (fed,) = yaml.safe_load_all((EXAMPLES / "triton.yaml").read_text())
    modes = {"serving.kserve.io/deploymentMode": "RawDeployment", "serving.kserve.io/autoscalerClass": "keda"}
    fed["metadata"] = {"name": "fed", "annotations": modes}
    metric = {"backend": "prometheus", "serverAddress": source.url, "query": "pending"}
    external = {"metric": metric, "target": {"type": "AverageValue", "value": "1"}}
    predictor = fed["spec"]["predictor"] | {"minReplicas": 1, "maxReplicas": 3}
    predictor["autoScaling"] = {"metrics": [{"type": "External", "external": external}]}
    del predictor["containerConcurrency"]
    predictor["model"]["storageUri"] = f"file://{models / 'good'}"
    fed["spec"]["predictor"] = predictor
    source.says = "2"
    system.apply(fed)
    system.eventually(lambda: ready(system, "fed") == 2, SERVING_SECONDS)
    with load(system, 15, "fed") as asked:
        sizes = {2}
        for nonsense in ("NaN", "+Inf"):
            source.says, before, until = nonsense, source.queries, time.monotonic() + REST_SECONDS
            while source.queries == before and time.monotonic() < until:
                sizes |= {*sizes_for(system, 1, "fed")}
            assert source.queries > before, "it was not asked"
        sizes |= {*sizes_for(system, LOOK_SECONDS, "fed")}
        assert sizes == {2}
        source.says = "3"
        system.eventually(lambda: ready(system, "fed") == 3, SERVING_SECONDS)
    assert asked.lost == []
    key = Key("InferenceService.serving.kserve.io", "default", "fed")
    system.patiently(lambda: system.client.delete([key]))
    system.eventually(lambda: not system.all_of("pods", OF.format("fed")), SERVING_SECONDS)


@pytest.mark.parametrize("repository", ["broken", "stuck"])
def test_a_revision_that_never_serves_is_never_asked(
    system: Any, service: Callable[..., Manifest], repository: str
) -> None:
    """One that crashes as it starts, and one whose model never loads; the one before goes on meanwhile, and is scaled."""
    (before,) = traffic(system)
    with load(system, 30) as asked:
        system.apply(service(repository))
        system.eventually(lambda: len(wanted(system)) == 2)
        seen = []
        until = time.monotonic() + WINDOW_SECONDS
        while time.monotonic() < until:
            seen.append(traffic(system))
            time.sleep(0.5)
    assert all(one == {before: 100} for one in seen), seen
    assert asked.lost == []
    system.apply(service())
    system.eventually(lambda: len([one for one, pods in wanted(system).items() if pods]) == 1, SERVING_SECONDS)


def test_a_rollout_under_load_loses_nothing(system: Any, service: Callable[..., Manifest]) -> None:
    (before,) = traffic(system)
    with load(system, 40) as asked:
        system.eventually(lambda: ready(system) >= 2)
        changed = service()
        changed["spec"]["predictor"]["model"]["env"] = [{"name": "EDITION", "value": "2"}]
        system.apply(changed)
        system.eventually(lambda: before not in traffic(system), SERVING_SECONDS)
        system.eventually(lambda: not wanted(system).get(before), SERVING_SECONDS)
        gone = time.monotonic() + 3
        system.eventually(lambda: time.monotonic() > gone)
    assert asked.lost == []
