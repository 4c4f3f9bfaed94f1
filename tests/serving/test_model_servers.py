"""InferenceServices on this machine, from the manifest to the answer of a real model server."""

import json
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from whole_system import RUNTIMES, SERVING_SECONDS, system_tools

from kube import Key, Manifest
from node_agent.program_list import default_folder
from resources import parse_milli

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
SMALL = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "2Gi"}}
ECHO = HERE / "models" / "double"


@pytest.fixture(scope="module")
def system(environment: Callable[[str], Path]) -> Iterator[Any]:
    """A system with KServe's runtimes, whose servers are installed."""
    for name in ("triton", "kserve", "storage"):
        environment(name)
    with tempfile.TemporaryDirectory(prefix="tidegate-") as folder:
        Path(folder).chmod(0o711)
        custom = Path(folder) / "length_model.py"
        custom.write_text((HERE / "length_model.py").read_text())
        programs = Path(folder) / "programs.yaml"
        words = ["{environment}/bin/python", "{servers}/own_address.py", str(custom)]
        own = {"name": "length", "images": ["registry.test/length"], "environment": "kserve", "entrypoint": words}
        programs.write_text(yaml.safe_dump({"programs": [{**own, "env": {"POD_IP": "{pod_ip}"}}]}))
        settings = (f"node_agent.environments={default_folder()}", f"node_agent.programs={programs}")
        made = system_tools().System(Path(folder) / "data", *(word for one in settings for word in ("--set", one)))
        made.folder.mkdir()
        made.start()
        made.apply(*RUNTIMES)
        yield made
        made.stop()


@pytest.fixture(scope="module")
def iris(environment: Callable[[str], Path]) -> Iterator[Path]:
    """A folder with a model of scikit-learn, readable for all, and what it says of two flowers."""
    with tempfile.TemporaryDirectory(prefix="tidegate-iris-") as folder:
        Path(folder).chmod(0o755)
        code = (
            "import joblib, sys; from sklearn.datasets import load_iris; from sklearn.svm import SVC; "
            "joblib.dump(SVC().fit(*load_iris(return_X_y=True)), sys.argv[1])"
        )
        python = environment("kserve") / "bin" / "python"
        subprocess.run([str(python), "-c", code, f"{folder}/model.joblib"], check=True)
        (Path(folder) / "model.joblib").chmod(0o644)
        yield Path(folder)


def inference_service(name: str, predictor: Manifest, mode: str = "Standard") -> Manifest:
    metadata = {"name": name, "namespace": "default", "annotations": {"serving.kserve.io/deploymentMode": mode}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": {"predictor": predictor},
    }


def ready_pod(system: Any, name: str) -> Manifest:
    """The pod that serves it, once it is ready."""

    def found() -> Manifest | None:
        for pod in system.all_of("pods", f"serving.kserve.io/inferenceservice={name}"):
            told = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions", ())}
            if told.get("Ready") == "True":
                return dict(pod)
        return None

    return dict(system.eventually(found, SERVING_SECONDS))


def end(system: Any, name: str) -> None:
    """Delete it, and wait until its pods are gone: nothing of a server may be left in shared memory."""
    key = Key("InferenceService.serving.kserve.io", "default", name)
    system.patiently(lambda: system.client.delete([key]))
    system.eventually(lambda: not system.all_of("pods", f"serving.kserve.io/inferenceservice={name}"), SERVING_SECONDS)
    assert list(Path("/dev/shm").glob("triton-*")) == []


def address_of(pod: Manifest) -> str:
    return str(pod["status"]["podIP"])


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        said = answer.read()
        return json.loads(said) if said else answer.status


