"""InferenceServices for pretended nodes: what shows what services do for them at an API server."""

import time
from typing import Any

from applied import apply
from cluster_tools import eventually
from control_plane import ControlPlane

from kube import rfc3339


def serve(plane: ControlPlane) -> None:
    """Services of both modes are made, changed, sized by a sample, and stopped."""
    group, apps = "serving.kserve.io", "/apis/apps/v1/namespaces/default/deployments"
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    services = f"/apis/{group}/v1beta1/namespaces/default/inferenceservices"

    def give(name: str, mode: str, image: str = "model:1", **more: Any) -> None:
        annotations = {f"{group}/deploymentMode": mode, **more.pop("annotations", {})}
        predictor = {"containers": [{"name": "kserve-container", "image": image}], **more}
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        item = {"apiVersion": f"{group}/v1beta1", "kind": "InferenceService", "metadata": metadata}
        apply(plane, {**item, "spec": {"predictor": predictor}})

    def items(path: str) -> dict[str, Any]:
        return {one["metadata"]["name"]: one for one in plane.request("GET", path)["items"]}

    def image_of(deployment: Any) -> str:
        return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])

    give("raw", "RawDeployment", maxReplicas=3)
    eventually(lambda: "raw-predictor" in items(autoscalers))
    give("raw", "RawDeployment", "model:2", maxReplicas=4)
    eventually(lambda: items(autoscalers)["raw-predictor"]["spec"]["maxReplicas"] == 4)
    eventually(lambda: image_of(items(apps)["raw-predictor"]) == "model:2")
    give("raw", "RawDeployment", "model:2", maxReplicas=4, annotations={f"{group}/stop": "true"})
    eventually(lambda: "raw-predictor" not in items(apps) and "raw-predictor" not in items(autoscalers))

    keda = {f"{group}/autoscalerClass": "keda"}
    give("events", "RawDeployment", annotations=keda)
    scaled = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects"
    eventually(lambda: items(scaled).get("events-predictor", {}).get("status"))

    give("loaded", "Serverless", scaleTarget=10)
    revision = "loaded-predictor-00001-deployment"
    eventually(lambda: revision in items(apps))
    described = {"apiVersion": f"{group}/v1beta1", "kind": "InferenceService", "name": "loaded"}
    sample = {
        "apiVersion": "tidegate.dev/v1",
        "kind": "MetricReading",
        "metadata": {"name": "load", "namespace": "default"},
    }
    spec = {"describedObject": described, "metric": {"name": "concurrency"}, "value": "35"}

    def is_sized() -> bool:
        apply(plane, {**sample, "spec": {**spec, "timestamp": rfc3339(int(time.time() * 1000))}})
        return int(items(apps)[revision]["spec"]["replicas"]) > 1

    eventually(is_sized)
    eventually(lambda: items(services)["loaded"].get("status"))
