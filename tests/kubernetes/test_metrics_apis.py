"""Kubernetes' own autoscaler reads the samples that Tidegate keeps: of pods and of what is outside the cluster."""

import json
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from applied import apply, delete, get, has, reaches
from cluster_tools import eventually, install, running_services
from control_plane import ControlPlane, control_plane, controllers_command
from front_proxy import are_available, proxy_flags, register
from lab_programs import NoLab, programs
from told_metrics_server import ToldMetricsServer, told_metrics_server
from told_prometheus import ToldPrometheus, told_prometheus

from bus.server import free_port

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
OF_IRIS = "serving.kserve.io%2Finferenceservice%3Diris"
PODS_RULE = {
    "seriesQuery": "waiting",
    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
}


@pytest.fixture(scope="module")
def prometheus() -> Iterator[ToldPrometheus]:
    with told_prometheus() as made:
        yield made


@pytest.fixture(scope="module")
def direct() -> str:
    """Where the metrics APIs are served, past the API server."""
    return f"https://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, prometheus: ToldPrometheus, direct: str) -> Iterator[ControlPlane]:
    """A control plane that asks Tidegate for metrics, with the services, and Kubernetes' autoscaler at work."""
    folder, port = tmp_path_factory.mktemp("plane"), int(direct.rpartition(":")[2])
    sampling = {"prometheus": prometheus.address, "rules": [PODS_RULE], "externalRules": [{"seriesQuery": "orders"}]}
    words = ["--scheduler-names", "tidegate"]
    for setting in (
        f"admission.metrics_api_port={port}",
        "admission.metrics_apis=custom,external",
        f"inference_autoscaler.sampling={json.dumps(sampling)}",
    ):
        words += ["--set", setting]
    try:
        with control_plane(folder, api_flags=proxy_flags(folder)) as made:
            install(made, nodes=2)
            register(made, port)
            with running_services(made.kubeconfig, tmp_path_factory.mktemp("system"), words):
                eventually(lambda: are_available(made))
                program = programs("kube-controller-manager")["kube-controller-manager"]
                command = controllers_command(program, folder, ("horizontal-pod-autoscaler-controller",))
                made.start("autoscaler", [*command, "--horizontal-pod-autoscaler-sync-period=2s"])
                yield made
    except NoLab as error:
        pytest.skip(str(error))


def scaled(name: str, kind: str, metric: str, target: str, **spec: Any) -> list[dict[str, Any]]:
    """A Deployment of one pod, and its autoscaler."""
    labels = {"app": name}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"schedulerName": "tidegate", "containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    source = {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": target}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 9,
            "metrics": [{"type": kind, kind.lower(): source}],
            **spec,
        },
    }
    return [deployment, autoscaler]


def replicas(plane: ControlPlane, name: str) -> int:
    return int(get(plane, f"{DEPLOYMENTS}/{name}")["spec"]["replicas"])


