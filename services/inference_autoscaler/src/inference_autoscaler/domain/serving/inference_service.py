"""What an InferenceService asks for, read once from its object."""

from dataclasses import dataclass

from inference_autoscaler.domain.rollout import plan as rollout_plan
from inference_autoscaler.domain.serving.component import EXPLAINER, PREDICTOR, TRANSFORMER, Component
from inference_autoscaler.domain.serving.component import read as read_component
from inference_autoscaler.domain.target.goal import AIMS
from kube import Object

SERVICE = "InferenceService.serving.kserve.io"
GROUP = "serving.kserve.io/"
MODE, STOP, CLASS = f"{GROUP}deploymentMode", f"{GROUP}stop", f"{GROUP}autoscalerClass"
SERVERLESS, STANDARD = "Knative", "Standard"
_MODES = {"Serverless": SERVERLESS, SERVERLESS: SERVERLESS, "RawDeployment": STANDARD, STANDARD: STANDARD}
KNATIVE = "autoscaling.knative.dev/"


@dataclass(frozen=True, slots=True)
class Canary:
    """A predictor beside the stable one, and the percentage of the requests that it is to have."""

    component: Component
    percent: int


@dataclass(frozen=True, slots=True)
class Inference:
    """An InferenceService. Its first component is the predictor."""

    mode: str
    stopped: bool
    scaled_by: str
    components: tuple[Component, ...]
    plan: rollout_plan.Plan | None = None
    """How new revisions are taken into use; None: all at once, or by the share that the predictor gives them."""

    canaries: tuple[Canary, ...] = ()
    """In standard mode: predictors beside the stable one."""

    @property
    def predictor(self) -> Component:
        return self.components[0]


def read(item: Object) -> Inference:
    """What the object says. Raises ValueError, TypeError or KeyError for what cannot be served here."""
    annotations = item.annotations
    mode = annotations.get(MODE, "Serverless")
    if mode not in _MODES:
        raise ValueError(f"deploymentMode {mode} is none of {', '.join(sorted(_MODES))}")
    own = {name: value for name, value in annotations.items() if name.startswith(KNATIVE) or name in AIMS}
    roles = [role for role in (PREDICTOR, TRANSFORMER, EXPLAINER) if role == PREDICTOR or item.spec.get(role)]
    components = tuple(read_component(role, item.spec[role], own) for role in roles)
    canaries = tuple(
        Canary(read_component(PREDICTOR, one["predictor"], own), int(one["trafficPercent"]))
        for one in item.spec.get("canary") or ()
    )
    share = canaries[0].percent if canaries else components[0].share
    return Inference(
        _MODES[mode],
        annotations.get(STOP) == "true",
        annotations.get(CLASS, "hpa"),
        components,
        rollout_plan.read(annotations, share),
        canaries,
    )
