"""What InferenceServices are made of in full: components, models, runtimes, agents, canaries, and their status."""

from typing import Any

import pytest

from kube import Key, Manifest

SERVICE = "InferenceService.serving.kserve.io"
RAW = {"serving.kserve.io/deploymentMode": "RawDeployment"}
OWN = {"containers": [{"name": "kserve-container", "image": "model:1"}]}
MODEL = {"modelFormat": {"name": "triton"}, "storageUri": "s3://models/resnet", "protocolVersion": "v2"}


def serve(cluster: Any, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    cluster.put(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "m", "annotations": RAW if annotations is None else annotations},
            "spec": spec,
        }
    )


def runtime(cluster: Any, name: str = "triton", kind: str = "ServingRuntime", **spec: Any) -> None:
    container = {
        "name": "kserve-container",
        "image": "nvcr.io/nvidia/tritonserver:23.05-py3",
        "args": ["tritonserver", "--model-store=/mnt/models", "--id={{.Name}}/{{ .Namespace }}/{{.Labels.team}}"],
        "ports": [{"containerPort": 8080, "name": "h2c"}, {"containerPort": 9000, "name": "grpc"}],
        "env": [{"name": "A", "value": "1"}],
    }
    wanted = {
        "supportedModelFormats": [{"name": "triton", "version": "2", "autoSelect": True, "priority": 1}],
        "protocolVersions": ["v2"],
        "containers": [container],
        **spec,
    }
    metadata = {"name": name}
    cluster.put({"apiVersion": "serving.kserve.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": wanted})


def child(cluster: Any, name: str, kind: str = "Deployment.apps") -> Any:
    return cluster.store.get(Key(kind, "default", name))


def pod_of(cluster: Any, name: str = "m-predictor") -> Manifest:
    found: Manifest = child(cluster, name).spec["template"]
    return found


def status(cluster: Any) -> Manifest:
    found: Manifest = cluster.store.objects[Key(SERVICE, "default", "m")].status
    return found


def ready(cluster: Any, name: str, pods: int | None = None) -> None:
    found = child(cluster, name)
    there = found.spec["replicas"] if pods is None else pods
    told = {"replicas": there, "availableReplicas": there}
    cluster.core.fold([cluster.store.put(found.changed(status=told))], cluster.now)
    cluster.look()


def test_a_transformer_and_an_explainer_have_children_of_their_own_and_know_who_predicts(cluster: Any) -> None:
    beside = {"containers": [{"image": "t", "args": ["--model_name=other"]}], "minReplicas": 2, "maxReplicas": 3}
    art = {"type": "SquareAttack", "storageUri": "s3://m/x", "config": {"nb_classes": "10"}}
    serve(cluster, predictor=OWN, transformer={**beside, "containerConcurrency": 4}, explainer={"art": art})
    for role in ("predictor", "transformer", "explainer"):
        for kind in ("Deployment.apps", "Service", "HorizontalPodAutoscaler.autoscaling"):
            assert child(cluster, f"m-{role}", kind).labels["component"] == role
    assert child(cluster, "m-transformer").spec["replicas"] == 2
    transformer = pod_of(cluster, "m-transformer")["spec"]["containers"][0]
    args = ["--model_name=other", "--predictor_host", "m-predictor.default", "--http_port", "8080", "--workers", "4"]
    assert (transformer["name"], transformer["args"]) == ("kserve-container", args)
    explainer = pod_of(cluster, "m-explainer")["spec"]
    assert explainer["containers"][0]["image"] == "kserve/art-explainer:latest"
    assert explainer["containers"][0]["args"][:4] == ["--adversary_type", "SquareAttack", "--nb_classes", "10"]
    assert explainer["initContainers"][0]["args"] == ["s3://m/x", "/mnt/models"]
    assert "containers" in pod_of(cluster)["spec"] and "args" not in pod_of(cluster)["spec"]["containers"][0]


