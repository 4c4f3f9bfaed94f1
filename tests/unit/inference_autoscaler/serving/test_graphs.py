"""InferenceGraphs: what they are made of, where their steps are, and how they are."""

import json
from typing import Any

from kube import Key, Manifest

GRAPH = "InferenceGraph.serving.kserve.io"
SEQUENCE: Manifest = {"root": {"routerType": "Sequence", "steps": [{"serviceName": "m"}, {"serviceUrl": "http://x/y"}]}}


def draw(cluster: Any, nodes: Manifest = SEQUENCE, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    metadata = {"name": "g", "annotations": annotations or {}}
    kind = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph"}
    cluster.put({**kind, "metadata": metadata, "spec": {"nodes": nodes, **spec}})


def serve(cluster: Any, **model: Any) -> None:
    runs = {"model": model} if model else {"containers": [{"name": "kserve-container", "image": "i"}]}
    annotations = {"serving.kserve.io/deploymentMode": "RawDeployment"}
    kind = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    cluster.put({**kind, "metadata": {"name": "m", "annotations": annotations}, "spec": {"predictor": runs}})
    cluster.look()


def child(cluster: Any, kind: str = "Deployment.apps") -> Any:
    return cluster.store.get(Key(kind, "default", "g"))


def routed(cluster: Any) -> Manifest:
    """The graph that the router was given."""
    flag, text = child(cluster).spec["template"]["spec"]["containers"][0]["args"]
    assert flag == "--graph-json"
    found: Manifest = json.loads(text)
    return found


def ready(cluster: Any) -> tuple[str, str]:
    found: tuple[str, str] = cluster.condition("Ready", "g", GRAPH)
    return found


def test_a_graph_waits_for_the_addresses_of_its_services_and_then_has_a_router(cluster: Any) -> None:
    draw(cluster, timeout=60, minReplicas=2, maxReplicas=5)
    assert (ready(cluster), child(cluster)) == (("False", "ServiceNotFound"), None)
    serve(cluster)
    steps = routed(cluster)["nodes"]["root"]["steps"]
    assert steps[0]["serviceUrl"] == "http://m-predictor.default.svc.cluster.local/v1/models/m:predict"
    assert steps[1]["serviceUrl"] == "http://x/y" and routed(cluster)["timeout"] == 60
    assert child(cluster).spec["replicas"] == 2
    assert child(cluster, "Service").spec["ports"][0]["targetPort"] == 8080
    scaled = child(cluster, "HorizontalPodAutoscaler.autoscaling").spec
    assert (scaled["minReplicas"], scaled["maxReplicas"], scaled["scaleTargetRef"]["name"]) == (2, 5, "g")
    assert ready(cluster)[0] == "Unknown"
    told = child(cluster).changed(status={"replicas": 2, "availableReplicas": 1})
    cluster.core.fold([cluster.store.put(told)], cluster.now)
    cluster.look()
    assert ready(cluster)[0] == "True"
    assert cluster.store.objects[Key(GRAPH, "default", "g")].status["url"] == "http://g-default.example.com"


def test_a_graph_follows_its_services_and_its_spec_and_keeps_its_size(cluster: Any) -> None:
    draw(cluster, maxReplicas=6)
    serve(cluster)
    cluster.put({**(found := child(cluster).manifest()), "spec": {**found["spec"], "replicas": 4}})
    draw(cluster, {"root": {"routerType": "Splitter", "steps": [{"serviceName": "m", "weight": 100}]}}, maxReplicas=6)
    assert routed(cluster)["nodes"]["root"]["routerType"] == "Splitter"
    assert child(cluster).spec["replicas"] == 4
    runtime = {
        "supportedModelFormats": [{"name": "triton", "autoSelect": True}],
        "containers": [{"name": "kserve-container", "image": "t"}],
    }
    kind = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime"}
    cluster.put({**kind, "metadata": {"name": "t"}, "spec": runtime})
    serve(cluster, modelFormat={"name": "triton"}, protocolVersion="v2")
    assert routed(cluster)["nodes"]["root"]["steps"][0]["serviceUrl"].endswith("/v2/models/m/infer")
    cluster.remove(Key("InferenceService.serving.kserve.io", "default", "m"))
    assert ready(cluster) == ("False", "ServiceNotFound") and child(cluster) is not None, "who runs runs on"


def test_a_graph_may_be_stopped_or_scaled_by_others(cluster: Any) -> None:
    nodes = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://x/y"}]}}
    draw(cluster, nodes, {"serving.kserve.io/autoscalerClass": "none"}, minReplicas=0)
    assert child(cluster).spec["replicas"] == 1, "a router that is not there answers nobody"
    assert child(cluster, "HorizontalPodAutoscaler.autoscaling") is None
    draw(cluster, nodes, {"serving.kserve.io/stop": "true"})
    assert child(cluster) is None and ready(cluster) == ("False", "Stopped")
    draw(cluster, nodes)
    cluster.restart()
    assert child(cluster) is not None
    before = len(cluster.decisions)
    cluster.look()
    assert len(cluster.decisions) == before
