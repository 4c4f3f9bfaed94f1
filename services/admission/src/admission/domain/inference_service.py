"""InferenceServices, as KServe's webhooks default and check them."""

import re
from collections.abc import Iterable

from admission.domain.canaries import check_canaries
from admission.domain.component_scaling import METRIC, check_serverless_scaling, check_standard_scaling
from admission.domain.errors import FieldError
from admission.domain.goals import check_goal, warn_service_goal
from admission.domain.horizontal_autoscaler import BEHAVIOR, check_behavior
from admission.domain.rollout_plan import check_plan
from admission.domain.serving_runtime import check_pods
from admission.domain.shapes import (
    AMOUNTS,
    ANYTHING,
    MAPPING,
    TEXT,
    TEXT_MAP,
    TEXTS,
    WHOLE,
    Idle,
    ListOf,
    Shape,
    fields,
    one_of,
    within,
)
from admission.domain.storage_place import check_place, check_places
from admission.domain.world import Review
from kube import Manifest

GROUP = "serving.kserve.io/"
MODE, CLASS = f"{GROUP}deploymentMode", f"{GROUP}autoscalerClass"
STANDARD, SERVERLESS = ("RawDeployment", "Standard"), ("Serverless", "Knative")
CLASSES = ("hpa", "keda", "external", "none")
FORMATS = ("sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm", "paddle")
"""The older blocks, each for the models of one format."""
EXPLAINERS = ("art",)
COMPONENTS = ("predictor", "transformer", "explainer")
_V2 = ("triton", "onnx", "huggingface", "vLLM")
_PROTOCOLS = ("v1", "v2", "grpc-v1", "grpc-v2")
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_RESOURCES = {"cpu": "1", "memory": "2Gi"}
_ASKED = fields(requests=AMOUNTS, limits=AMOUNTS)
_STORAGE = fields(key=TEXT, path=TEXT, parameters=TEXT_MAP)
_OF_MODELS: dict[str, Shape] = {
    "storageUri": TEXT,
    "modelRepository": TEXT,
    "storage": _STORAGE,
    "runtime": TEXT,
    "runtimeVersion": TEXT,
    "protocolVersion": TEXT,
    "resources": _ASKED,
    "env": ListOf(fields(name=TEXT)),
    "args": TEXTS,
    "image": TEXT,
}
_MODEL = fields(modelFormat=fields(name=TEXT, version=TEXT), **_OF_MODELS)
BLOCK = fields(**_OF_MODELS)
_LOGGER = fields(
    url=TEXT,
    mode=TEXT,
    metadataHeaders=TEXTS,
    metadataAnnotations=Idle(TEXTS),
    storage=fields(path=TEXT, key=Idle(TEXT), parameters=TEXT_MAP, serviceAccountName=Idle(TEXT)),
)
_BATCHER = fields(maxBatchSize=WHOLE, maxLatency=WHOLE, timeout=Idle(WHOLE))
_COMPONENT: dict[str, Shape] = {
    "minReplicas": WHOLE,
    "maxReplicas": WHOLE,
    "scaleTarget": WHOLE,
    "scaleMetric": TEXT,
    "scaleMetricType": Idle(TEXT),
    "autoScaling": fields(metrics=ListOf(METRIC), behavior=BEHAVIOR),
    "containers": ListOf(fields(name=TEXT)),
    "containerConcurrency": WHOLE,
    "canaryTrafficPercent": WHOLE,
    "timeout": WHOLE,
    "logger": _LOGGER,
    "batcher": _BATCHER,
    "labels": TEXT_MAP,
    "annotations": TEXT_MAP,
    "deploymentStrategy": ANYTHING,
    "storageUris": ListOf(fields(uri=TEXT, mountPath=TEXT)),
}
_PREDICTOR: dict[str, Shape] = {
    **_COMPONENT,
    "name": TEXT,
    "workerSpec": MAPPING,
    "model": _MODEL,
    **dict.fromkeys(FORMATS, BLOCK),
}
_EXPLAINER = fields(
    type=TEXT,
    storageUri=TEXT,
    runtimeVersion=TEXT,
    config=TEXT_MAP,
    args=TEXTS,
    resources=_ASKED,
    env=ListOf(fields(name=TEXT)),
)
CANARY = fields(**_PREDICTOR)
SERVICE_SPEC = fields(
    predictor=fields(**_PREDICTOR),
    transformer=fields(**_COMPONENT),
    explainer=fields(**_COMPONENT, **dict.fromkeys(EXPLAINERS, _EXPLAINER)),
    canary=ListOf(fields(predictor=CANARY, trafficPercent=WHOLE)),
)
_OWN = frozenset((*_PREDICTOR, *EXPLAINERS)) - {"containers"}
"""What of a component is no part of its pods' spec."""