def test_a_service_is_ready_when_each_component_is_and_says_where_it_is(cluster: Any) -> None:
    serve(cluster, predictor=OWN, transformer=OWN)
    ready(cluster, "m-predictor")
    assert cluster.condition("PredictorReady", "m", SERVICE)[0] == "True"
    assert cluster.condition("TransformerReady", "m", SERVICE)[0] == "Unknown"
    assert cluster.condition("IngressReady", "m", SERVICE) == ("False", "Transformer ingress not created")
    assert cluster.condition("Ready", "m", SERVICE)[0] == "Unknown"
    ready(cluster, "m-transformer")
    assert cluster.condition("Ready", "m", SERVICE)[0] == "True"
    told = status(cluster)
    assert told["url"] == "http://m-default.example.com"
    assert told["address"]["url"] == "http://m-transformer.default.svc.cluster.local"
    assert told["components"]["predictor"]["url"] == "http://m-predictor-default.example.com"
    assert told["components"]["predictor"]["traffic"][0]["percent"] == 100
    assert told["observedGeneration"] == cluster.store.objects[Key(SERVICE, "default", "m")].metadata["generation"]


def test_the_manual_s_triton_runs_in_its_runtime_and_fetches_its_model(cluster: Any) -> None:
    runtime(
        cluster, labels={"from": "runtime"}, annotations={"prometheus.io/port": "8002"}, nodeSelector={"gpu": "yes"}
    )
    model = {**MODEL, "runtimeVersion": "26.09-py3", "args": ["--strict"], "env": [{"name": "A", "value": "2"}]}
    serve(cluster, predictor={"model": {**model, "modelRepository": "s3://models/resnet"}})
    template = pod_of(cluster)
    container = template["spec"]["containers"][0]
    assert container["image"] == "nvcr.io/nvidia/tritonserver:26.09-py3"
    assert container["args"] == ["tritonserver", "--model-store=/mnt/models", "--id=m/default/", "--strict"]
    assert container["env"] == [{"name": "A", "value": "2"}]
    assert "modelRepository" not in container and template["spec"]["nodeSelector"] == {"gpu": "yes"}
    assert template["metadata"]["labels"]["from"] == "runtime"
    assert template["metadata"]["annotations"]["prometheus.io/port"] == "8002"
    assert template["spec"]["initContainers"][0]["args"] == ["s3://models/resnet", "/mnt/models"]
    first, second = child(cluster, "m-predictor", "Service").spec["ports"]
    assert (first["name"], first["port"], first["targetPort"]) == ("h2c", 80, 8080)
    assert (second["port"], second["appProtocol"]) == (9000, "kubernetes.io/h2c")
    assert status(cluster)["servingRuntimeName"] == "triton"
    assert status(cluster)["modelStatus"]["states"]["targetModelState"] == "Loading"
    ready(cluster, "m-predictor")
    assert status(cluster)["modelStatus"]["transitionStatus"] == "UpToDate"


def test_containers_of_the_predictor_lie_over_those_of_the_runtime(cluster: Any) -> None:
    runtime(cluster)
    own = [{"name": "kserve-container", "image": "mine"}, {"name": "beside", "image": "b"}]
    serve(cluster, predictor={"model": MODEL, "containers": own})
    assert [(one["name"], one["image"]) for one in pod_of(cluster)["spec"]["containers"]] == [
        ("kserve-container", "mine"),
        ("beside", "b"),
    ]


def test_a_replica_that_is_to_go_serves_on_for_some_seconds(cluster: Any) -> None:
    """Until nobody sends it requests any more; unless it says itself what it does, or has no time for it."""
    hook = {"exec": {"command": ["drain"]}}
    containers = [*OWN["containers"], {"name": "own", "image": "b", "lifecycle": {"preStop": hook, "postStart": hook}}]
    serve(cluster, predictor={"containers": [*containers, {"name": "c", "lifecycle": {"postStart": hook}}]})
    first, own, other = (one["lifecycle"] for one in pod_of(cluster)["spec"]["containers"])
    assert first == {"preStop": {"sleep": {"seconds": 5}}}
    assert own == {"preStop": hook, "postStart": hook}
    assert other == {"postStart": hook, "preStop": {"sleep": {"seconds": 5}}}


@pytest.mark.parametrize(("grace", "pause"), [(0, None), (1, None), (3, 2), (60, 5)])
def test_the_pause_is_shorter_than_the_pod_s_grace(cluster: Any, grace: int, pause: int | None) -> None:
    serve(cluster, predictor={**OWN, "terminationGracePeriodSeconds": grace})
    (container,) = pod_of(cluster)["spec"]["containers"]
    wanted = None if pause is None else {"preStop": {"sleep": {"seconds": pause}}}
    assert container.get("lifecycle") == wanted


