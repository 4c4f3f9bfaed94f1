"""What users should feel, as sizes go by it: the annotations, as far as they can be wrong, and what they make meaningless."""

import re
from collections.abc import Iterable, Mapping

from admission.domain.errors import FieldError
from admission.domain.horizontal_autoscaler import DEFAULT_METRIC
from admission.domain.world import Review
from kube import Manifest

GOAL, SPARE, SLOTS = "tidegate.dev/target", "tidegate.dev/spare-replicas", "tidegate.dev/slots"
LOADS = ("rps", "concurrency")
"""What is measured of a load: requests that come in a second, and those that wait or are answered."""
_WORDS = re.compile(
    r"\s*(p\d{1,2}(\.\d)?\s+)?(latency|queue wait)\s*(<=|≤|<)\s*(?=[0-9.]*[1-9])\d+(\.\d+)?\s*(ms|s|m)\s*",
    re.IGNORECASE,
)
_SCALED_HERE = ("hpa", "keda")


def goal_path(name: str) -> str:
    """Where an annotation stands."""
    return f'metadata.annotations["{name}"]'


def check_goal(annotations: Mapping[str, str]) -> Iterable[FieldError]:
    """A goal is one, and what belongs to it are whole numbers."""
    goal = annotations.get(GOAL)
    if goal is not None and not _WORDS.fullmatch(goal):
        yield FieldError(goal_path(GOAL), goal, "must be such as 'queue wait <= 1s' or 'p95 latency <= 300ms'")
    for name, least in ((SPARE, 0), (SLOTS, 1)):
        text = annotations.get(name)
        if text is None:
            continue
        if not text.isdecimal() or int(text) < least:
            yield FieldError(goal_path(name), text, f"must be a whole number of at least {least}")
        elif goal is None:
            yield FieldError(goal_path(name), text, f"means nothing without {GOAL}")


def check_goal_of(review: Review) -> Iterable[FieldError]:
    """The same of an object under review."""
    yield from check_goal(review.metadata.get("annotations") or {})


def warn_service_goal(annotations: Mapping[str, str], predictor: Manifest, scaled_by: str) -> Iterable[str]:
    """What of a predictor in standard mode means nothing beside its goal, or the goal beside it."""
    if GOAL not in annotations:
        return
    if scaled_by not in _SCALED_HERE:
        yield f"{goal_path(GOAL)}: has no effect, since serving.kserve.io/autoscalerClass is {scaled_by}; take one of the two away"
        return
    scaling = predictor.get("autoScaling") or {}
    given = [name for name in ("scaleMetric", "scaleTarget") if predictor.get(name)]
    given += [f"autoScaling.{name}" for name in ("metrics", "behavior") if scaling.get(name)]
    for name in given:
        yield f"spec.predictor.{name}: has no effect beside {GOAL}, which sizes the predictor in the place of an autoscaler"


def warn_autoscaler_goal(review: Review) -> Iterable[str]:
    """A goal needs a load; all else that an autoscaler goes by means nothing beside it."""
    if GOAL not in (review.metadata.get("annotations") or {}):
        return
    if review.spec.get("behavior") or (review.spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig"):
        yield f"behavior: has no effect beside {GOAL}, which has windows of its own"
    metrics = review.spec.get("metrics") or []
    for index, metric in enumerate(metrics if metrics != [DEFAULT_METRIC] else ()):
        source = metric.get("external") or metric.get("object") or {}
        name = str(
            (source.get("metric") or {}).get("name") or (metric.get("resource") or {}).get("name") or metric.get("type")
        )
        if name not in LOADS:
            yield f"spec.metrics[{index}]: {name} has no effect beside {GOAL}, which goes by {' and '.join(LOADS)}"
    for index, trigger in enumerate(review.spec.get("triggers") or ()):
        if trigger.get("name") not in LOADS:
            named = f"is named neither {LOADS[0]} nor {LOADS[1]}"
            yield f"spec.triggers[{index}].name: {named}, and has no effect beside {GOAL}, which goes by these two"
