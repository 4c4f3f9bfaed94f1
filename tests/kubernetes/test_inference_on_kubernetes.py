"""InferenceServices on a Kubernetes cluster: Deployments, Services and an HTTPRoute of the cluster's own, sized by what is handed in."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from applied import apply, delete, get, has, reaches, run
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from gang_runs import all_decided, child
from gateway_api import ROUTES, define_routes, is_there

from kube import rfc3339

SERVING = "serving.kserve.io"
SERVICES = f"/apis/{SERVING}/v1beta1/namespaces/default/inferenceservices"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
ROUTING = {"by": "HTTPRoute", "gateway": "infra/edge", "domain": "models.test"}


@pytest.fixture(scope="module", autouse=True)
def system(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All services, on a cluster that has the kind HTTPRoute."""
    define_routes(plane)
    settings = [f"inference_autoscaler.routes={json.dumps(ROUTING)}"]
    with running_system(plane, tmp_path_factory.mktemp("system"), settings=settings) as folder:
        yield folder


def service(name: str, image: str = "model:1", mode: str = "Serverless", **predictor: Any) -> dict[str, Any]:
    annotations = {
        f"{SERVING}/deploymentMode": mode,
        "autoscaling.knative.dev/target-utilization-percentage": "100",
    }
    container = {"name": "kserve-container", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": f"{SERVING}/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"predictor": {"containers": [container], **predictor}},
    }


def reading(name: str, metric: str, value: str) -> dict[str, Any]:
    """A sample of the service ``name``, taken now."""
    described = {"apiVersion": f"{SERVING}/v1beta1", "kind": "InferenceService", "name": name}
    spec = {"describedObject": described, "metric": {"name": metric}, "value": value}
    return {
        "apiVersion": "tidegate.dev/v1",
        "kind": "MetricReading",
        "metadata": {"name": f"{name}-{metric}", "namespace": "default"},
        "spec": {**spec, "timestamp": rfc3339(int(time.time() * 1000))},
    }


def size(plane: ControlPlane, revision: str) -> int:
    return int(get(plane, f"{DEPLOYMENTS}/{revision}-deployment")["spec"]["replicas"])


def weights(plane: ControlPlane, name: str) -> dict[str, int]:
    if not is_there(plane, f"{ROUTES}/{name}"):
        return {}
    (rule,) = get(plane, f"{ROUTES}/{name}")["spec"]["rules"]
    return {one["name"].rpartition("-")[2]: one["weight"] for one in rule["backendRefs"]}


def left_of(plane: ControlPlane, name: str) -> list[str]:
    """What is still there of a service."""
    wanted = f"?labelSelector={SERVING}%2Finferenceservice%3D{name}"
    core = "/api/v1/namespaces/default"
    replica_sets = "/apis/apps/v1/namespaces/default/replicasets"
    places = (DEPLOYMENTS, replica_sets, AUTOSCALERS, ROUTES, f"{core}/services", f"{core}/pods")
    return [f"{place}/{one['metadata']['name']}" for place in places for one in get(plane, place + wanted)["items"]]


def test_a_service_becomes_ready_scales_shares_and_leaves_nothing(plane: ControlPlane, system: Path) -> None:
    """The autoscaler is killed while its canary starts."""
    apply(plane, service("m", scaleTarget=10))
    made = reaches(plane, f"{SERVICES}/m", has("Ready"))
    assert made["status"]["url"] == "http://m.default.models.test"
    assert made["status"]["components"]["predictor"]["latestReadyRevision"] == "m-predictor-00001"
    assert weights(plane, "m") == {"00001": 100}
    pods = get(plane, f"{DEPLOYMENTS}/m-predictor-00001-deployment")["spec"]["template"]["spec"]
    assert pods["schedulerName"] == "tidegate"

    def loaded() -> bool:
        apply(plane, reading("m", "concurrency", "38"))
        return size(plane, "m-predictor-00001") == 4

    eventually(loaded)

    apply(plane, service("m", "model:2", scaleTarget=10, canaryTrafficPercent=25))
    os.kill(child(system, "inference_autoscaler"), signal.SIGKILL)
    eventually(lambda: weights(plane, "m") == {"00001": 75, "00002": 25})
    reaches(plane, f"{SERVICES}/m", has("Ready"))
    all_decided(system)

    delete(plane, service("m"), reading("m", "concurrency", "0"))
    eventually(lambda: left_of(plane, "m") == [])


