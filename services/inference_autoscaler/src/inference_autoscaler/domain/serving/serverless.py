"""InferenceServices in Knative's mode: a Deployment for each revision, sized by what the service bears."""

from dataclasses import dataclass, replace

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.exact import ceil_div
from inference_autoscaler.domain.knative.bounds import size
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import Wish, wish
from inference_autoscaler.domain.knative.scaling import GROUP, Scaling
from inference_autoscaler.domain.knative.scaling import read as read_scaling
from inference_autoscaler.domain.rollout.trial import GOING, PROMOTED, Sight, Trial
from inference_autoscaler.domain.serving.children import MADE_OF, REVISION, made_of, revision_deployment, revision_name
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import Inference, Predictor
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.rollout import Rollout
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT, Aim, Pursuit, aim_of
from inference_autoscaler.domain.target.plan import Fleet
from kube import Key, Mutation, Object, Store, Verb

DEPLOYMENT = "Deployment.apps"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a service lives in."""

    store: Store
    pods: PodIndex
    configuration: KnativeConfiguration


@dataclass(frozen=True, slots=True)
class _Part:
    """What one revision has to bear: the percentage of the load, and how many pods it has at least.

    One that is not ``reachable`` has none.
    """

    percent: int
    minimum: int
    reachable: bool


def look(item: Object, spec: Inference, course: Course, around: Surroundings, now: int) -> Outlook:
    """What has to happen to its revisions. ``course`` learns of it. Raises ValueError for annotations that make no sense."""
    scaling = scaling_of(spec.predictor, around.configuration)
    revisions = _revisions(item, around.store)
    told = (item.status.get("components") or {}).get("predictor") or {}
    before, found = Rollout.of(told), Outlook(is_awake=True)
    newest = next(reversed(revisions), "")
    if not newest or revisions[newest].item.annotations.get(MADE_OF) != made_of(spec.predictor):
        newest = revision_name(item, max(map(_number, [*revisions, before.created])) + 1)
    serving = {name: _serving(scale) for name, scale in revisions.items()}
    course.trial = found.trial = _trial(spec, scaling, newest, before, revisions, course, now)
    if newest not in revisions:
        _begin(found, item, spec, scaling, newest)
    share = spec.predictor.share
    if found.trial is not None and spec.plan is not None:
        found.trial.look(spec.plan, _sight(found.trial, revisions, course, around.pods), now)
        share = found.trial.percent(spec.plan)
    rollout = before.next(newest, serving.get(newest, 0) > 0, share, {*revisions, newest})
    found.rollout = rollout.given(serving)
    aim = aim_of(spec.predictor.annotations, scaling.total_milli // 1000)
    _pursue(aim, course, revisions, around.pods)
    if aim is None:
        course.load(scaling.metric).forget(now - scaling.window_ms)
    for name, scale in revisions.items():
        part = _part(name, newest, scaling, spec, rollout, found.trial)
        ready = serving[name]
        if aim is None or course.pursuit is None:
            wanted = wish(scaling, course.load(scaling.metric), course.past(name).panic, ready, now, part.percent)
        else:
            wanted = _planned(aim, course.pursuit, scale, around.pods, part.percent, now)
        _size(found, name, scale, replace(scaling, minimum=part.minimum), course, wanted, now, part)
    _drop(found, revisions, newest, course)
    shares = [revisions[name] for name in found.rollout.split if name in revisions]
    found.is_serving = any(_serving(scale) > 0 or scale.wanted == 0 for scale in shares)
    is_tried = found.trial is not None and spec.plan is not None and found.trial.is_awake(spec.plan, now)
    has_pods = any(scale.wanted for scale in revisions.values())
    found.is_awake = bool(found.changes) or is_tried or has_pods or not course.is_quiet()
    return found


def _trial(
    spec: Inference,
    scaling: Scaling,
    newest: str,
    before: Rollout,
    revisions: dict[str, Scale],
    course: Course,
    now: int,
) -> Trial | None:
    """The trial that the newest revision is on, a new one where it is to begin; None where there is nothing to be better than."""
    if spec.plan is None:
        return None
    known, stable = course.trial, revisions.get(before.rolled_out)
    if known is not None and known.revision == newest and (known.state == PROMOTED or known.plan == spec.plan.key):
        return known
    if stable is None or before.rolled_out == newest:
        return None
    base = max(stable.wanted, scaling.minimum, 1)
    first = course.counts(before.rolled_out)
    return Trial(
        newest,
        before.rolled_out,
        spec.plan.key,
        min(base, scaling.maximum) if scaling.maximum else base,
        first,
        ({}, first),
    )


def _sight(trial: Trial, revisions: dict[str, Scale], course: Course, pods: PodIndex) -> Sight:
    scale = revisions.get(trial.revision)
    if scale is None:
        return Sight(0, False, {}, {})
    runs = any(pod.spec.get("nodeName") for pod in pods.selected(scale.item.namespace, scale.selector))
    return Sight(_serving(scale), runs, course.counts(trial.revision), course.counts(trial.stable))


def _part(name: str, newest: str, scaling: Scaling, spec: Inference, rollout: Rollout, trial: Trial | None) -> _Part:
    """Revisions on trial share the minimum, and are sized for the step to come; otherwise each with a share has it."""
    percent = rollout.split.get(name, 0)
    if trial is None or spec.plan is None or trial.state == PROMOTED or name not in (trial.revision, trial.stable):
        return _Part(percent, scaling.minimum, percent > 0 or name == newest)
    if name == trial.revision:
        return _Part(trial.aimed(spec.plan), trial.pods(spec.plan), trial.state == GOING)
    minimum = max(ceil_div(scaling.minimum * percent, 100), trial.stable_pods(spec.plan))
    return _Part(percent, minimum, percent > 0 or minimum > 0)


def scaling_of(predictor: Predictor, configuration: KnativeConfiguration) -> Scaling:
    """How its revisions are scaled: KServe's fields go before Knative's annotations. Raises ValueError."""
    said = {"min-scale": str(predictor.minimum), "max-scale": str(predictor.maximum)}
    if predictor.metric:
        said["metric"] = predictor.metric
    if predictor.target:
        said["target"] = predictor.target
    annotations = {**predictor.annotations, **{GROUP + name: value for name, value in said.items()}}
    return read_scaling(annotations, predictor.concurrency, configuration)


def _revisions(item: Object, store: Store) -> dict[str, Scale]:
    """The Deployments of its revisions, by the names of these, the oldest first."""
    found: dict[str, Scale] = {}
    for child in store.owned_by(item.uid):
        scale = (
            scale_of(child) if child.kind == DEPLOYMENT and REVISION in child.labels and not child.deleting else None
        )
        if scale is not None:
            found[child.labels[REVISION]] = scale
    return dict(sorted(found.items(), key=lambda one: _number(one[0])))


def _begin(found: Outlook, item: Object, spec: Inference, scaling: Scaling, name: str) -> None:
    """A new revision, at its initial size, or at what its first step needs."""
    minimum = found.trial.pods(spec.plan) if found.trial is not None and spec.plan is not None else scaling.minimum
    replicas = max(scaling.initial, minimum)
    replicas = min(replicas, scaling.maximum) if scaling.maximum else replicas
    made = revision_deployment(item, spec.predictor, _number(name), replicas)
    key = Key(DEPLOYMENT, item.namespace, made["metadata"]["name"])
    found.changes.append(Mutation(Verb.CREATE, key, manifest=made))
    found.made.append(f"revision {name}")


def _size(
    found: Outlook,
    name: str,
    scale: Scale,
    scaling: Scaling,
    course: Course,
    wanted: Wish | None,
    now: int,
    part: _Part,
) -> None:
    """The size of one revision, by what is wanted of it."""
    life = course.past(name).life
    pods = size(scaling, wanted, life, scale.wanted, _serving(scale), now, reachable=part.reachable)
    if pods != scale.wanted:
        found.changes.append(scale.to(pods))
        found.sizes.append(f"{name} {pods}: {wanted.why}" if wanted is not None else f"{name} {pods}: its bounds")


def _pursue(aim: Aim | None, course: Course, revisions: dict[str, Scale], pods: PodIndex) -> None:
    """Take in how its pods started and what the service bore, where it has a goal."""
    if aim is None:
        course.pursuit = None
        return
    course.pursuit = course.pursuit or Pursuit()
    for scale in revisions.values():
        course.pursuit.starts.learn(pods.selected(scale.item.namespace, scale.selector))
    ready = sum(map(_serving, revisions.values()))
    course.pursuit.hear(aim, course.load(CAME), course.load(IN_FLIGHT), course.born, ready)


def _planned(aim: Aim, pursuit: Pursuit, scale: Scale, pods: PodIndex, percent: int, now: int) -> Wish | None:
    """What is wanted of a revision of a service that has a goal; None while nothing is known: it stays as it is."""
    ready, own = _serving(scale), pods.selected(scale.item.namespace, scale.selector)
    etas = pursuit.starts.etas(own, scale.wanted, ready, now)
    found = pursuit.plan(aim, Fleet(scale.wanted, ready, etas), percent, now)
    return Wish(found.pods, found.why) if found is not None else None


def _drop(found: Outlook, revisions: dict[str, Scale], newest: str, course: Course) -> None:
    """Revisions that nothing leads back to any more go; those that requests may go to again stay, without pods."""
    assert found.rollout is not None
    kept = {newest, found.rollout.rolled_out, found.rollout.previous, *found.rollout.split}
    for name, scale in revisions.items():
        if name not in kept and scale.wanted == 0 and scale.counted == 0:
            found.changes.append(Mutation(Verb.DELETE, scale.item.key, scale.item.uid))
    for name in course.pasts.keys() - revisions.keys() - {newest}:
        del course.pasts[name]
    for name in course.tallies.keys() - revisions.keys() - {newest}:
        del course.tallies[name]


def _serving(scale: Scale) -> int:
    return int(scale.item.status.get("availableReplicas") or 0)


def _number(name: str) -> int:
    last = name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