def service_name(path: str, name: str) -> Iterable[FieldError]:
    """What KServe's children can be named after."""
    if not _NAME.fullmatch(name):
        yield FieldError(path, name, "must be a name of lower-case letters, digits or '-', beginning with a letter")


def default_service(review: Review) -> None:
    """An older block for one format becomes a model; whatever serves has a container of one CPU and two GiB."""
    for canary in review.spec.get("canary") or ():
        _default_model(canary.get("predictor") or {})
    _default_model(review.spec.get("predictor") or {})
    explainer: Manifest = review.spec.get("explainer") or {}
    for block in [explainer[name] for name in EXPLAINERS if explainer.get(name)]:
        _default_resources(block)
    for role in COMPONENTS:
        component: Manifest = review.spec.get(role) or {}
        containers: list[Manifest] = component.get("containers") or []
        if containers and not component.get("model"):
            containers[0].setdefault("name", "kserve-container")


def _default_model(predictor: Manifest) -> None:
    given = [name for name in FORMATS if name in predictor]
    if len(given) == 1 and "model" not in predictor and not predictor.get("containers"):
        predictor["model"] = {"modelFormat": {"name": given[0]}, **(predictor.pop(given[0]) or {})}
    model = predictor.get("model")
    if model:
        if model.get("modelRepository"):
            model.setdefault("storageUri", model["modelRepository"])
        if (model.get("modelFormat") or {}).get("name") in _V2:
            model.setdefault("protocolVersion", "v2")
        _default_resources(model)


def _default_resources(holder: Manifest) -> None:
    """What is asked for is at most the limit, and a limit at least what is asked for."""
    resources = holder.setdefault("resources", {})
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    resources["requests"] = {**_RESOURCES, **{name: limits[name] for name in _RESOURCES if name in limits}, **requests}
    resources["limits"] = {**_RESOURCES, **{name: requests[name] for name in _RESOURCES if name in requests}, **limits}


def check_service(review: Review) -> Iterable[FieldError]:
    """One way to run each component, bounds that can be met, and metrics that the mode knows."""
    annotations: dict[str, str] = review.metadata.get("annotations") or {}
    mode, scaled_by = annotations.get(MODE, SERVERLESS[0]), annotations.get(CLASS, CLASSES[0])
    yield from _check_mode(review, mode)
    yield from one_of(f'metadata.annotations["{CLASS}"]', annotations.get(CLASS), CLASSES)
    yield from check_plan(annotations)
    yield from check_goal(annotations)
    yield from _check_predictor(review)
    for role in COMPONENTS:
        component = review.spec.get(role)
        if component is None and role != COMPONENTS[0]:
            continue
        yield from _check_component(f"spec.{role}", component or {}, mode, scaled_by)
    for role in COMPONENTS[1:]:
        yield from _check_beside(role, review.spec.get(role))
    yield from check_canaries(review.spec, mode)


def warn_service(review: Review) -> Iterable[str]:
    """What is read otherwise than it is written."""
    if ((review.spec.get("predictor") or {}).get("model") or {}).get("modelRepository"):
        yield "spec.predictor.triton.modelRepository: is read as storageUri, which is KServe's word for it"
    annotations: dict[str, str] = review.metadata.get("annotations") or {}
    if annotations.get(MODE) in STANDARD:
        yield from warn_service_goal(
            annotations, review.spec.get("predictor") or {}, annotations.get(CLASS, CLASSES[0])
        )


def _check_component(path: str, component: Manifest, mode: str, scaled_by: str) -> Iterable[FieldError]:
    yield from check_pods(path, component, _OWN)
    yield from _check_bounds(path, component)
    if mode in STANDARD:
        yield from check_standard_scaling(path, component, scaled_by)
    else:
        yield from check_serverless_scaling(path, component)
    yield from check_behavior(f"{path}.autoScaling.behavior", (component.get("autoScaling") or {}).get("behavior"))
    yield from check_places(path, component)
    yield from _check_agent(path, component)


