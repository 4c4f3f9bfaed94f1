"""InferenceServices on a real node: a kubelet runs KServe's Python server, which is asked at its pods' own addresses by the gateway."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from lab_programs import NoLab
from node_configuration import NODE
from real_node import RealNode
from real_pods import EXAMPLES, apply, is_ready, log_of, pods
from serving_images import environment, serving_archive
from tests.bench.serving.client import Client
from tests.bench.serving.steady_load import SteadyLoad

from bus.server import free_port
from tidegate_cli.supervisor import endpoint

pytestmark = pytest.mark.timeout(300)
SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
RUNTIMES = "/apis/serving.kserve.io/v1alpha1/clusterservingruntimes"
OF_IRIS = "serving.kserve.io/inferenceservice=iris"
FLOWERS = [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]
"""The second kind of iris, and the first; the fitted model says so, the other one calls each of them the third."""
FITTED, CONSTANT = [1, 0], [2, 2]
_MODELS = """
import joblib, pathlib, sys
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC
flowers = load_iris(return_X_y=True)
for name, model in (("fitted", SVC()), ("constant", DummyClassifier(strategy="constant", constant=2))):
    folder = pathlib.Path(sys.argv[1], name)
    folder.mkdir()
    joblib.dump(model.fit(*flowers), folder / "model.joblib")
"""
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models of scikit-learn, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("models")
    try:
        python = environment("kserve") / "bin" / "python"
    except NoLab as error:
        pytest.skip(str(error))
    subprocess.run([str(python), "-c", _MODELS, str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def store(node: RealNode, models: Path) -> Iterator[str]:
    """The address by which pods fetch them, over HTTP."""
    port = free_port()
    command = [*node.inside, sys.executable, "-m", "http.server", str(port), "--bind", node.place.address]
    with subprocess.Popen([*command, "--directory", str(models)], stderr=subprocess.DEVNULL) as process:
        yield f"http://{node.place.address}:{port}"
        process.kill()


@pytest.fixture(scope="module")
def system(node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The node with the images, KServe's runtime for scikit-learn, and all services of Tidegate beside it; the data folder."""
    folder = tmp_path_factory.mktemp("serving")
    try:
        archive = serving_archive(folder)
    except NoLab as error:
        pytest.skip(str(error))
    node.load(archive)
    archive.unlink()
    listed = yaml.safe_load_all((EXAMPLES / "serving/runtimes.yaml").read_text())
    runtime = next(one for one in listed if one["metadata"]["name"] == "kserve-sklearnserver")
    settings = [
        f"inference_gateway.gateway_host={node.place.address}",
        'inference_autoscaler.knative={"scale-to-zero-grace-period": "5s"}',
    ]
    with running_system(node.plane, folder, node.inside, settings=settings) as data:
        apply(node.plane, runtime)
        yield data
        node.plane.request("DELETE", f"{RUNTIMES}/kserve-sklearnserver")


@pytest.fixture(scope="module")
def requests(node: RealNode, system: Path) -> str:
    """Where inference services are asked."""
    found = endpoint.read(system)
    assert found is not None
    return f"{node.place.address}:{found.requests.rpartition(':')[2]}"


def service(name: str, uri: str, **predictor: Any) -> Manifest:
    """One that is sized by its requests a second, averaged over six of them."""
    annotations = {
        "serving.kserve.io/deploymentMode": "Serverless",
        "autoscaling.knative.dev/window": "6s",
        "autoscaling.knative.dev/panic-window-percentage": "50",
    }
    resources = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri, "resources": resources}
    size = {"minReplicas": 0, "maxReplicas": 2, "scaleMetric": "rps", "scaleTarget": 5}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"predictor": {**size, "model": model, **predictor}},
    }


@pytest.fixture(scope="module")
def iris(node: RealNode, store: str, requests: str) -> Iterator[Callable[..., None]]:
    """The service ``iris``, applied, which can be applied with other words; at the end nothing is left of it."""

    def applied(model: str = "fitted", **predictor: Any) -> None:
        apply(node.plane, service("iris", f"{store}/{model}/model.joblib", **predictor))

    applied()
    yield applied
    node.plane.request("DELETE", f"{SERVICES}/iris")
    eventually(lambda: not pods(node.plane, OF_IRIS) and not sizes(node.plane))