def active(plane: ControlPlane, name: str) -> tuple[str, str, str]:
    """Status, reason and message of the autoscaler's condition ScalingActive."""
    told = (get(plane, f"{AUTOSCALERS}/{name}").get("status") or {}).get("conditions") or ()
    found = next((one for one in told if one["type"] == "ScalingActive"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_what_is_outside_scales_a_deployment_and_a_source_that_is_down_holds_it(
    plane: ControlPlane, prometheus: ToldPrometheus
) -> None:
    prometheus.series["orders"] = [({}, "25"), ({}, "10")]
    apply(plane, *scaled("shop", "External", "orders", "10"))
    eventually(lambda: replicas(plane, "shop") == 4)
    assert active(plane, "shop")[:2] == ("True", "ValidMetricFound")

    prometheus.is_down = True
    try:
        eventually(lambda: active(plane, "shop")[:2] == ("False", "FailedGetExternalMetric"))
        assert "answers" in active(plane, "shop")[2] and prometheus.address in active(plane, "shop")[2]
        assert replicas(plane, "shop") == 4
    finally:
        prometheus.is_down = False
    prometheus.series["orders"] = [({}, "80")]
    eventually(lambda: replicas(plane, "shop") == 8)


def test_what_each_pod_tells_scales_a_deployment(plane: ControlPlane, prometheus: ToldPrometheus) -> None:
    apply(plane, *scaled("web", "Pods", "waiting", "5"))
    (pod,) = eventually(lambda: get(plane, "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")["items"])
    stranger = {"namespace": "default", "pod": "somebody-else"}
    prometheus.series["waiting"] = [({"pod": pod["metadata"]["name"]}, "15"), (stranger, "900")]
    eventually(lambda: replicas(plane, "web") == 3)


@pytest.fixture
def metrics_server(plane: ControlPlane) -> Iterator[ToldMetricsServer]:
    with told_metrics_server(plane) as made:
        yield made


def service(name: str, scaled_by: str, **predictor: Any) -> dict[str, Any]:
    """An InferenceService in standard mode."""
    annotations = {"serving.kserve.io/deploymentMode": "RawDeployment", "serving.kserve.io/autoscalerClass": scaled_by}
    container = {"name": "kserve-container", "image": "model:1", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": 1, "maxReplicas": 6, "containers": [container], **predictor}},
    }


def test_the_cluster_decides_on_the_autoscaler_that_a_service_has_made(
    plane: ControlPlane, metrics_server: ToldMetricsServer
) -> None:
    """By what its pods use. The service keeps to the size that the cluster has chosen, also when it is changed itself."""
    quick = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    scaling = {"metrics": [{"type": "Resource", "resource": resource}], **quick}
    metrics_server.cpu = "190m"
    apply(plane, service("iris", "hpa", autoScaling=scaling))
    eventually(lambda: replicas(plane, "iris-predictor") == 6)
    reaches(plane, f"{SERVICES}/iris", has("Ready"))
    assert active(plane, "iris-predictor")[:2] == ("True", "ValidMetricFound")

    apply(plane, service("iris", "hpa", autoScaling=scaling, maxReplicas=5))
    eventually(lambda: replicas(plane, "iris-predictor") == 5)
    metrics_server.cpu = "20m"
    eventually(lambda: replicas(plane, "iris-predictor") == 2)

    delete(plane, service("iris", "hpa"))
    eventually(lambda: not get(plane, f"{AUTOSCALERS}?labelSelector={OF_IRIS}")["items"])


def test_a_service_scaled_by_what_is_outside_is_sized_by_the_cluster_too(
    plane: ControlPlane, prometheus: ToldPrometheus
) -> None:
    """Its ScaledObject asks the source, and makes the autoscaler that reads what the source told."""
    source = {"backend": "prometheus", "serverAddress": prometheus.address, "query": "sum(lines)"}
    metric = {"type": "External", "external": {"metric": source, "target": {"type": "Value", "value": "10"}}}
    prometheus.series["lines"] = [({}, "35")]
    apply(plane, service("lines", "keda", autoScaling={"metrics": [metric]}))
    eventually(lambda: replicas(plane, "lines-predictor") == 4)
    reaches(plane, f"{SERVICES}/lines", has("Ready"))
    delete(plane, service("lines", "keda"))
    eventually(lambda: "s0-prometheus" not in told_names(plane))


def told_names(plane: ControlPlane) -> list[str]:
    """Of which samples from outside the API says that it has them."""
    return [one["name"] for one in get(plane, EXTERNAL)["resources"]]


def test_what_is_not_known_is_not_there(plane: ControlPlane, prometheus: ToldPrometheus) -> None:
    with pytest.raises(HTTPError) as refused:
        get(plane, f"{EXTERNAL}/namespaces/default/unheard")
    assert refused.value.code == 404
    eventually(lambda: get(plane, f"{EXTERNAL}/namespaces/default/orders")["items"])
    assert told_names(plane) == ["orders"]


def asked(address: str, **headers: str) -> int:
    """What a direct request is answered with."""
    request = urllib.request.Request(f"{address}{EXTERNAL}/namespaces/default/orders", headers=headers)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_who_asks_past_the_api_server_may_do_no_more_than_there(plane: ControlPlane, direct: str) -> None:
    """Headers that an API server would send say nothing of anybody else, and a token counts for what the cluster grants."""
    account = {"metadata": {"name": "reader"}}
    plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    path = "/api/v1/namespaces/default/serviceaccounts/reader/token"
    token = plane.request("POST", path, {"spec": {}})["status"]["token"]

    assert asked(direct) == 401
    assert asked(direct, **{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}) == 401
    assert asked(direct, Authorization="Bearer of-nobody") == 401
    assert asked(direct, Authorization=f"Bearer {token}") == 403
    eventually(lambda: asked(direct, Authorization=f"Bearer {plane.token}") == 200)


def scaled_by_triggers(name: str, trigger: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
    """A Deployment without pods, and its ScaledObject."""
    deployment, _ = scaled(name, "External", "", "1")
    deployment["spec"]["replicas"] = 0
    scaled_object = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": {"name": name}, "pollingInterval": 2, "triggers": [trigger], **spec},
    }
    return [deployment, scaled_object]


def test_a_schedule_takes_a_target_above_one_replica(plane: ControlPlane) -> None:
    """From none to one the ScaledObject decides, from there on the cluster's own controller, which is told of the schedule."""
    hours = {"timezone": "UTC", "start": "0 0 1 1 *", "end": "59 23 31 12 *", "desiredReplicas": "4"}
    apply(plane, *scaled_by_triggers("timed", {"type": "cron", "metadata": hours}))
    eventually(lambda: replicas(plane, "timed") == 4)


def test_a_source_that_is_down_falls_back_above_one_replica(plane: ControlPlane, prometheus: ToldPrometheus) -> None:
    prometheus.series["jobs"] = [({}, "15")]
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": prometheus.address, "query": "jobs", "threshold": "5"},
    }
    fallback = {"failureThreshold": 2, "replicas": 6}
    apply(plane, *scaled_by_triggers("worker", trigger, fallback=fallback))
    eventually(lambda: replicas(plane, "worker") == 3)
    prometheus.is_down = True
    try:
        eventually(lambda: replicas(plane, "worker") == 6)
    finally:
        prometheus.is_down = False
    prometheus.series["jobs"] = [({}, "45")]
    eventually(lambda: replicas(plane, "worker") == 9)
