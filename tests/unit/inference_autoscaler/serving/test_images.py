"""Where the images of containers come from that pods of models and graphs get besides their own."""

from typing import Any

import pytest

from inference_autoscaler.domain.core import AutoscalerCore
from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.policy import AutoscalerPolicy
from kube import Key


def test_ours_come_from_the_registry_and_others_from_where_they_are() -> None:
    found = Images.of({}, "registry.test/mirror/")
    assert found.storage_initializer == "registry.test/mirror/tidegate/storage-initializer:0.1.0"
    assert found.graph_router == "registry.test/mirror/tidegate/graph-router:0.1.0"
    assert found.agent == Images().agent
    assert Images.of({}) == Images()


def test_what_is_said_counts_as_it_is() -> None:
    found = Images.of({"storageInitializer": "tidegate/own:7", "agent": "registry.test/agent:1"}, "registry.test")
    assert (found.storage_initializer, found.agent) == ("tidegate/own:7", "registry.test/agent:1")
    with pytest.raises(ValueError, match="router: no such key"):
        Images.of({"router": "a"})


def test_pods_of_a_model_and_of_a_graph_have_the_images_that_were_chosen(cluster: Any) -> None:
    images = Images.of({"agent": "registry.test/agent:1"}, "registry.test")
    cluster.core = AutoscalerCore(AutoscalerPolicy(images=images))
    cluster.core.read_from(cluster.store)
    container = {"name": "kserve-container", "image": "server:1"}
    formats = [{"name": "sklearn", "autoSelect": True}]
    runtime = {"supportedModelFormats": formats, "protocolVersions": ["v1"], "containers": [container]}
    kind = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterServingRuntime"}
    cluster.put({**kind, "metadata": {"name": "r"}, "spec": runtime})
    cluster.serve(model={"modelFormat": {"name": "sklearn"}, "storageUri": "s3://models/m"}, batcher={})
    deployment = cluster.store.objects[Key("Deployment.apps", "default", "m-predictor-00001-deployment")]
    pod = deployment.spec["template"]["spec"]
    assert pod["initContainers"][0]["image"] == "registry.test/tidegate/storage-initializer:0.1.0"
    assert [one["image"] for one in pod["containers"]] == ["server:1", "registry.test/agent:1"]

    step = {"serviceUrl": "http://elsewhere.test/"}
    spec = {"nodes": {"root": {"routerType": "Sequence", "steps": [step]}}}
    cluster.put({**kind, "kind": "InferenceGraph", "metadata": {"name": "g"}, "spec": spec})
    (router,) = cluster.store.objects[Key("Deployment.apps", "default", "g")].spec["template"]["spec"]["containers"]
    assert router["image"] == "registry.test/tidegate/graph-router:0.1.0"
