"""What leads requests from outside to InferenceServices in clusters that have an ingress controller or load balancers."""

import json
from typing import Any

import pytest
from applied import apply, delete, get, has, reaches
from cluster_tools import eventually, running_system
from control_plane import ControlPlane

SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
K8S_SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, image: str = "model:1", **predictor: Any) -> dict[str, Any]:
    container = {"name": "kserve-container", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"serving.kserve.io/deploymentMode": "Serverless"},
        },
        "spec": {"predictor": {"minReplicas": 1, "containers": [container], **predictor}},
    }


@pytest.fixture(scope="module", params=["Ingress", "LoadBalancer"])
def way(request: pytest.FixtureRequest, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The way that an operator has chosen; all services run so."""
    routing = {"by": request.param, "domain": "models.test", "ingressClass": "edge"}
    settings = [f"inference_autoscaler.routes={json.dumps(routing)}"]
    with running_system(plane, tmp_path_factory.mktemp("system"), settings=settings):
        yield request.param


def leads_to(plane: ControlPlane, way: str) -> str:
    """The revision that requests from outside come to; empty where there is no way in."""
    if way == "Ingress":
        found = {one["metadata"]["name"]: one["spec"] for one in get(plane, INGRESSES)["items"]}
        paths = [path for rule in found["m"]["rules"] for path in rule["http"]["paths"]] if "m" in found else []
        return "".join(path["backend"]["service"]["name"] for path in paths)
    services = {one["metadata"]["name"]: one["spec"] for one in get(plane, K8S_SERVICES)["items"]}
    return str(services["m"]["selector"]["app"]).removeprefix("isvc.") if "m" in services else ""


def test_requests_from_outside_are_led_to_the_revision_with_the_largest_share(plane: ControlPlane, way: str) -> None:
    """The service says that it is not there before a load balancer, which a cloud gives an address, has one."""
    apply(plane, service("m"))
    eventually(lambda: leads_to(plane, way) == "m-predictor-00001")
    if way == "LoadBalancer":
        made = get(plane, f"{K8S_SERVICES}/m")["spec"]
        assert (made["type"], made["ports"][0]["port"], made["ports"][0]["targetPort"]) == ("LoadBalancer", 80, 8080)
        reaches(plane, f"{SERVICES}/m", lambda status: "has no address yet" in str(status.get("conditions")))
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
        plane.request("PATCH", f"{K8S_SERVICES}/m/status", status, "application/merge-patch+json")
    else:
        made = get(plane, f"{INGRESSES}/m")["spec"]
        assert (made["ingressClassName"], made["rules"][0]["host"]) == ("edge", "m.default.models.test")
    assert reaches(plane, f"{SERVICES}/m", has("Ready"))["status"]["url"] == "http://m.default.models.test"

    apply(plane, service("m", "model:2", canaryTrafficPercent=25))
    reaches(plane, f"{SERVICES}/m", lambda status: len(status["components"]["predictor"]["traffic"]) == 2)
    assert leads_to(plane, way) == "m-predictor-00001"
    apply(plane, service("m", "model:2"))
    eventually(lambda: leads_to(plane, way) == "m-predictor-00002")

    delete(plane, service("m"))
    eventually(lambda: not leads_to(plane, way))