def _check_agent(path: str, component: Manifest) -> Iterable[FieldError]:
    logger, batcher = component.get("logger"), component.get("batcher") or {}
    if logger is not None:
        yield from one_of(f"{path}.logger.mode", logger.get("mode"), ("all", "request", "response"))
        if not logger.get("url"):
            yield FieldError(f"{path}.logger.url", None, "is required: where what goes by is logged")
    protocol = str((component.get("model") or {}).get("protocolVersion") or "")
    if protocol.startswith("grpc"):
        for name in ("batcher", "logger"):
            if component.get(name) is not None:
                told = f"stands before servers of HTTP/1.1 only, and the model's protocolVersion is {protocol}"
                yield FieldError(f"{path}.{name}", None, told)
    yield from within(f"{path}.batcher.maxBatchSize", batcher.get("maxBatchSize"), 1)
    yield from within(f"{path}.batcher.maxLatency", batcher.get("maxLatency"), 1)


def _check_mode(review: Review, mode: str) -> Iterable[FieldError]:
    path = f'metadata.annotations["{MODE}"]'
    if mode == "ModelMesh":
        rule = "is not served here: models have pods of their own; use Serverless or RawDeployment"
        yield FieldError(path, mode, rule)
    else:
        yield from one_of(path, mode, (*STANDARD, *SERVERLESS))
    old = None if review.old is None else review.old.annotations.get(MODE, SERVERLESS[0])
    if old is not None and (old in STANDARD) != (mode in STANDARD):
        rule = f"may not change (it is {old}); delete the service and make it again"
        yield FieldError(f"{path} (deploymentMode)", mode, rule)


def _check_predictor(review: Review) -> Iterable[FieldError]:
    predictor: Manifest = review.spec.get("predictor") or {}
    ways = [name for name in (*FORMATS, "model", "containers") if predictor.get(name)]
    if "model" in ways and "containers" in ways:
        ways.remove("containers")  # these run beside the model
    if len(ways) != 1:
        rule = f"must say in one way what is to run: model or containers; given: {', '.join(ways) or 'none'}"
        yield FieldError("spec.predictor", None, rule)
    for name in (*FORMATS, "model"):
        yield from check_place(f"spec.predictor.{name}.storageUri", (predictor.get(name) or {}).get("storageUri"))
    yield from one_of(
        "spec.predictor.model.protocolVersion", (predictor.get("model") or {}).get("protocolVersion"), _PROTOCOLS
    )
    if predictor.get("workerSpec"):
        yield FieldError(
            "spec.predictor.workerSpec", None, "models over several nodes are not served here; leave it out"
        )
    yield from _check_renamed(review, predictor)


def _check_renamed(review: Review, predictor: Manifest) -> Iterable[FieldError]:
    """A name that goes over to another predictor goes over to its model."""
    old: Manifest = review.before("spec", "predictor") or {}
    is_same = (old.get("model") or {}).get("storageUri") == (predictor.get("model") or {}).get("storageUri")
    if old.get("name", "") != predictor.get("name", "") and old and predictor.get("model") and is_same:
        rule = "may only change together with the model's storageUri, as a canary is promoted"
        yield FieldError("spec.predictor.name", predictor.get("name"), rule)


def _check_beside(role: str, component: Manifest | None) -> Iterable[FieldError]:
    """A transformer or explainer brings what it runs."""
    if component is None:
        return
    ways = [name for name in ("containers", *(EXPLAINERS if role == "explainer" else ())) if component.get(name)]
    if len(ways) != 1:
        yield FieldError(
            f"spec.{role}", None, f"must say in one way what is to run; given: {', '.join(ways) or 'none'}"
        )


def _check_bounds(path: str, component: Manifest) -> Iterable[FieldError]:
    least, most = component.get("minReplicas"), component.get("maxReplicas")
    yield from within(f"{path}.minReplicas", least, 0)
    yield from within(f"{path}.maxReplicas", most, 0)
    if most and (1 if least is None else least) > most:
        rule = f"must be at least minReplicas, which is {1 if least is None else least}"
        yield FieldError(f"{path}.maxReplicas", most, rule)
    yield from within(f"{path}.containerConcurrency", component.get("containerConcurrency"), 0)
    yield from within(f"{path}.canaryTrafficPercent", component.get("canaryTrafficPercent"), 0, 100)
    yield from within(f"{path}.timeout", component.get("timeout"), 0)
