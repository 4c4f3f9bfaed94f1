"""Services that state what their users should feel: what is learned of them, and what a part of one needs."""

from collections.abc import Sequence

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import Wish
from inference_autoscaler.domain.knative.scaling import CONCURRENCY, GROUP, Scaling
from inference_autoscaler.domain.knative.scaling import read as read_scaling
from inference_autoscaler.domain.serving.component import Component
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import CLASS, STANDARD, Inference
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT, Aim, Pursuit, aim_of
from inference_autoscaler.domain.target.goal import GOAL
from inference_autoscaler.domain.target.plan import Fleet

SCALED_HERE = ("hpa", "keda")
"""The classes in standard mode for which a goal takes the place of the autoscaler; with the others somebody else has the size."""
_MILLI = 1000
Told = tuple[str, str, str]
"""Status, reason and message of the condition SizedByGoal."""


def serverless_aim(component: Component, scaling: Scaling, configuration: KnativeConfiguration) -> Aim | None:
    """What a component in Knative's mode aims at. A replica answers as many requests at once as it is scaled by, or may."""
    counted = scaling.metric == CONCURRENCY
    slots = scaling.total_milli // _MILLI if counted else component.concurrency
    return aim_of(component.annotations, slots or configuration.concurrency_milli // _MILLI)


def standard_aim(spec: Inference, configuration: KnativeConfiguration) -> Aim | None:
    """What the predictor in standard mode aims at, if it is sized here: by Knative's annotations, what it is scaled by is no request."""
    if spec.scaled_by not in SCALED_HERE:
        return None
    component = spec.predictor
    scaling = read_scaling(component.annotations, component.concurrency, configuration)
    return serverless_aim(component, scaling, configuration)


def pursue(aim: Aim | None, course: Course, scales: Sequence[Scale], pods: PodIndex) -> None:
    """Take in how the pods of a service started and what it bore, where it has a goal."""
    if aim is None:
        course.pursuit = None
        return
    course.pursuit = course.pursuit or Pursuit()
    for scale in scales:
        course.pursuit.starts.learn(pods.selected(scale.item.namespace, scale.selector))
    course.pursuit.hear(aim, course.load(CAME), course.load(IN_FLIGHT), course.born, sum(map(_serving, scales)))


def planned(aim: Aim, pursuit: Pursuit, scale: Scale, pods: PodIndex, percent: int, now: int) -> Wish | None:
    """What is wanted of one Deployment that gets so many percent of the requests; None while nothing is known: it stays as it is."""
    found = pursuit.plan(aim, fleet_of(pursuit, scale, pods, now), percent, now)
    return Wish(found.pods, found.why) if found is not None else None


def fleet_of(pursuit: Pursuit, scale: Scale, pods: PodIndex, now: int) -> Fleet:
    """The replicas of one Deployment, and when those that start will serve."""
    ready, own = _serving(scale), pods.selected(scale.item.namespace, scale.selector)
    return Fleet(scale.wanted, ready, pursuit.starts.etas(own, scale.wanted, ready, now))


def aim_in_mode(spec: Inference, configuration: KnativeConfiguration) -> Aim | None:
    """What the predictor aims at, whatever the mode."""
    if spec.mode == STANDARD:
        return standard_aim(spec, configuration)
    scaling = scaling_of(spec.predictor, configuration)
    return serverless_aim(spec.predictor, scaling, configuration)


def scaling_of(component: Component, configuration: KnativeConfiguration) -> Scaling:
    """How revisions of a component are scaled: KServe's fields go before Knative's annotations. Raises ValueError."""
    said = {"min-scale": str(component.minimum), "max-scale": str(component.maximum)}
    if component.metric:
        said["metric"] = component.metric
    if component.target:
        said["target"] = component.target
    annotations = {**component.annotations, **{GROUP + name: value for name, value in said.items()}}
    return read_scaling(annotations, component.concurrency, configuration)


def standing(spec: Inference, aim: Aim | None, course: Course, scales: Sequence[Scale], now: int) -> Told | None:
    """Whether the goal decides, as a condition; None for a service that states none."""
    if GOAL not in spec.predictor.annotations:
        return None
    if aim is None or course.pursuit is None:
        words = f"is {spec.scaled_by}, so its size is not decided here; take one of the two annotations away"
        return "False", "NotScaledHere", f'metadata.annotations["{GOAL}"] has no effect: {CLASS} {words}'
    if not scales or (course.is_quiet() and not any(scale.wanted for scale in scales)):
        return "True", "SizedByGoal", f"{aim.goal}: it sleeps until a request comes"
    return course.pursuit.standing(aim, "the InferenceService", now)


def _serving(scale: Scale) -> int:
    return int(scale.item.status.get("availableReplicas") or 0)