def ask(requests: str, path: str, body: Manifest, host: str = "iris.default.example.com") -> Manifest:
    """One request, by its host; it waits as long as the gateway lets it. Raises HTTPError."""
    headers = {"Host": host, "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{requests}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as answer:
        found: Manifest = json.loads(answer.read())
    return found


def predicted(requests: str) -> list[int]:
    """What the service says of the flowers, by protocol v1."""
    answer = ask(requests, "/v1/models/iris:predict", {"instances": FLOWERS})
    return list(answer["predictions"])


def sizes(plane: ControlPlane) -> dict[str, int]:
    """How many pods each revision is to have."""
    listed = plane.request("GET", f"{DEPLOYMENTS}?labelSelector={OF_IRIS.replace('=', '%3D')}")["items"]
    return {one["metadata"]["name"].removesuffix("-deployment"): int(one["spec"]["replicas"]) for one in listed}


def serving(plane: ControlPlane, revision: str = "iris-predictor-00001") -> list[Any]:
    return [pod for pod in pods(plane, f"app=isvc.{revision}") if is_ready(pod)]


def status_once(plane: ControlPlane, name: str, holds: Callable[[Manifest], bool]) -> Manifest:
    """The status of a service once it is so."""

    def found() -> Manifest | None:
        status: Manifest = plane.request("GET", f"{SERVICES}/{name}").get("status") or {}
        return status if holds(status) else None

    return dict(eventually(found))


def shares(status: Manifest) -> dict[str, int]:
    """The percentage of each revision."""
    told = ((status.get("components") or {}).get("predictor") or {}).get("traffic") or ()
    return {one["revisionName"]: one["percent"] for one in told}


def is_true(status: Manifest, *conditions: str) -> bool:
    told = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return all(told.get(one) == "True" for one in conditions)


@pytest.mark.usefixtures("iris")
def test_a_model_is_fetched_served_and_asked_by_both_protocols(node: RealNode, requests: str) -> None:
    """By KServe's runtime as it is: its image, user, arguments and probe; the service says where it is asked."""
    status = status_once(node.plane, "iris", lambda status: is_true(status, "Ready", "PredictorReady", "IngressReady"))

    assert status["url"] == "http://iris.default.example.com"
    assert status["clusterServingRuntimeName"] == "kserve-sklearnserver"
    assert status["components"]["predictor"]["latestReadyRevision"] == "iris-predictor-00001"
    assert status["modelStatus"]["states"] == {"activeModelState": "Loaded", "targetModelState": "Loaded"}
    (pod,) = serving(node.plane)
    assert (pod["spec"]["nodeName"], pod["spec"]["schedulerName"]) == (NODE, "tidegate")
    assert pod["status"]["podIP"].startswith(f"10.214.{node.place.number}.")
    (fetched,) = pod["status"]["initContainerStatuses"]
    assert fetched["name"] == "storage-initializer" and fetched["state"]["terminated"]["exitCode"] == 0

    assert predicted(requests) == FITTED
    given = {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": FLOWERS}
    assert ask(requests, "/v2/models/iris/infer", {"inputs": [given]})["outputs"][0]["data"] == FITTED
    assert "POST /v1/models/iris" in log_of(node.plane, pod["metadata"]["name"])


@pytest.mark.usefixtures("iris")
def test_without_requests_it_has_no_pod_and_those_that_come_wait_for_one(node: RealNode, requests: str) -> None:
    eventually(lambda: not pods(node.plane, OF_IRIS))
    assert sizes(node.plane) == {"iris-predictor-00001": 0}
    assert is_true(node.plane.request("GET", f"{SERVICES}/iris")["status"], "Ready")

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(predicted, [requests] * 4))

    assert answers == [FITTED] * 4
    assert serving(node.plane)


@pytest.mark.usefixtures("iris")
def test_it_has_two_pods_under_load_none_afterwards_and_loses_no_request(node: RealNode, requests: str) -> None:
    body = json.dumps({"instances": FLOWERS}).encode()
    client = Client(requests, "iris.default.example.com", "/v1/models/iris:predict", body)
    with SteadyLoad(client, 12) as load:
        both = eventually(lambda: found if len(found := serving(node.plane)) == 2 else None)
        names = [pod["metadata"]["name"] for pod in both]
        eventually(lambda: all("POST /v1/models/iris" in log_of(node.plane, name) for name in names))

    assert load.lost == []
    assert len({pod["status"]["podIP"] for pod in both}) == 2
    eventually(lambda: not pods(node.plane, OF_IRIS))


def test_a_quarter_of_the_requests_is_another_model_s_as_its_canary_is_told(
    node: RealNode, requests: str, iris: Callable[..., None]
) -> None:
    """And afterwards, when all of them are. Both have a pod at least: one that sleeps gets nothing while another serves."""
    revisions = "iris-predictor-00001", "iris-predictor-00002"
    iris(minReplicas=1, maxReplicas=1)
    eventually(lambda: serving(node.plane, revisions[0]))
    status_once(node.plane, "iris", lambda status: shares(status) == {revisions[0]: 100})
    iris("constant", canaryTrafficPercent=25, minReplicas=1, maxReplicas=1)
    status_once(node.plane, "iris", lambda status: shares(status) == dict(zip(revisions, (75, 25), strict=True)))
    eventually(lambda: predicted(requests) == CONSTANT)  # the gateway knows by now

    answers = [predicted(requests) for _ in range(100)]

    assert (answers.count(CONSTANT), answers.count(FITTED)) == (25, 75)
    iris("constant", minReplicas=1, maxReplicas=1)
    eventually(lambda: [predicted(requests) for _ in range(8)] == [CONSTANT] * 8)
    eventually(lambda: not serving(node.plane, revisions[0]))


def test_a_model_that_is_not_there_is_told_with_the_word_of_who_fetches(
    node: RealNode, store: str, system: Path
) -> None:
    apply(node.plane, service("nowhere", f"{store}/nowhere/model.joblib"))

    status = status_once(
        node.plane, "nowhere", lambda status: bool((status.get("modelStatus") or {}).get("lastFailureInfo"))
    )

    told = status["modelStatus"]
    assert told["states"]["targetModelState"] == "FailedToLoad"
    assert "nowhere/model.joblib: HTTP 404" in told["lastFailureInfo"]["message"]
    assert not is_true(status, "Ready")
    node.plane.request("DELETE", f"{SERVICES}/nowhere")
    eventually(lambda: not pods(node.plane, "serving.kserve.io/inferenceservice=nowhere"))