def ask_by_grpc(environment: Callable[[str], Path], address: str, *words: str) -> Any:
    """With Triton's own client, in its environment."""
    command = [str(environment("triton") / "bin" / "python"), str(HERE / "open_inference_client.py"), address, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_manifest_of_the_manual_serves_a_model_from_a_bucket(
    system: Any, s3: Any, environment: Callable[[str], Path]
) -> None:
    """Triton, by `predictor.triton` with a repository of S3, the credentials in a Secret of its ServiceAccount."""
    s3.put("repository")
    for file in (one for one in ECHO.rglob("*") if one.is_file()):
        s3.put(f"repository/triton/double/{file.relative_to(ECHO)}", file.read_bytes())
    told = {"serving.kserve.io/s3-endpoint": f"127.0.0.1:{s3.port}", "serving.kserve.io/s3-usehttps": "0"}
    keys = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret"}
    metadata = {"name": "models", "namespace": "default"}
    system.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "annotations": told}, "stringData": keys},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": [{"name": "models"}]},
    )
    triton = {"modelRepository": "s3://repository/triton", "runtimeVersion": "24.10-py3", "resources": SMALL}
    system.apply(inference_service("manual", {"serviceAccountName": "models", "triton": triton}))
    pod = ready_pod(system, "manual")
    url = f"http://{address_of(pod)}:8080"
    assert ask(f"{url}/v2/health/ready") == 200
    given = {"name": "INPUT0", "shape": [1, 3], "datatype": "FP32", "data": [1.0, 2.5, -4.0]}
    answer = ask(f"{url}/v2/models/double/infer", {"inputs": [given]})
    assert answer["outputs"][0]["data"] == [2.0, 5.0, -8.0]
    by_grpc = ask_by_grpc(environment, f"{address_of(pod)}:9000", "double", "INPUT0", "[1, 2]", "[1.5, 3]")
    assert by_grpc == {"ready": True, "output": [[3.0, 6.0]]}
    assert 'nv_inference_request_success{model="double",version="1"} 2' in metrics(address_of(pod))
    conditions = {one["type"]: one.get("message", "") for one in pod["status"]["conditions"]}
    assert (
        "program triton of this machine runs in place of nvcr.io/nvidia/tritonserver:24.10-py3"
        in (conditions["tidegate.dev/ImagesInForce"])
    )
    end(system, "manual")


def metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}:8002/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def test_two_replicas_of_one_model_listen_on_the_same_ports(
    system: Any, iris: Path, environment: Callable[[str], Path]
) -> None:
    """scikit-learn on KServe's server: both protocols, REST and gRPC, each pod at its own address."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"file://{iris}", "resources": SMALL}
    predictor = {"minReplicas": 2, "model": model}
    system.apply(inference_service("iris", predictor))

    def ready() -> list[Manifest]:
        pods = system.all_of("pods", "serving.kserve.io/inferenceservice=iris")
        found = [
            pod for pod in pods
            if any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", ()))
        ]  # fmt: skip
        return found if len(found) == 2 else []

    pods = system.eventually(ready, SERVING_SECONDS)
    assert len({address_of(pod) for pod in pods}) == 2
    flowers = [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]
    for pod in pods:
        url = f"http://{address_of(pod)}:8080"
        assert ask(f"{url}/v1/models/iris:predict", {"instances": flowers}) == {"predictions": [1, 0]}
        given = {"name": "x", "shape": [2, 4], "datatype": "FP32", "data": flowers}
        assert ask(f"{url}/v2/models/iris/infer", {"inputs": [given]})["outputs"][0]["data"] == [1, 0]
    said = ask_by_grpc(environment, f"{address_of(pods[0])}:8081", "iris", "x", "[2, 4]", json.dumps(flowers))
    assert said == {"ready": True, "output": [1, 0]}
    end(system, "iris")


def test_a_model_that_cannot_be_fetched_says_why(system: Any) -> None:
    model = {"modelFormat": {"name": "triton"}, "protocolVersion": "v2", "storageUri": "gs://b/m", "resources": SMALL}
    predictor = {"model": model}
    system.apply(inference_service("nowhere", predictor))

    def reason() -> str:
        for pod in system.all_of("pods", "serving.kserve.io/inferenceservice=nowhere"):
            for one in pod.get("status", {}).get("initContainerStatuses", ()):
                ended = {**one.get("lastState", {}), **one["state"]}.get("terminated", {})
                if ended.get("message"):
                    return str(ended["message"])
        return ""

    said = system.eventually(reason, SERVING_SECONDS)
    assert "its interoperability endpoint speaks S3" in said
    end(system, "nowhere")


def test_a_model_of_ones_own_runs_by_a_line_in_a_file_of_programs(system: Any) -> None:
    probe = {"httpGet": {"path": "/v2/health/ready", "port": 8080}, "periodSeconds": 1}
    container = {
        "name": "kserve-container",
        "image": "registry.test/length:7",
        "readinessProbe": probe,
        "resources": SMALL,
    }
    system.apply(inference_service("length", {"containers": [container]}))
    url = f"http://{address_of(ready_pod(system, 'length'))}:8080"
    assert ask(f"{url}/v1/models/length:predict", {"instances": ["a", "four"]}) == {"predictions": [1, 4]}
    end(system, "length")


def test_an_agent_batches_and_tells_before_a_real_server(system: Any, iris: Path, heard: Any) -> None:
    """Two who ask at the same time are answered by one prediction, and somebody hears of it."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"file://{iris}", "resources": SMALL}
    agent = {"batcher": {"maxBatchSize": 2, "maxLatency": 60_000}, "logger": {"url": heard.url, "mode": "all"}}
    system.apply(inference_service("batched", {"model": model, **agent}))
    url = f"http://{address_of(ready_pod(system, 'batched'))}:9081/v1/models/batched:predict"
    flowers = [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda flower: ask(url, {"instances": [flower]}), flowers))
    assert [one["predictions"] for one in answers] == [[1], [0]]
    assert len({one["batchId"] for one in answers}) == 1
    system.eventually(lambda: len(heard.events) == 2)
    kinds = [headers["ce-type"].rpartition(".")[2] for headers, _ in heard.events]
    assert kinds == ["request", "response"]
    assert len(json.loads(heard.events[0][1])["instances"]) == 2
    assert heard.events[0][0]["ce-inferenceservicename"] == "batched"
    end(system, "batched")


def pods_metric(name: str, target: str) -> Manifest:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": target}},
    }


def test_an_autoscaler_goes_by_what_triton_tells_of_itself(system: Any) -> None:
    """Its pods are asked for what the autoscaler names: a gauge as it is, and what is made of counters once there is load."""
    triton = {"storageUri": f"file://{ECHO.parent}", "resources": SMALL}
    service = inference_service("busy", {"triton": triton})
    service["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] = "external"
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy-predictor"}
    wanted = [
        pods_metric("nv_inference_pending_request_count", "5"),
        pods_metric("nv_inference_service_rate", "1000000"),
    ]
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "busy", "namespace": "default"},
        "spec": {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 1, "metrics": wanted},
    }
    system.apply(service, autoscaler)
    pod = ready_pod(system, "busy")
    url = f"http://{address_of(pod)}:8080/v2/models/double/infer"
    given = {"inputs": [{"name": "INPUT0", "shape": [1, 1], "datatype": "FP32", "data": [1.0]}]}

    def sampled() -> list[Manifest]:
        """What the autoscaler wants; the gateway tells other things."""
        specs = [one["spec"] for one in system.all_of("metricreadings")]
        return [one for one in specs if one["metric"]["name"].startswith("nv_")]

    def known() -> dict[str, str]:
        for _ in range(20):
            ask(url, given)
        return {one["metric"]["name"]: one["value"] for one in sampled() if "value" in one}

    found = system.eventually(lambda: told if len(told := known()) == 2 else None, SERVING_SECONDS)
    assert found["nv_inference_pending_request_count"] in ("0", "1"), "they are asked one at a time"
    assert parse_milli(found["nv_inference_service_rate"]) > 1000
    system.patiently(lambda: system.client.delete([Key("HorizontalPodAutoscaler.autoscaling", "default", "busy")]))
    system.eventually(lambda: not sampled(), SERVING_SECONDS)
    end(system, "busy")
