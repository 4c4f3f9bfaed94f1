"""One component of an InferenceService, read once: its predictor, its transformer or its explainer."""

from dataclasses import dataclass

from inference_autoscaler.domain.serving.agent import Agent
from inference_autoscaler.domain.serving.model_storage import FOLDER, Source
from inference_autoscaler.domain.serving.runtimes import CONTAINER, Model
from inference_autoscaler.domain.target.goal import AIMS
from kube import Manifest, Object

PREDICTOR, TRANSFORMER, EXPLAINER = "predictor", "transformer", "explainer"
_EXPLAINERS = {"art": "kserve/art-explainer"}
_OWN = frozenset(
    [
        *("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling"),
        *("containerConcurrency", "timeout", "canaryTrafficPercent", "logger", "batcher", "labels", "annotations"),
        *("deploymentStrategy", "model", "workerSpec", "name", "storageUris", *_EXPLAINERS),
    ]
)
"""What of a component is no part of its pods' spec."""
_STORAGE_VARIABLE = "STORAGE_URI"


@dataclass(frozen=True, slots=True)
class Component:
    """``pod`` is the spec of its pods, without what a runtime says for its ``model``; ``name`` is its own, "" where it has none.

    ``share`` is the percentage of the newest revision, None for all of it. ``maximum`` 0 is no limit. ``sources`` are where
    its models are fetched from.
    """

    role: str
    name: str
    pod: Manifest
    model: Model | None
    sources: tuple[Source, ...]
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
    agent: Agent | None = None
    has_minimum: bool = False
    """Whether the minimum is given."""

    digest: str = ""
    """A short text that differs where the pods do, once they are known; how many there are is no part of it."""

    runtime: Object | None = None
    """The runtime that was chosen for its model."""

    @property
    def pod_annotations(self) -> dict[str, str]:
        """Those of its pods: what a service aims at is no part of these, so that another goal needs no new pods."""
        return {name: value for name, value in self.annotations.items() if name not in AIMS}


def read(role: str, given: Manifest, annotations: dict[str, str]) -> Component:
    """What the object says of one component. Raises ValueError, TypeError or KeyError for what cannot be served here."""
    if given.get("workerSpec"):
        raise ValueError(f"{role}.workerSpec: models over several nodes are not served here; leave it out")
    minimum, maximum, target = given.get("minReplicas"), given.get("maxReplicas"), given.get("scaleTarget")
    share, concurrency = given.get("canaryTrafficPercent"), given.get("containerConcurrency")
    scaling = given.get("autoScaling") or {}
    model = Model.of(given["model"]) if given.get("model") else None
    pod = {name: value for name, value in given.items() if name not in _OWN}
    pod["containers"] = _containers(role, given, pod.get("containers") or [])
    if not pod["containers"] and model is None:
        raise ValueError(f"a {role} has containers of its own, or a model")
    sources = _sources(role, given, model, pod["containers"])
    return Component(
        role,
        str(given.get("name") or "") if role == PREDICTOR else "",
        {**pod, "containers": [_without_storage(one) for one in pod["containers"]]},
        model,
        sources,
        given.get("labels") or {},
        {**annotations, **(given.get("annotations") or {})},
        1 if minimum is None else int(minimum),
        int(maximum or 0),
        None if share is None else int(share),
        None if concurrency is None else int(concurrency),
        str(given.get("scaleMetric") or ""),
        None if target is None else str(target),
        list(scaling.get("metrics") or ()),
        scaling.get("behavior"),
        given.get("deploymentStrategy"),
        Agent.of(given),
        minimum is not None,
    )


def _containers(role: str, given: Manifest, own: list[Manifest]) -> list[Manifest]:
    """Its containers, the first of which serves; an explainer's block is one."""
    for name, image in _EXPLAINERS.items():
        block = given.get(name)
        if role == EXPLAINER and block:
            settings = [
                word for key, value in sorted((block.get("config") or {}).items()) for word in (f"--{key}", value)
            ]
            kind = ["--adversary_type", str(block.get("type") or "")]
            return [
                {
                    "name": CONTAINER,
                    "image": f"{image}:{block.get('runtimeVersion') or 'latest'}",
                    "args": [*kind, *settings, *(block.get("args") or ())],
                    **{part: block[part] for part in ("resources", "env") if part in block},
                }
            ]
    return [{**one, "name": one.get("name") or CONTAINER} if index == 0 else one for index, one in enumerate(own)]


def _sources(role: str, given: Manifest, model: Model | None, containers: list[Manifest]) -> tuple[Source, ...]:
    """Where models come from: the model's own place, several, or a variable of a container that serves by itself."""
    if model is not None and model.storage:
        return (Source(model.storage),)
    several = given.get("storageUris") or ()
    if several:
        return tuple(Source(str(one["uri"]), str(one.get("mountPath") or FOLDER)) for one in several)
    for name in _EXPLAINERS if role == EXPLAINER else ():
        if uri := (given.get(name) or {}).get("storageUri"):
            return (Source(str(uri)),)
    variables = (one for container in containers[:1] for one in container.get("env") or ())
    return tuple(
        Source(str(one["value"])) for one in variables if one.get("name") == _STORAGE_VARIABLE and one.get("value")
    )


def _without_storage(container: Manifest) -> Manifest:
    """The server finds its model in a folder, wherever it came from."""
    variables = container.get("env") or ()
    if not any(one.get("name") == _STORAGE_VARIABLE for one in variables):
        return container
    told = [{**one, "value": FOLDER} if one.get("name") == _STORAGE_VARIABLE else one for one in variables]
    return {**container, "env": told}
