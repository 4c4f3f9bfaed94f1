"""InferenceServices in Knative's mode: a Deployment for each revision, sized by what the service bears."""

from dataclasses import dataclass, replace

from inference_autoscaler.domain.cluster.pod_index import PodIndex
from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.exact import ceil_div
from inference_autoscaler.domain.knative.bounds import size
from inference_autoscaler.domain.knative.decider import Wish, wish
from inference_autoscaler.domain.knative.scaling import Scaling
from inference_autoscaler.domain.rollout.plan import Plan
from inference_autoscaler.domain.rollout.trial import GOING, PROMOTED, Sight, Trial
from inference_autoscaler.domain.serving.children import (
    COMPONENT,
    MADE_OF,
    REVISION,
    revision_deployment,
    revision_name,
    service,
)
from inference_autoscaler.domain.serving.component import PREDICTOR, Component
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.goals import planned, pursue, scaling_of, serverless_aim, standing
from inference_autoscaler.domain.serving.inference_service import Inference
from inference_autoscaler.domain.serving.outcome import Outlook, Standing
from inference_autoscaler.domain.serving.rollout import Rollout
from inference_autoscaler.domain.serving.standard import K8S_SERVICE, keep_service
from inference_autoscaler.domain.serving.surroundings import Surroundings
from inference_autoscaler.domain.target.aim import CAME, IN_FLIGHT, Aim
from kube import Key, Mutation, Object, Store, Verb

DEPLOYMENT = "Deployment.apps"


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
    found = Outlook()
    scalings = [scaling_of(component, around.configuration) for component in spec.components]
    kept: set[str] = set()
    for component, scaling in zip(spec.components, scalings, strict=True):
        kept |= _look(found, item, spec, component, scaling, course, around, now)
    for name in course.pasts.keys() - kept:
        del course.pasts[name]
    for name in course.tallies.keys() - kept:
        del course.tallies[name]
    watched = {CAME, IN_FLIGHT} if course.pursuit is not None else set[str]()
    longest = max(scaling.window_ms for scaling in scalings)
    course.forget(now - longest, {scaling.metric for scaling in scalings} | watched)
    found.is_awake |= bool(found.changes) or not course.is_quiet()
    return found


def _look(
    found: Outlook,
    item: Object,
    spec: Inference,
    component: Component,
    scaling: Scaling,
    course: Course,
    around: Surroundings,
    now: int,
) -> set[str]:
    """One component; its revisions, of which something has to be remembered."""
    revisions = _revisions(item, component, around.store)
    told = (item.status.get("components") or {}).get(component.role) or {}
    before = Rollout.of(told)
    newest = next(reversed(revisions), "")
    if not newest or revisions[newest].item.annotations.get(MADE_OF) != component.digest:
        newest = revision_name(item, component, max(map(_number, [*revisions, before.created])) + 1)
    serving = {name: _serving(scale) for name, scale in revisions.items()}
    plan = spec.plan if component.role == PREDICTOR else None
    trial = _trial(plan, scaling, newest, before, revisions, course)
    share = component.share
    if newest not in revisions:
        _begin(found, item, component, scaling, newest, trial.pods(plan) if trial and plan else scaling.minimum)
    if trial is not None and plan is not None:
        trial.look(plan, _sight(trial, revisions, course, around.pods), now)
        share = trial.percent(plan)
        found.is_awake |= trial.is_awake(plan, now)
    if component.role == PREDICTOR:
        course.trial = found.trial = trial
    # Nobody would ever ask for a first revision that begins asleep, if it had to serve before it has a share.
    is_ready = serving.get(newest, 0) > 0 or (not before.ready and scaling.initial == 0 == scaling.minimum)
    # Sized by what they are to get: who gets nothing only because he sleeps would else never wake.
    meant = before.next(newest, is_ready, share, {*revisions, newest})
    rollout = meant.given(serving)
    aim = None
    if component.role == PREDICTOR:
        aim = serverless_aim(component, scaling, around.configuration)
        pursue(aim, course, [*revisions.values()], around.pods)
        found.goal = standing(spec, aim, course, [*revisions.values()], now)
    for name, scale in revisions.items():
        part = _part(name, newest, scaling, plan, meant, trial)
        wanted = _wanted(aim, name, scale, scaling, course, around.pods, now, part.percent)
        _size(found, name, scale, replace(scaling, minimum=part.minimum), course, wanted, now, part.reachable)
    for name in sorted({*revisions, newest}):
        keep_service(found, service(item, component, name), around.store)
    _drop(found, revisions, newest, rollout, around.store)
    shares = [revisions[name] for name in rollout.split if name in revisions]
    is_serving = any(_serving(scale) > 0 or scale.wanted == 0 for scale in shares)
    found.standings[component.role] = Standing(newest, is_serving, sum(serving.values()), rollout)
    found.is_awake |= any(scale.wanted for scale in revisions.values())
    return {*revisions, newest}