def test_a_container_of_one_s_own_finds_its_model_in_a_folder(cluster: Any) -> None:
    variable = {"name": "STORAGE_URI", "value": "pvc://models/a"}
    serve(cluster, predictor={"containers": [{"name": "server", "image": "i", "env": [variable]}]})
    pod = pod_of(cluster)["spec"]
    assert pod["containers"][0]["env"] == [{"name": "STORAGE_URI", "value": "/mnt/models"}]
    assert pod["containers"][0]["volumeMounts"][0]["subPath"] == "a"


def test_a_store_is_named_by_its_key(cluster: Any) -> None:
    runtime(cluster)
    storage = {"key": "minio", "path": "resnet", "parameters": {"bucket": "models", "type": "s3"}}
    serve(cluster, predictor={"model": {**MODEL, "storageUri": None, "storage": storage}})
    fetching = pod_of(cluster)["spec"]["initContainers"][0]
    assert fetching["args"] == ["s3://models/resnet", "/mnt/models"]
    assert fetching["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "storage-config", "key": "minio"}
    assert [one["name"] for one in fetching["env"]] == ["STORAGE_CONFIG", "STORAGE_OVERRIDE_CONFIG"]


def test_credentials_that_come_later_reach_the_pods(cluster: Any) -> None:
    runtime(cluster)
    serve(cluster, predictor={"model": MODEL, "serviceAccountName": "reader"})
    assert "env" not in pod_of(cluster)["spec"]["initContainers"][0]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "data": {"AWS_ACCESS_KEY_ID": ""}}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "reader"},
        "secrets": [{"name": "s3"}],
    }
    cluster.put(secret, account)
    assert pod_of(cluster)["spec"]["initContainers"][0]["env"][0]["name"] == "AWS_ACCESS_KEY_ID"


def test_an_agent_batches_and_logs_in_front_of_the_server(cluster: Any) -> None:
    asked = {
        "logger": {"url": "http://sink", "mode": "request", "storage": {"path": "/logs"}},
        "batcher": {"maxBatchSize": 16, "maxLatency": 500},
    }
    container = {"name": "kserve-container", "image": "i", "ports": [{"containerPort": 8501}]}
    serve(cluster, predictor={"containers": [container], **asked})
    agent = pod_of(cluster)["spec"]["containers"][1]
    assert (agent["name"], agent["ports"][0]["containerPort"]) == ("agent", 9081)
    assert agent["args"][:5] == ["--enable-batcher", "--max-batchsize", "16", "--max-latency", "500"]
    told = dict(zip(agent["args"][5::2], agent["args"][6::2], strict=True))
    assert (told["--log-url"], told["--log-mode"], told["--component-port"]) == ("http://sink", "request", "8501")
    assert (told["--inference-service"], told["--component"], told["--log-store-path"]) == ("m", "predictor", "/logs")
    assert child(cluster, "m-predictor", "Service").spec["ports"][0]["targetPort"] == 9081
    serve(cluster, predictor={"containers": [container]})
    assert len(pod_of(cluster)["spec"]["containers"]) == 1
    assert child(cluster, "m-predictor", "Service").spec["ports"][0]["targetPort"] == 8501


@pytest.mark.parametrize(("more", "protocol"), [({}, "kubernetes.io/h2c"), ({"batcher": {}}, None)])
def test_an_agent_is_not_said_to_speak_what_only_its_server_speaks(
    cluster: Any, more: dict[str, Any], protocol: str | None
) -> None:
    ports = [{"containerPort": 8080, "name": "h2c"}, {"containerPort": 9000, "name": "grpc"}]
    serve(cluster, predictor={"containers": [{**OWN["containers"][0], "ports": ports}], **more})
    first, other = child(cluster, "m-predictor", "Service").spec["ports"]
    assert first.get("appProtocol") == protocol
    assert (other["appProtocol"], other["targetPort"]) == ("kubernetes.io/h2c", 9000)


