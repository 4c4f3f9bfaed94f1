"""What an InferenceService asks for, read once from its object."""

from dataclasses import dataclass, replace

from inference_autoscaler.domain.rollout import plan as rollout_plan
from inference_autoscaler.domain.serving.model_storage import Source, credentials, with_models
from inference_autoscaler.domain.serving.runtimes import CONTAINER, SOURCE, Model, pod_of
from kube import Manifest, Object, Store

SERVICE = "InferenceService.serving.kserve.io"
GROUP = "serving.kserve.io/"
MODE, STOP, CLASS = f"{GROUP}deploymentMode", f"{GROUP}stop", f"{GROUP}autoscalerClass"
SERVERLESS, STANDARD = "Knative", "Standard"
_MODES = {"Serverless": SERVERLESS, SERVERLESS: SERVERLESS, "RawDeployment": STANDARD, STANDARD: STANDARD}
KNATIVE, OWN = "autoscaling.knative.dev/", "autoscaling.tidegate.dev/"
"""Groups of the annotations that a service's pods are scaled by."""
_OF_PREDICTOR = frozenset(
    [
        *("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling"),
        *("containerConcurrency", "timeout", "canaryTrafficPercent", "logger", "batcher", "labels", "annotations"),
        *("deploymentStrategy", "model", "workerSpec", "name", "storageUris"),
    ]
)
"""What of a predictor is no part of its pods' spec."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """``pod`` is the spec of its pods, without what a runtime says for its ``model``.

    ``share`` is the percentage of the newest revision, None for all of it. ``maximum`` 0 is no limit.
    """

    pod: Manifest
    model: Model | None
    labels: dict[str, str]
    annotations: dict[str, str]
    minimum: int
    maximum: int
    share: int | None
    concurrency: int | None
    metric: str
    target: str | None
    metrics: list[Manifest]
    behavior: Manifest | None
    strategy: Manifest | None


@dataclass(frozen=True, slots=True)
class Inference:
    """An InferenceService."""

    mode: str
    stopped: bool
    scaled_by: str
    predictor: Predictor
    plan: rollout_plan.Plan | None = None
    """How new revisions are taken into use; None: all at once, or by the share that the predictor gives them."""


def read(item: Object) -> Inference:
    """What the object says. Raises ValueError, TypeError or KeyError for what cannot be served here."""
    annotations = item.annotations
    mode = annotations.get(MODE, "Serverless")
    if mode not in _MODES:
        raise ValueError(f"deploymentMode {mode} is none of {', '.join(sorted(_MODES))}")
    given: Manifest = item.spec["predictor"]
    if not given.get("containers") and not given.get("model"):
        raise ValueError("a predictor has containers of its own, or a model")
    own = {name: value for name, value in annotations.items() if name.startswith((KNATIVE, OWN))}
    predictor = _predictor(given, own)
    return Inference(
        _MODES[mode],
        annotations.get(STOP) == "true",
        annotations.get(CLASS, "hpa"),
        predictor,
        rollout_plan.read(annotations, predictor.share),
    )


def resolved(item: Object, spec: Inference, store: Store) -> Inference:
    """With the pods that a runtime makes of the model, where there is one; containers of its own run beside it.

    Raises NoRuntime.
    """
    predictor = spec.predictor
    if predictor.model is None:
        return spec
    made = pod_of(predictor.model, item.namespace, store)
    containers = [*made["containers"], *(predictor.pod.get("containers") or ())]
    pod = {**made, **predictor.pod, "containers": containers}
    if predictor.model.storage:
        account = str(pod.get("serviceAccountName") or "")
        known = credentials(item.namespace, account, store)
        pod = with_models(pod, (CONTAINER,), (Source(predictor.model.storage),), known)
    return replace(spec, predictor=replace(predictor, pod=pod))


def _predictor(given: Manifest, annotations: dict[str, str]) -> Predictor:
    minimum, maximum, target = given.get("minReplicas"), given.get("maxReplicas"), given.get("scaleTarget")
    share, concurrency = given.get("canaryTrafficPercent"), given.get("containerConcurrency")
    scaling = given.get("autoScaling") or {}
    model = Model.of(given["model"]) if given.get("model") else None
    source = {SOURCE: model.storage} if model and model.storage else {}
    return Predictor(
        {name: value for name, value in given.items() if name not in _OF_PREDICTOR},
        model,
        given.get("labels") or {},
        {**annotations, **(given.get("annotations") or {}), **source},
        1 if minimum is None else int(minimum),
        int(maximum or 0),
        None if share is None else int(share),
        None if concurrency is None else int(concurrency),
        str(given.get("scaleMetric") or ""),
        None if target is None else str(target),
        list(scaling.get("metrics") or ()),
        scaling.get("behavior"),
        given.get("deploymentStrategy"),
    )