def _trial(
    plan: Plan | None, scaling: Scaling, newest: str, before: Rollout, revisions: dict[str, Scale], course: Course
) -> Trial | None:
    """The trial that the newest revision is on, a new one where it is to begin; None where there is nothing to be better than."""
    if plan is None:
        return None
    known, stable = course.trial, revisions.get(before.rolled_out)
    if known is not None and known.revision == newest and (known.state == PROMOTED or known.plan == plan.key):
        return known
    if stable is None or before.rolled_out == newest:
        return None
    base = max(stable.wanted, scaling.minimum, 1)
    first = course.counts(before.rolled_out)
    return Trial(
        newest,
        before.rolled_out,
        plan.key,
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


def _part(name: str, newest: str, scaling: Scaling, plan: Plan | None, rollout: Rollout, trial: Trial | None) -> _Part:
    """Revisions on trial share the minimum, and are sized for the step to come; otherwise each with a share has it."""
    percent = rollout.split.get(name, 0)
    if trial is None or plan is None or trial.state == PROMOTED or name not in (trial.revision, trial.stable):
        return _Part(percent, scaling.minimum, percent > 0 or name == newest)
    if name == trial.revision:
        return _Part(trial.aimed(plan), trial.pods(plan), trial.state == GOING)
    minimum = max(ceil_div(scaling.minimum * percent, 100), trial.stable_pods(plan))
    return _Part(percent, minimum, percent > 0 or minimum > 0)


def _revisions(item: Object, component: Component, store: Store) -> dict[str, Scale]:
    """The Deployments of its revisions, by the names of these, the oldest first."""
    found: dict[str, Scale] = {}
    for child in store.owned_by(item.uid):
        is_own = child.kind == DEPLOYMENT and child.labels.get(COMPONENT) == component.role and not child.deleting
        scale = scale_of(child) if is_own and REVISION in child.labels else None
        if scale is not None:
            found[child.labels[REVISION]] = scale
    return dict(sorted(found.items(), key=lambda one: _number(one[0])))


def _begin(found: Outlook, item: Object, component: Component, scaling: Scaling, name: str, minimum: int) -> None:
    """A new revision, at its initial size, and at ``minimum`` at least."""
    replicas = max(scaling.initial, minimum)
    replicas = min(replicas, scaling.maximum) if scaling.maximum else replicas
    made = revision_deployment(item, component, name, replicas)
    key = Key(DEPLOYMENT, item.namespace, made["metadata"]["name"])
    found.changes.append(Mutation(Verb.CREATE, key, manifest=made))
    found.made.append(f"revision {name}")


def _wanted(
    aim: Aim | None, name: str, scale: Scale, scaling: Scaling, course: Course, pods: PodIndex, now: int, percent: int
) -> Wish | None:
    """What is wanted of a revision for so many percent of the load: by the goal, where there is one; None while nothing is known."""
    if aim is not None and course.pursuit is not None:
        return planned(aim, course.pursuit, scale, pods, percent, now)
    return wish(scaling, course.load(scaling.metric), course.past(name).panic, _serving(scale), now, percent)


def _size(
    found: Outlook,
    name: str,
    scale: Scale,
    scaling: Scaling,
    course: Course,
    wanted: Wish | None,
    now: int,
    reachable: bool,
) -> None:
    """The size of one revision, by what is wanted of it."""
    life = course.past(name).life
    pods = size(scaling, wanted, life, scale.wanted, _serving(scale), now, reachable=reachable)
    found.reasons.append(f"{name} {pods}: {wanted.why}" if wanted is not None else f"{name} {pods}: its bounds")
    if pods != scale.wanted:
        found.changes.append(scale.to(pods))
        found.sizes.append(found.reasons[-1])


def _drop(found: Outlook, revisions: dict[str, Scale], newest: str, rollout: Rollout, store: Store) -> None:
    """Revisions that nothing leads back to any more go; those that requests may go to again stay, without pods."""
    kept = {newest, rollout.rolled_out, rollout.previous, *rollout.split}
    for name, scale in revisions.items():
        if name not in kept and scale.wanted == 0 and scale.counted == 0:
            found.changes.append(Mutation(Verb.DELETE, scale.item.key, scale.item.uid))
            there = store.get(Key(K8S_SERVICE, scale.item.namespace, name))
            if there is not None:
                found.changes.append(Mutation(Verb.DELETE, there.key, there.uid))


def _serving(scale: Scale) -> int:
    return int(scale.item.status.get("availableReplicas") or 0)


def _number(name: str) -> int:
    last = name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