@pytest.mark.parametrize(
    ("spec", "model", "reason"),
    [
        ({"disabled": True}, {"runtime": "triton"}, "RuntimeDisabled"),
        ({"multiModel": True}, {"runtime": "triton"}, "NoSupportingRuntime"),
        ({"multiModel": True}, {}, "NoSupportingRuntime"),
        ({"workerSpec": {"pipelineParallelSize": 2}}, {}, "NoSupportingRuntime"),
        ({}, {"runtime": "other"}, "RuntimeNotRecognized"),
        ({}, {"protocolVersion": "v1"}, "NoSupportingRuntime"),
        ({}, {"modelFormat": {"name": "triton", "version": "3"}}, "NoSupportingRuntime"),
        ({"protocolVersions": []}, {"protocolVersion": "v1"}, ""),
        ({}, {"modelFormat": {"name": "triton", "version": "2"}}, ""),
    ],
)
def test_a_runtime_that_cannot_run_the_model_is_not_taken(
    cluster: Any, spec: dict[str, Any], model: dict[str, Any], reason: str
) -> None:
    runtime(cluster, **spec)
    serve(cluster, predictor={"model": {**MODEL, **model}})
    failure = status(cluster)["modelStatus"].get("lastFailureInfo") or {}
    assert failure.get("reason", "") == reason
    assert (child(cluster, "m-predictor") is None) == bool(reason)


def test_a_model_that_does_not_load_says_so_with_the_words_of_who_fetches_it(cluster: Any) -> None:
    runtime(cluster)
    serve(cluster, predictor={"model": MODEL})
    ended = {"terminated": {"exitCode": 1, "message": "no such bucket: models"}}
    told = {"initContainerStatuses": [{"name": "storage-initializer", "ready": False, "state": ended}]}
    labels = pod_of(cluster)["metadata"]["labels"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "m-1", "labels": labels}, "spec": {}, "status": told}
    cluster.put(pod)
    found = status(cluster)["modelStatus"]
    assert (found["transitionStatus"], found["states"]["targetModelState"]) == ("BlockedByFailedLoad", "FailedToLoad")
    assert found["lastFailureInfo"]["message"] == "no such bucket: models"
    cluster.put({**pod, "status": {"initContainerStatuses": []}})
    assert status(cluster)["modelStatus"]["transitionStatus"] == "InProgress"


def test_class_keda_has_a_scaled_object_and_no_autoscaler_of_the_other_class_stays(cluster: Any) -> None:
    serve(cluster, predictor={**OWN, "minReplicas": 0, "maxReplicas": 4})
    assert child(cluster, "m-predictor", "HorizontalPodAutoscaler.autoscaling") is not None
    source = {"backend": "prometheus", "serverAddress": "http://p", "query": "q"}
    metrics = [{"type": "External", "external": {"metric": source, "target": {"value": "50"}}}]
    annotations = {**RAW, "serving.kserve.io/autoscalerClass": "keda"}
    predictor = {**OWN, "minReplicas": 0, "maxReplicas": 4, "autoScaling": {"metrics": metrics}}
    serve(cluster, annotations, predictor=predictor)
    assert child(cluster, "m-predictor", "HorizontalPodAutoscaler.autoscaling") is None
    made = child(cluster, "m-predictor", "ScaledObject.keda.sh").spec
    assert (made["minReplicaCount"], made["maxReplicaCount"]) == (0, 4)
    assert made["triggers"] == [
        {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "q", "threshold": "50"}}
    ]
    serve(cluster, {**annotations, "serving.kserve.io/autoscalerClass": "external"}, predictor=predictor)
    assert child(cluster, "m-predictor", "ScaledObject.keda.sh") is None


def test_components_without_servers_have_revisions_too(cluster: Any) -> None:
    serve(cluster, {}, predictor=OWN, transformer=OWN)
    for name in ("m-predictor-00001", "m-transformer-00001"):
        assert child(cluster, f"{name}-deployment") is not None
        assert child(cluster, name, "Service").spec["selector"] == {"app": f"isvc.{name}"}
        ready(cluster, f"{name}-deployment")
    told = status(cluster)
    assert cluster.condition("Ready", "m", SERVICE)[0] == "True"
    assert told["url"] == "http://m.default.example.com"
    assert told["components"]["transformer"]["traffic"][0]["revisionName"] == "m-transformer-00001"
    serve(cluster, {}, predictor=OWN, transformer={"containers": [{"image": "t:2"}]})
    assert child(cluster, "m-transformer-00002-deployment") is not None
    assert child(cluster, "m-predictor-00002-deployment") is None