def test_a_runtime_is_chosen_and_what_the_api_server_fills_in_is_no_news(plane: ControlPlane) -> None:
    """KServe's older block is filled in by the webhook; the autoscaler that is made is the cluster's to decide on."""
    runtime = {
        "apiVersion": f"{SERVING}/v1alpha1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": "lab-sklearn"},
        "spec": {
            "protocolVersions": ["v1", "v2"],
            "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": True}],
            "containers": [
                {
                    "name": "kserve-container",
                    "image": "kserve/sklearnserver:v0.21.0",
                    "args": ["--model_name={{.Name}}"],
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
        },
    }
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 5}}
    resource = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "2048Mi"}}
    scaling = {"metrics": [{"type": "Resource", "resource": resource}], "behavior": behavior}
    wanted = service("iris", mode="RawDeployment", minReplicas=2, maxReplicas=5, autoScaling=scaling)
    del wanted["spec"]["predictor"]["containers"]
    wanted["spec"]["predictor"]["sklearn"] = {"storageUri": "pvc://models/iris"}
    volume = {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}}
    apply(plane, runtime, {**claim, "spec": {**volume, "storageClassName": ""}})
    apply(plane, wanted)
    stored = get(plane, f"{SERVICES}/iris")
    assert stored["spec"]["predictor"]["model"]["modelFormat"]["name"] == "sklearn"

    eventually(lambda: is_there(plane, f"{AUTOSCALERS}/iris-predictor"))
    chosen = reaches(plane, f"{SERVICES}/iris", lambda status: "clusterServingRuntimeName" in status)
    assert chosen["status"]["clusterServingRuntimeName"] == "lab-sklearn"
    time.sleep(3)
    autoscaler, deployment = (f"{AUTOSCALERS}/iris-predictor", f"{DEPLOYMENTS}/iris-predictor")
    before = [get(plane, path)["metadata"]["resourceVersion"] for path in (autoscaler, f"{SERVICES}/iris")]
    time.sleep(5)
    assert [get(plane, path)["metadata"]["resourceVersion"] for path in (autoscaler, f"{SERVICES}/iris")] == before
    made = get(plane, autoscaler)
    assert made["spec"]["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 5
    assert not (made.get("status") or {}).get("conditions"), "nobody here decides on it"
    container = get(plane, deployment)["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["--model_name=iris"]

    delete(plane, wanted, runtime)
    eventually(lambda: left_of(plane, "iris") == [])


def test_what_cannot_be_served_is_refused_on_its_way_in(plane: ControlPlane) -> None:
    refused = run(plane, "apply", "-f", "-", given=service("wrong", minReplicas=5, maxReplicas=2))
    assert refused.returncode != 0 and "maxReplicas" in refused.stderr
    assert not is_there(plane, f"{SERVICES}/wrong")


def test_a_goal_sizes_a_service_in_standard_mode_and_one_of_an_autoscaler_says_that_it_cannot(
    plane: ControlPlane,
) -> None:
    """No HorizontalPodAutoscaler is made for the one; on the other the cluster's own controller decides, which knows no goals."""
    made = service("g", mode="RawDeployment", containerConcurrency=10, maxReplicas=8)
    made["metadata"]["annotations"]["tidegate.dev/target"] = "queue wait <= 1s"
    apply(plane, made)
    reaches(plane, f"{SERVICES}/g", has("Ready"))

    def loaded() -> bool:
        apply(plane, reading("g", "rps", "40"), reading("g", "concurrency", "40"))
        return int(get(plane, f"{DEPLOYMENTS}/g-predictor")["spec"]["replicas"]) >= 4

    eventually(loaded)
    reaches(plane, f"{SERVICES}/g", has("SizedByGoal"))
    assert not is_there(plane, f"{AUTOSCALERS}/g-predictor")

    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "elsewhere"}
    metadata = {"name": "h", "namespace": "default", "annotations": {"tidegate.dev/target": "queue wait <= 1s"}}
    spec = {"scaleTargetRef": target, "maxReplicas": 3}
    apply(
        plane, {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
    )

    def told() -> bool:
        conditions = (get(plane, f"{AUTOSCALERS}/h").get("status") or {}).get("conditions") or ()
        return any((one["type"], one["reason"]) == ("SizedByGoal", "NotScaledHere") for one in conditions)

    eventually(told)
    delete(plane, made, reading("g", "rps", "0"), reading("g", "concurrency", "0"))
