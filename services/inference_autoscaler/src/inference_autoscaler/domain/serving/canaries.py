"""Canaries in standard mode: how many pods each has, what the stable predictor keeps, and who gets which share."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.exact import ceil_div
from inference_autoscaler.domain.rollout.trial import GOING, Sight, Trial
from inference_autoscaler.domain.serving.children import COMPONENT, component_name
from inference_autoscaler.domain.serving.component import PREDICTOR, Component
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import Canary, Inference
from inference_autoscaler.domain.serving.outcome import Standing
from inference_autoscaler.domain.serving.rollout import ALL
from kube import Key, Object, Store

_DEPLOYMENT = "Deployment.apps"


@dataclass(frozen=True, slots=True)
class Sized:
    """A canary with the size and the percentage that it has for now, and how many of its pods serve."""

    component: Component
    name: str
    percent: int
    replicas: int
    serving: int


def canary_trial(item: Object, spec: Inference, course: Course, store: Store) -> Trial | None:
    """The trial that the first canary is on; None without a plan or a canary. Other pods, or another plan, are another one."""
    if spec.plan is None or not spec.canaries:
        return None
    component = spec.canaries[0].component
    name, stable = component_name(item, component), component_name(item, spec.predictor)
    key = f"{spec.plan.key}/{component.digest}"
    known = course.trial
    if known is not None and (known.revision, known.stable, known.plan) == (name, stable, key):
        return known
    first = course.counts(stable)
    there = store.get(Key(_DEPLOYMENT, item.namespace, stable))
    base = int(there.spec.get("replicas") or 1) if there is not None else 1
    return Trial(name, stable, key, max(1, base), first, (course.counts(name), first))


def sight_of(item: Object, trial: Trial, course: Course, store: Store, pods: PodIndex) -> Sight:
    """What is seen of the canary on trial."""
    there = store.get(Key(_DEPLOYMENT, item.namespace, trial.revision))
    if there is None:
        return Sight(0, False, {}, {})
    runs = any(pod.spec.get("nodeName") for pod in pods.selected(item.namespace, there.spec.get("selector")))
    return Sight(_serving(there), runs, course.counts(trial.revision), course.counts(trial.stable))


def sized(item: Object, spec: Inference, canary: Canary, trial: Trial | None, store: Store) -> Sized:
    """By its own minimum, or the part of the stable one's that its share is; one on trial by the step that it is at."""
    component, name = canary.component, component_name(item, canary.component)
    percent = canary.percent
    replicas = max(1, ceil_div(spec.predictor.minimum * percent, 100))
    if component.has_minimum:
        replicas = component.minimum
    if trial is not None and spec.plan is not None and trial.revision == name:
        percent = trial.percent(spec.plan)
        replicas = max(replicas, trial.pods(spec.plan)) if trial.state == GOING else 0
    there = store.get(Key(_DEPLOYMENT, item.namespace, name))
    return Sized(component, name, percent, replicas, 0 if there is None else _serving(there))


def stable_minimum(stable: Component, canaries: Sequence[Sized]) -> int:
    """What is left of its minimum beside the canaries that serve, and one at least."""
    taken = sum(canary.replicas for canary in canaries if canary.serving)
    return max(min(1, stable.minimum), stable.minimum - taken)


def before_promotion(item: Object, spec: Inference, store: Store) -> str:
    """The predictor that had another name, while the one that takes its place has not all its pods; "" where there is none."""
    name, canaries = (
        component_name(item, spec.predictor),
        [component_name(item, one.component) for one in spec.canaries],
    )
    there = store.get(Key(_DEPLOYMENT, item.namespace, name))
    if there is not None and _serving(there) >= max(1, spec.predictor.minimum):
        return ""
    others = (
        child.name
        for child in store.owned_by(item.uid)
        if child.kind == _DEPLOYMENT
        and child.labels.get(COMPONENT) == PREDICTOR
        and child.name not in (name, *canaries)
        and _serving(child)
        and not child.deleting
    )
    return min(others, default="")


def shares(stable: Standing, canaries: Sequence[Sized], before: str, minimum: int) -> dict[str, int]:
    """Canaries that serve have theirs, the stable one the rest; while it takes another's place as much as of its pods serve."""
    split = {canary.name: canary.percent for canary in canaries if canary.serving and canary.percent}
    rest = ALL - sum(split.values())
    if not stable.serving and not before:
        serving = next(iter(split), stable.name)
        return {stable.name: ALL} if serving == stable.name else {**split, serving: split[serving] + rest}
    own = min(rest, rest * stable.serving // max(1, minimum)) if before else rest
    return {
        name: percent for name, percent in {**split, stable.name: own, before: rest - own}.items() if name and percent
    }


def _serving(deployment: Object) -> int:
    return int(deployment.status.get("availableReplicas") or 0)
