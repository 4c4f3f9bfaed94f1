"""Behind a cluster's own gateway, services that sleep: their HTTPRoutes lead to the inference gateway, where requests wait."""

import json
from pathlib import Path

from applied import apply, get
from cluster_tools import eventually, running_system
from control_plane import ControlPlane
from gateway_api import ROUTES, define_routes, is_there

ROUTING = {
    "by": "HTTPRoute",
    "gateway": "infra/edge",
    "domain": "models.test",
    "through": "tidegate/tidegate-inference-gateway",
}


def test_a_service_that_begins_asleep_has_a_route_to_the_inference_gateway(plane: ControlPlane, tmp_path: Path) -> None:
    define_routes(plane)
    container = {"name": "kserve-container", "image": "model:1", "resources": {"requests": {"cpu": "100m"}}}
    annotations = {
        "serving.kserve.io/deploymentMode": "Serverless",
        "autoscaling.knative.dev/initial-scale": "0",
    }
    sleeping = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "sleeping", "namespace": "default", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": 0, "containers": [container]}},
    }
    settings = [f"inference_autoscaler.routes={json.dumps(ROUTING)}"]
    with running_system(plane, tmp_path, settings=settings):
        apply(plane, sleeping)
        eventually(lambda: is_there(plane, f"{ROUTES}/sleeping"))
        (rule,) = get(plane, f"{ROUTES}/sleeping")["spec"]["rules"]
        (backend,) = rule["backendRefs"]
        assert (backend["namespace"], backend["name"], backend["port"]) == (
            "tidegate",
            "tidegate-inference-gateway",
            80,
        )
