"""InferenceServices and the runtimes of their models, as KServe's webhooks default and check them."""

import re
from collections.abc import Collection, Iterable

from admission.domain.errors import FieldError
from admission.domain.horizontal_autoscaler import BEHAVIOR, check_behavior
from admission.domain.pod_template import POD_SPEC, check_pod_spec
from admission.domain.shapes import (
    AMOUNTS,
    ANYTHING,
    TEXT,
    TEXT_MAP,
    TEXTS,
    TRUTH,
    WHOLE,
    Idle,
    ListOf,
    MapOf,
    Reading,
    Shape,
    fields,
    one_of,
    within,
)
from admission.domain.world import Review
from kube import Manifest

GROUP = "serving.kserve.io/"
MODE, CLASS = f"{GROUP}deploymentMode", f"{GROUP}autoscalerClass"
STANDARD, SERVERLESS = ("RawDeployment", "Standard"), ("Serverless", "Knative")
CLASSES = ("hpa", "keda", "external", "none")
FORMATS = ("sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm", "paddle")
"""The older blocks, each for the models of one format."""
_V2 = ("triton", "onnx", "huggingface", "vLLM")
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_STORAGE = re.compile(
    r"(s3|gs|hdfs|webhdfs|hf|modelscope|pvc|oci|oci\+native|oci\+fetch|https?|file)://.+|/.*|[\w.-]+(/[\w.-]+)*"
)
_RESOURCES = {"cpu": "1", "memory": "2Gi"}
_ASKED = fields(requests=AMOUNTS, limits=AMOUNTS)
_MODEL = fields(
    modelFormat=fields(name=TEXT, version=TEXT),
    storageUri=TEXT,
    runtime=TEXT,
    runtimeVersion=TEXT,
    protocolVersion=TEXT,
    resources=_ASKED,
    env=ListOf(fields(name=TEXT)),
)
BLOCK = fields(storageUri=TEXT, modelRepository=TEXT, runtimeVersion=TEXT, protocolVersion=TEXT, resources=_ASKED)
_COMPONENT: dict[str, Shape] = {
    "minReplicas": WHOLE,
    "maxReplicas": WHOLE,
    "scaleTarget": WHOLE,
    "scaleMetric": TEXT,
    "autoScaling": fields(metrics=ListOf(ANYTHING), behavior=BEHAVIOR),
    "containerConcurrency": WHOLE,
    "canaryTrafficPercent": WHOLE,
    "timeout": Idle(WHOLE),
    "logger": Idle(ANYTHING),
    "batcher": Idle(ANYTHING),
    "workerSpec": Idle(ANYTHING),
    "labels": TEXT_MAP,
    "annotations": TEXT_MAP,
    "model": _MODEL,
    **dict.fromkeys(FORMATS, BLOCK),
}
SERVICE_SPEC = fields(
    predictor=fields(**_COMPONENT), transformer=Idle(ANYTHING), explainer=Idle(ANYTHING), canary=Idle(ANYTHING)
)
_OWN = frozenset((*_COMPONENT, "scaleMetricType", "name", "storageUris", "deploymentStrategy"))
"""What of a predictor is no part of its pods' spec."""
_OF_RUNTIME = frozenset(
    [
        *("supportedModelFormats", "multiModel", "disabled", "protocolVersions", "workerSpec", "replicas"),
        *("grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "storageHelper", "builtInAdapter"),
    ]
)
RUNTIME_SPEC = fields(
    supportedModelFormats=ListOf(fields(name=TEXT, version=TEXT, autoSelect=TRUTH, priority=WHOLE)),
    protocolVersions=TEXTS,
    disabled=TRUTH,
    multiModel=TRUTH,
)


def service_name(path: str, name: str) -> Iterable[FieldError]:
    """What KServe's children can be named after."""
    if not _NAME.fullmatch(name):
        yield FieldError(path, name, "must be a name of lower-case letters, digits or '-', beginning with a letter")


def default_service(review: Review) -> None:
    """An older block for one format becomes a model; a model has a container of one CPU and two GiB."""
    predictor: Manifest = review.spec.get("predictor") or {}
    given = [name for name in FORMATS if name in predictor]
    if len(given) == 1 and "model" not in predictor and not predictor.get("containers"):
        block = predictor.pop(given[0]) or {}
        _renamed(block)
        predictor["model"] = {"modelFormat": {"name": given[0]}, **block}
    model = predictor.get("model")
    if model:
        if (model.get("modelFormat") or {}).get("name") in _V2:
            model.setdefault("protocolVersion", "v2")
        resources = model.setdefault("resources", {})
        for part in ("requests", "limits"):
            resources[part] = {**_RESOURCES, **(resources.get(part) or {})}


def check_service(review: Review) -> Iterable[FieldError]:
    """One way to run it, bounds that can be met, and a metric that its mode knows."""
    annotations: dict[str, str] = review.metadata.get("annotations") or {}
    predictor: Manifest = review.spec.get("predictor") or {}
    mode = annotations.get(MODE, SERVERLESS[0])
    yield from one_of(f'metadata.annotations["{MODE}"]', mode, (*STANDARD, *SERVERLESS))
    yield from one_of(f'metadata.annotations["{CLASS}"]', annotations.get(CLASS), CLASSES)
    yield from _check_mode(review, mode)
    yield from _check_implementation(predictor)
    yield from _check_pods("spec.predictor", predictor, _OWN)
    yield from _check_bounds(predictor)
    check = _check_standard if mode in STANDARD else _check_serverless
    yield from check(predictor, annotations.get(CLASS, CLASSES[0]))
    yield from check_behavior(
        "spec.predictor.autoScaling.behavior", (predictor.get("autoScaling") or {}).get("behavior")
    )


def warn_service(review: Review) -> Iterable[str]:
    """What KServe does and nothing here does yet."""
    if ((review.spec.get("predictor") or {}).get("model") or {}).get("storageUri"):
        yield "spec.predictor.model.storageUri: nothing here fetches models yet; the container has to find it by itself"


def check_runtime(review: Review) -> Iterable[FieldError]:
    """Nobody may be left in doubt which runtime is meant."""
    rows = [row for row in review.spec.get("supportedModelFormats") or () if row.get("autoSelect")]
    for name in sorted({str(row.get("name")) for row in rows}):
        said = {row.get("priority") for row in rows if row.get("name") == name}
        if len(said) > 1:
            shown = ", ".join(sorted(map(str, said)))
            yield FieldError("spec.supportedModelFormats", name, f"has several priorities ({shown}); give it one")
    for row in rows:
        yield from within("spec.supportedModelFormats.priority", row.get("priority"), 1)
    yield from _check_pods("spec", review.spec, _OF_RUNTIME)
    yield from _check_rivals(review, rows)


def check_graph(review: Review) -> Iterable[FieldError]:
    """There is a root, steps name one target each, and the weights of a splitter are the whole."""
    nodes: Manifest = review.spec.get("nodes") or {}
    if "root" not in nodes:
        yield FieldError("spec.nodes.root", None, "is required: a graph begins at its root")
    for name, node in nodes.items():
        steps: list[Manifest] = node.get("steps") or []
        path = f"spec.nodes.{name}.steps"
        if node.get("routerType") == "Splitter" and sum(int(step.get("weight") or 0) for step in steps) != 100:
            yield FieldError(path, None, "the weight of all steps of a Splitter together must be 100")
        names = [step["name"] for step in steps if step.get("name")]
        if len(set(names)) < len(names):
            yield FieldError(path, None, "the name of a step must be its own")
        for index, step in enumerate(steps):
            targets = [field for field in ("nodeName", "serviceName", "serviceUrl") if step.get(field)]
            if len(targets) != 1:
                yield FieldError(f"{path}[{index}]", None, "must name one of nodeName, serviceName and serviceUrl")


GRAPH_SPEC = fields(
    nodes=MapOf(
        fields(
            routerType=TEXT,
            steps=ListOf(fields(name=TEXT, nodeName=TEXT, serviceName=TEXT, serviceUrl=TEXT, weight=WHOLE)),
        )
    )
)


def _renamed(block: Manifest) -> None:
    """Triton's own manual says modelRepository, where KServe says storageUri."""
    if "modelRepository" in block:
        block.setdefault("storageUri", block.pop("modelRepository"))


def _check_pods(path: str, holder: Manifest, own: Collection[str]) -> Iterable[FieldError]:
    """What is not the holder's ``own`` is the spec of pods, as far as it is said here."""
    if not holder.get("containers"):
        return
    reading = Reading()
    spec = reading.read(path, POD_SPEC, {name: value for name, value in holder.items() if name not in own})
    yield from reading.errors or check_pod_spec(path, spec)


def _check_mode(review: Review, mode: str) -> Iterable[FieldError]:
    old = None if review.old is None else review.old.annotations.get(MODE, SERVERLESS[0])
    if old is not None and (old in STANDARD) != (mode in STANDARD):
        rule = f"may not change (it is {old}); delete the service and make it again"
        yield FieldError(f'metadata.annotations["{MODE}"] (deploymentMode)', mode, rule)


def _check_implementation(predictor: Manifest) -> Iterable[FieldError]:
    ways = [name for name in (*FORMATS, "model", "containers") if predictor.get(name)]
    if "model" in ways and "containers" in ways:
        ways.remove("containers")  # these run beside the model
    if len(ways) != 1:
        rule = f"must say in one way what is to run: model or containers; given: {', '.join(ways) or 'none'}"
        yield FieldError("spec.predictor", None, rule)
    for name in (*FORMATS, "model"):
        uri = (predictor.get(name) or {}).get("storageUri")
        if uri and not _STORAGE.fullmatch(uri):
            rule = "must be a path, or one of s3, gs, hdfs, webhdfs, hf, modelscope, pvc, oci, http, https and file"
            yield FieldError(f"spec.predictor.{name}.storageUri", uri, rule)


def _check_bounds(predictor: Manifest) -> Iterable[FieldError]:
    least, most = predictor.get("minReplicas"), predictor.get("maxReplicas")
    yield from within("spec.predictor.minReplicas", least, 0)
    yield from within("spec.predictor.maxReplicas", most, 0)
    if most and (1 if least is None else least) > most:
        yield FieldError(
            "spec.predictor.maxReplicas",
            most,
            f"must be at least minReplicas, which is {1 if least is None else least}",
        )
    yield from within("spec.predictor.containerConcurrency", predictor.get("containerConcurrency"), 0)
    yield from within("spec.predictor.canaryTrafficPercent", predictor.get("canaryTrafficPercent"), 0, 100)


def _check_standard(predictor: Manifest, scaled_by: str) -> Iterable[FieldError]:
    metric = predictor.get("scaleMetric")
    if scaled_by == "hpa":
        yield from one_of("spec.predictor.scaleMetric", metric, ("cpu", "memory"))
        yield from within("spec.predictor.scaleTarget", predictor.get("scaleTarget"), 1, 100)


def _check_serverless(predictor: Manifest, scaled_by: str) -> Iterable[FieldError]:
    yield from one_of("spec.predictor.scaleMetric", predictor.get("scaleMetric"), ("concurrency", "rps"))
    yield from within("spec.predictor.scaleTarget", predictor.get("scaleTarget"), 1)
    if predictor.get("deploymentStrategy"):
        yield FieldError("spec.predictor.deploymentStrategy", None, "means nothing for revisions; leave it out")


def _check_rivals(review: Review, rows: Iterable[Manifest]) -> Iterable[FieldError]:
    """No other runtime of the scope claims the same version of a format, by the same protocol, at the same priority."""
    if review.spec.get("disabled"):
        return
    mine = {(row.get("name"), row.get("version"), row.get("priority")) for row in rows}
    spoken = set(review.spec.get("protocolVersions") or ())
    for key, other in sorted(review.world.of_kind(review.key.kind).items()):
        if key == review.key or key.namespace != review.key.namespace or other.spec.get("disabled"):
            continue
        theirs = {
            (row.get("name"), row.get("version"), row.get("priority"))
            for row in other.spec.get("supportedModelFormats") or ()
            if row.get("autoSelect")
        }
        if spoken & set(other.spec.get("protocolVersions") or ()):
            for name, version, priority in sorted(mine & theirs, key=str):
                rule = f"{name} {version} has priority {priority} in the runtime {key.name} already; give it another"
                yield FieldError("spec.supportedModelFormats", name, rule)
