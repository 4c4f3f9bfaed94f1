"""InferenceServices in Knative's mode: a Deployment for each revision, sized by what the service bears."""

from inference_autoscaler.domain.cluster.scale import Scale, scale_of
from inference_autoscaler.domain.knative.bounds import size
from inference_autoscaler.domain.knative.configuration import KnativeConfiguration
from inference_autoscaler.domain.knative.decider import wish
from inference_autoscaler.domain.knative.scaling import GROUP, Scaling
from inference_autoscaler.domain.knative.scaling import read as read_scaling
from inference_autoscaler.domain.serving.children import MADE_OF, REVISION, made_of, revision_deployment, revision_name
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import Inference, Predictor
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.rollout import Rollout
from kube import Key, Mutation, Object, Store, Verb

DEPLOYMENT = "Deployment.apps"


def look(
    item: Object, spec: Inference, course: Course, store: Store, configuration: KnativeConfiguration, now: int
) -> Outlook:
    """What has to happen to its revisions. ``course`` learns of it. Raises ValueError for annotations that make no sense."""
    scaling = scaling_of(spec.predictor, configuration)
    revisions = _revisions(item, store)
    told = (item.status.get("components") or {}).get("predictor") or {}
    before, found = Rollout.of(told), Outlook(is_awake=True)
    newest = next(reversed(revisions), None)
    if newest is None or revisions[newest].item.annotations.get(MADE_OF) != made_of(spec.predictor):
        newest = _begin(found, item, spec.predictor, scaling, [*revisions, before.created])
    there = {*revisions, newest}
    is_ready = newest in revisions and _serving(revisions[newest]) > 0
    found.rollout = before.next(newest, is_ready, spec.predictor.share, there)
    course.load(scaling.metric).forget(now - scaling.window_ms)
    for name, scale in revisions.items():
        _size(found, name, scale, scaling, course, now, is_newest=name == newest)
    _drop(found, revisions, newest, course)
    shares = [revisions[name] for name in found.rollout.split if name in revisions]
    found.is_serving = any(_serving(scale) > 0 or scale.wanted == 0 for scale in shares)
    found.is_awake = bool(found.changes) or any(scale.wanted for scale in revisions.values()) or not course.is_quiet()
    return found


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


def _begin(found: Outlook, item: Object, predictor: Predictor, scaling: Scaling, names: list[str]) -> str:
    """A new revision, at its initial size."""
    number = max(map(_number, names), default=0) + 1
    replicas = max(scaling.initial, scaling.minimum)
    replicas = min(replicas, scaling.maximum) if scaling.maximum else replicas
    made = revision_deployment(item, predictor, number, replicas)
    key = Key(DEPLOYMENT, item.namespace, made["metadata"]["name"])
    found.changes.append(Mutation(Verb.CREATE, key, manifest=made))
    name = revision_name(item, number)
    found.made.append(f"revision {name}")
    return name


def _size(
    found: Outlook, name: str, scale: Scale, scaling: Scaling, course: Course, now: int, *, is_newest: bool
) -> None:
    """The size of one revision, by its share of what the service bears."""
    assert found.rollout is not None
    percent, past = found.rollout.split.get(name, 0), course.past(name)
    ready = _serving(scale)
    wanted = wish(scaling, course.load(scaling.metric), past.panic, ready, now, percent)
    pods = size(scaling, wanted, past.life, scale.wanted, ready, now, reachable=percent > 0 or is_newest)
    if pods != scale.wanted:
        found.changes.append(scale.to(pods))
        found.sizes.append(f"{name} {pods}: {wanted.why}" if wanted is not None else f"{name} {pods}: its bounds")


def _drop(found: Outlook, revisions: dict[str, Scale], newest: str, course: Course) -> None:
    """Revisions that nothing leads back to any more go; those that requests may go to again stay, without pods."""
    assert found.rollout is not None
    kept = {newest, found.rollout.rolled_out, found.rollout.previous, *found.rollout.split}
    for name, scale in revisions.items():
        if name not in kept and scale.wanted == 0 and scale.counted == 0:
            found.changes.append(Mutation(Verb.DELETE, scale.item.key, scale.item.uid))
    for name in course.pasts.keys() - revisions.keys() - {newest}:
        del course.pasts[name]


def _serving(scale: Scale) -> int:
    return int(scale.item.status.get("availableReplicas") or 0)


def _number(name: str) -> int:
    last = name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