def canary(name: str = "next", percent: int = 25, uri: str = "s3://models/b", **more: Any) -> dict[str, Any]:
    return {"predictor": {"name": name, "model": {**MODEL, "storageUri": uri}, **more}, "trafficPercent": percent}


def traffic(cluster: Any) -> dict[str, int]:
    return {one["revisionName"]: one["percent"] for one in status(cluster)["components"]["predictor"]["traffic"]}


def test_a_canary_in_standard_mode_has_its_part_of_the_pods_and_its_share_once_it_serves(cluster: Any) -> None:
    runtime(cluster)
    stable = {"model": MODEL, "minReplicas": 4, "maxReplicas": 8}
    serve(cluster, predictor=stable)
    ready(cluster, "m-predictor")
    serve(cluster, predictor=stable, canary=[canary()])
    assert child(cluster, "m-next-predictor").spec["replicas"] == 1
    assert traffic(cluster) == {"m-predictor": 100}
    assert child(cluster, "m-predictor", "HorizontalPodAutoscaler.autoscaling").spec["minReplicas"] == 4
    assert cluster.condition("CanaryPredictorReady", "m", SERVICE)[0] == "Unknown"
    ready(cluster, "m-next-predictor")
    assert traffic(cluster) == {"m-predictor": 75, "m-next-predictor": 25}
    assert child(cluster, "m-predictor", "HorizontalPodAutoscaler.autoscaling").spec["minReplicas"] == 3
    serve(cluster, predictor=stable, canary=[canary(percent=50)])
    assert child(cluster, "m-next-predictor").spec["replicas"] == 2
    serve(cluster, predictor=stable)
    assert child(cluster, "m-next-predictor") is None and child(cluster, "m-next-predictor", "Service") is None
    assert traffic(cluster) == {"m-predictor": 100}


def test_a_promoted_canary_keeps_its_pods_and_takes_over_as_they_become_enough(cluster: Any) -> None:
    runtime(cluster)
    serve(cluster, predictor={"model": MODEL, "minReplicas": 4}, canary=[canary()])
    ready(cluster, "m-predictor")
    ready(cluster, "m-next-predictor")
    uid = child(cluster, "m-next-predictor").uid
    template = pod_of(cluster, "m-next-predictor")
    serve(cluster, predictor={**canary()["predictor"], "minReplicas": 4})
    assert child(cluster, "m-next-predictor").uid == uid and pod_of(cluster, "m-next-predictor") == template
    assert traffic(cluster) == {"m-next-predictor": 25, "m-predictor": 75}
    cluster.put({**(found := child(cluster, "m-next-predictor").manifest()), "spec": {**found["spec"], "replicas": 4}})
    ready(cluster, "m-next-predictor")
    assert traffic(cluster) == {"m-next-predictor": 100}
    assert child(cluster, "m-predictor") is None and child(cluster, "m-predictor", "Service") is None


def test_a_canary_with_a_plan_is_taken_back_by_what_it_answers(cluster: Any) -> None:
    runtime(cluster)
    annotations = {**RAW, "tidegate.dev/rollout": "canary", "tidegate.dev/rollout-steps": "10:1m"}
    stable = {"model": MODEL, "minReplicas": 4}
    serve(cluster, annotations, predictor=stable, canary=[canary()])
    ready(cluster, "m-predictor")
    ready(cluster, "m-next-predictor")
    assert traffic(cluster) == {"m-predictor": 90, "m-next-predictor": 10}
    described = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "m"}
    for revision, errors in (("m-predictor", 10), ("m-next-predictor", 200)):
        for metric, value in (("revision_errors_total", errors), ("revision_requests_total", 1_000)):
            spec = {
                "describedObject": described,
                "metric": {"name": metric, "labels": {"revision": revision}},
                "timestamp": cluster.time(),
                "value": value,
            }
            metadata = {"name": f"{revision}-{metric.replace('_', '-')}"}
            cluster.put({"apiVersion": "tidegate.dev/v1", "kind": "MetricReading", "metadata": metadata, "spec": spec})
    assert traffic(cluster) == {"m-predictor": 100}
    assert cluster.condition("RolledOut", "m", SERVICE) == ("False", "ErrorRateHigher")
    assert child(cluster, "m-next-predictor").spec["replicas"] == 0
    cluster.advance(600)
    assert traffic(cluster) == {"m-predictor": 100}
