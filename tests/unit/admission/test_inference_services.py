"""InferenceServices and InferenceGraphs: what is filled in, what is refused, and what their authors are told."""

from typing import Any

import pytest

from admission.domain.admit import admit
from admission.domain.errors import Rejected
from kube import Store, from_manifest

MODE, CLASS = "serving.kserve.io/deploymentMode", "serving.kserve.io/autoscalerClass"
RAW = {MODE: "RawDeployment"}
CONTAINER = {"containers": [{"name": "kserve-container", "image": "model"}]}
SKLEARN = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "s3://m/a"}}
UTILIZATION = {"type": "Utilization", "averageUtilization": 60}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION}}
QUEUE = {"type": "External", "external": {"metric": {"backend": "prometheus", "query": "q"}, "target": {"value": "5"}}}


def service(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "m", "annotations": annotations or {}}
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata, "spec": spec}


def refused(manifest: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    """Why it is refused; empty where it is let in."""
    before = None if old is None else from_manifest(admit(old, None, Store()).manifest, revision=1)
    try:
        admit(manifest, before, Store())
    except Rejected as error:
        return str(error)
    return ""


def test_the_manual_s_own_manifest_is_read_and_its_author_is_told_how() -> None:
    triton = {"modelRepository": "s3://models/resnet", "runtimeVersion": "26.09-py3"}
    found = admit(service(predictor={"triton": triton}), None, Store())
    model = found.manifest["spec"]["predictor"]["model"]
    assert model["storageUri"] == "s3://models/resnet"
    assert (model["modelFormat"], model["protocolVersion"]) == ({"name": "triton"}, "v2")
    assert model["runtimeVersion"] == "26.09-py3"
    assert found.warnings == (
        "spec.predictor.triton.modelRepository: is read as storageUri, which is KServe's word for it",
    )


@pytest.mark.parametrize(
    "block", ["sklearn", "xgboost", "tensorflow", "pytorch", "onnx", "huggingface", "pmml", "lightgbm", "paddle"]
)
def test_each_older_block_becomes_a_model(block: str) -> None:
    found = admit(service(predictor={block: {"storageUri": "s3://m/a"}}), None, Store()).manifest["spec"]["predictor"]
    assert found["model"]["modelFormat"] == {"name": block} and block not in found
    assert found["model"].get("protocolVersion") == ("v2" if block in ("onnx", "huggingface") else None)


def test_what_is_asked_for_stays_within_its_limit() -> None:
    given = {"limits": {"cpu": "500m"}, "requests": {"memory": "8Gi"}}
    model = {**SKLEARN["model"], "resources": given}
    found = admit(service(predictor={"model": model}), None, Store()).manifest["spec"]["predictor"]["model"][
        "resources"
    ]
    assert found == {"limits": {"cpu": "500m", "memory": "8Gi"}, "requests": {"cpu": "500m", "memory": "8Gi"}}


GRPC = {"modelFormat": {"name": "triton"}, "protocolVersion": "grpc-v2", "storageUri": "s3://m"}


@pytest.mark.parametrize(
    ("annotations", "spec", "said"),
    [
        ({MODE: "ModelMesh"}, {"predictor": SKLEARN}, "models have pods of their own"),
        ({}, {"predictor": SKLEARN, "transformer": {}}, "spec.transformer"),
        ({}, {"predictor": SKLEARN, "explainer": {}}, "spec.explainer"),
        ({}, {"predictor": SKLEARN, "explainer": {**CONTAINER, "art": {"type": "SquareAttack"}}}, "containers, art"),
        ({}, {"predictor": SKLEARN, "transformer": {**CONTAINER, "minReplicas": -1}}, "transformer.minReplicas"),
        ({}, {"predictor": SKLEARN, "transformer": {**CONTAINER, "minReplicas": 3, "maxReplicas": 2}}, "transformer.max"),
        ({}, {"predictor": {**SKLEARN, "containerConcurrency": -1}}, "containerConcurrency"),
        ({}, {"predictor": {**SKLEARN, "logger": {"url": "http://l", "mode": "some"}}}, "logger.mode"),
        ({}, {"predictor": {**SKLEARN, "logger": {}}}, "logger.url"),
        ({}, {"predictor": {**SKLEARN, "batcher": {"maxBatchSize": 0}}}, "batcher.maxBatchSize"),
        ({}, {"predictor": {"model": GRPC, "batcher": {}}}, "spec.predictor.batcher: stands before servers of HTTP/1.1"),
        ({}, {"predictor": {"model": GRPC, "logger": {"url": "http://l"}}}, "spec.predictor.logger: stands before"),
        ({}, {"predictor": {**SKLEARN, "workerSpec": {"pipelineParallelSize": 2}}}, "several nodes"),
        ({}, {"predictor": {**SKLEARN, "autoScaling": {"metrics": [CPU]}}}, "RawDeployment"),
        ({}, {"predictor": {**SKLEARN, "deploymentStrategy": {"type": "Recreate"}}}, "deploymentStrategy"),
        ({}, {"predictor": {**SKLEARN, "storageUris": [{"uri": "s3://a"}]}}, "beside the model's storageUri"),
        ({}, {"predictor": {**CONTAINER, "storageUris": [{"uri": "ftp://a"}]}}, "ftp"),
        ({}, {"predictor": {**CONTAINER, "storageUris": [{"uri": "s3://a", "mountPath": "/"}]}}, "mountPath"),
        ({}, {"predictor": {**CONTAINER, "storageUris": [{"uri": "s3://a", "mountPath": "/m/../x"}]}}, "without .."),
        (RAW, {"predictor": {**CONTAINER, "autoScaling": {"metrics": [QUEUE]}}}, "must be one of Resource"),
        (RAW, {"predictor": {**CONTAINER, "autoScaling": {"metrics": [{"type": "Resource"}]}}}, "resource"),
        (RAW, {"predictor": {**CONTAINER, "transformer": 1, "scaleMetric": "rps"}}, "rps"),
        ({**RAW, CLASS: "keda"}, {"predictor": {**CONTAINER, "scaleMetric": "cpu"}}, "scaleMetric"),
        ({**RAW, CLASS: "keda"}, {"predictor": {**CONTAINER, "autoScaling": {"metrics": [QUEUE, CPU]}}}, ""),
        (
            {**RAW, CLASS: "keda"},
            {"predictor": {**CONTAINER, "autoScaling": {"metrics": [{"type": "External", "external": {}}]}}},
            "query",
        ),
        ({"tidegate.dev/rollout": "red"}, {"predictor": SKLEARN}, "canary, blue-green"),
        ({"tidegate.dev/rollout-steps": "5:1m"}, {"predictor": SKLEARN}, "means nothing without"),
        ({"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-steps": "5:1m,5:1m"}, {"predictor": SKLEARN}, "rise"),
        ({"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-steps": "5%"}, {"predictor": SKLEARN}, "such as 5:2m"),
        ({"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-risk": "0"}, {"predictor": SKLEARN}, "0.001 to 100"),
        ({"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-lost": "x"}, {"predictor": SKLEARN}, "10m"),
        ({"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-speed": "x"}, {"predictor": SKLEARN}, "is none of"),
        (
            {"tidegate.dev/rollout": "canary", "tidegate.dev/rollout-steps": "5:1m, 100:5m", "tidegate.dev/rollout-risk": "0.1"},
            {"predictor": SKLEARN},
            "",
        ),
        ({}, {"predictor": {**CONTAINER}, "explainer": {"art": {"type": "SquareAttack"}}, "transformer": CONTAINER}, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(annotations: dict[str, str], spec: dict[str, Any], said: str) -> None:
    found = refused(service(annotations, **spec))
    assert said in found and bool(said) == bool(found), found


def canary(name: str = "next", share: Any = 20, **predictor: Any) -> dict[str, Any]:
    return {"predictor": {"name": name, **SKLEARN, **predictor}, "trafficPercent": share}


@pytest.mark.parametrize(
    ("annotations", "predictor", "canaries", "said"),
    [
        (RAW, SKLEARN, [canary()], ""),
        (RAW, SKLEARN, [canary("a", 60), canary("b", 40)], ""),
        (RAW, SKLEARN, [canary(share=0)], ""),
        ({}, SKLEARN, [canary()], "canaryTrafficPercent"),
        (RAW, SKLEARN, [canary("")], "name: is required"),
        (RAW, SKLEARN, [canary(), canary()], "must be its own"),
        (RAW, {**SKLEARN, "name": "next"}, [canary()], "must be its own"),
        (RAW, SKLEARN, [canary("a", 60), canary("b", 50)], "more than 100"),
        (RAW, SKLEARN, [canary(maxReplicas=3)], "maxReplicas"),
        (RAW, SKLEARN, [canary(minReplicas=2)], "at most that of the stable"),
        (RAW, CONTAINER, [canary()], "needs a predictor with a model"),
        (RAW, SKLEARN, [canary(share="20")], "whole number"),
    ],
)
def test_canaries(annotations: dict[str, str], predictor: dict[str, Any], canaries: list[Any], said: str) -> None:
    found = refused(service(annotations, predictor=predictor, canary=canaries))
    assert said in found and bool(said) == bool(found), found


def test_a_predictor_s_name_changes_together_with_its_model_only() -> None:
    other = {"model": {**SKLEARN["model"], "storageUri": "s3://m/b"}}
    before = service(RAW, predictor=SKLEARN)
    assert "storageUri" in refused(service(RAW, predictor={**SKLEARN, "name": "next"}), before)
    assert refused(service(RAW, predictor={**other, "name": "next"}), before) == ""


def graph(**nodes: Any) -> dict[str, Any]:
    api = "serving.kserve.io/v1alpha1"
    return {"apiVersion": api, "kind": "InferenceGraph", "metadata": {"name": "g"}, "spec": {"nodes": nodes}}


def node(*steps: dict[str, Any], kind: str = "Sequence") -> dict[str, Any]:
    return {"routerType": kind, "steps": list(steps)}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (graph(root=node({"serviceName": "a"}, {"nodeName": "next"}), next=node({"serviceUrl": "http://b"})), ""),
        (graph(root=node({"nodeName": "gone"})), "none of the graph's nodes"),
        (graph(root=node({"nodeName": "a"}), a=node({"nodeName": "root"})), "root"),
        (graph(root=node({"serviceName": "a"}, kind="Loop")), "Sequence, Splitter"),
        (graph(root=node()), "at least one"),
        (graph(root=node({"serviceName": "a", "dependency": "Firm"})), "Soft, Hard"),
        (graph(root=node({"serviceName": "a", "name": "x"}, {"serviceName": "b", "name": "x"})), "its own"),
        (graph(root=node({"serviceName": "a", "nodeName": "root"})), "must name one of"),
    ],
)
def test_graphs(manifest: dict[str, Any], said: str) -> None:
    found = refused(manifest)
    assert said in found and bool(said) == bool(found), found


GOAL = "tidegate.dev/target"


@pytest.mark.parametrize("goal", ["queue wait <= 1s", "p95 latency <= 300ms", "P99.9 latency ≤ 0.5 s", "latency<2m"])
def test_goals_are_let_in(goal: str) -> None:
    assert refused(service({GOAL: goal, "tidegate.dev/spare-replicas": "2"}, predictor=CONTAINER)) == ""


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({GOAL: "as fast as you can"}, GOAL),
        ({GOAL: "queue wait <= 0s"}, GOAL),
        ({GOAL: "latency <= 1s", "tidegate.dev/spare-replicas": "some"}, "spare-replicas"),
        ({GOAL: "latency <= 1s", "tidegate.dev/slots": "0"}, "slots"),
        ({"tidegate.dev/spare-replicas": "1"}, "means nothing without"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(annotations: dict[str, str], field: str) -> None:
    assert field in refused(service(annotations, predictor=CONTAINER))


def warned(annotations: dict[str, str], **predictor: Any) -> list[str]:
    given = {**CONTAINER, **predictor}
    return [*admit(service({GOAL: "latency <= 1s", **RAW, **annotations}, predictor=given), None, Store()).warnings]


def test_what_means_nothing_beside_a_goal_is_told() -> None:
    assert warned({}) == []
    (scale,) = warned({}, scaleMetric="cpu")
    assert scale.startswith("spec.predictor.scaleMetric: has no effect")
    (metrics,) = warned({}, autoScaling={"metrics": [CPU]})
    assert metrics.startswith("spec.predictor.autoScaling.metrics: has no effect")
    (other,) = warned({CLASS: "external"})
    assert CLASS in other
    assert "has no effect" in other


def test_a_goal_of_an_autoscaler_says_what_it_leaves_out() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web", "annotations": {GOAL: "latency <= 1s"}}

    def autoscaler(**spec: Any) -> dict[str, Any]:
        wanted = {"scaleTargetRef": target, "maxReplicas": 5, **spec}
        return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": wanted}

    assert admit(autoscaler(), None, Store()).warnings == ()
    (warning,) = admit(autoscaler(metrics=[CPU]), None, Store()).warnings
    assert warning.startswith("spec.metrics[0]: cpu has no effect beside")
    triggers = [
        {"type": "prometheus", "name": name, "metadata": {"query": "q", "threshold": "1"}} for name in ("rps", "other")
    ]
    spec = {"scaleTargetRef": target, "triggers": triggers}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}
    (warning,) = admit(scaled, None, Store()).warnings
    assert warning.startswith("spec.triggers[1].name: ")
