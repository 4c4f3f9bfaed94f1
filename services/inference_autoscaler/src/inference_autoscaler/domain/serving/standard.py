"""InferenceServices in standard mode: a Deployment, a Service and what scales it for each component, kept as they should be."""

from collections.abc import Collection
from dataclasses import replace

from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.serving.aimed import Aimed, Chosen, rest
from inference_autoscaler.domain.serving.canaries import (
    before_promotion,
    canary_trial,
    shares,
    sight_of,
    sized,
    stable_minimum,
)
from inference_autoscaler.domain.serving.children import (
    COMPONENT,
    MADE_OF,
    component_name,
    service,
    standard_deployment,
)
from inference_autoscaler.domain.serving.component import PREDICTOR, Component
from inference_autoscaler.domain.serving.course import Course
from inference_autoscaler.domain.serving.inference_service import Inference
from inference_autoscaler.domain.serving.outcome import Outlook, Standing
from inference_autoscaler.domain.serving.rollout import Rollout
from inference_autoscaler.domain.serving.scalers import SCALED_OBJECT, scaler
from inference_autoscaler.domain.serving.surroundings import Surroundings
from kube import Key, Manifest, Mutation, Object, Store, Verb

DEPLOYMENT, K8S_SERVICE = "Deployment.apps", "Service"
_OWN = (DEPLOYMENT, K8S_SERVICE, AUTOSCALER, SCALED_OBJECT)
_OPTIONAL = ("behavior", "advanced")
_FIXED, _AS_SHARED = "its minReplicas", "its minReplicas, or what its share of the requests needs"
_KEPT = ("schedulerName",)
"""Where nobody says it, whoever made the Deployment has chosen it."""
_KINDS = {"Deployment": DEPLOYMENT, "Service": K8S_SERVICE, "ScaledObject": SCALED_OBJECT}


def look(item: Object, spec: Inference, course: Course, around: Surroundings, now: int) -> Outlook:
    """What has to happen to its children. ``course`` learns how canaries do. Raises ValueError for annotations that make no sense."""
    found, store = Outlook(), around.store
    trial = course.trial = found.trial = canary_trial(item, spec, course, store)
    if trial is not None and spec.plan is not None:
        trial.look(spec.plan, sight_of(item, trial, course, store, around.pods), now)
        found.is_awake = trial.is_awake(spec.plan, now)
    aimed = Aimed(found, item, spec, course, around, now)
    canaries = [aimed.canary(sized(item, spec, one, trial, store)) for one in spec.canaries]
    for canary in canaries:
        _keep_deployment(found, item, canary.component, Chosen(canary.replicas, _AS_SHARED), store)
        keep_service(found, service(item, canary.component, canary.name), store)
    for component in spec.components:
        chosen, scaled_by = Chosen(component.minimum, _FIXED) if spec.scaled_by == "none" else None, spec.scaled_by
        if component.role == PREDICTOR:
            component = replace(component, minimum=stable_minimum(component, canaries))
            chosen = Chosen(component.minimum, _FIXED) if chosen is not None else aimed.size(component, rest(canaries))
            scaled_by = "" if aimed.decides else scaled_by
        found.standings[component.role] = _look(found, item, scaled_by, component, chosen, store)
    stable = found.standings[PREDICTOR]
    before = before_promotion(item, spec, store)
    split = shares(stable, canaries, before, spec.predictor.minimum)
    rollout = Rollout(stable.name, stable.name, stable.name, before, split)
    found.standings[PREDICTOR] = replace(stable, rollout=rollout, is_serving=stable.is_serving or bool(before))
    found.canaries = {canary.name: canary.serving > 0 for canary in canaries}
    _drop(found, item, {*(one.name for one in found.standings.values()), *found.canaries, before}, store)
    return found


def _drop(found: Outlook, item: Object, kept: Collection[str], store: Store) -> None:
    """What a canary that is gone, or a predictor of another name, was made of."""
    for child in store.owned_by(item.uid):
        if (
            child.kind in _OWN
            and child.name not in kept
            and child.labels.get(COMPONENT) == PREDICTOR
            and not child.deleting
        ):
            found.changes.append(Mutation(Verb.DELETE, child.key, child.uid))


def _keep_deployment(found: Outlook, item: Object, component: Component, chosen: Chosen | None, store: Store) -> int:
    """The Deployment is there with the pods that it should have, and of that size where one is chosen; how many serve."""
    name, wanted = component_name(item, component), standard_deployment(item, component)
    there = store.get(Key(DEPLOYMENT, item.namespace, name))
    if there is None:
        if chosen is not None:
            wanted["spec"]["replicas"] = chosen.replicas
        create(found, wanted)
        return 0
    if there.annotations.get(MADE_OF) != component.digest:
        found.changes.append(renewed(there, wanted))
        found.made.append(f"Deployment {name}")
    if chosen is not None:
        found.reasons.append(f"{name} {chosen.replicas}: {chosen.why}")
    if (
        there.annotations.get(MADE_OF) == component.digest
        and chosen is not None
        and there.spec.get("replicas") != chosen.replicas
    ):
        patch = {"spec": {"replicas": chosen.replicas}}
        found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch=patch))
        found.sizes.append(found.reasons[-1])
    return int(there.status.get("availableReplicas") or 0)


def create(found: Outlook, wanted: Manifest) -> None:
    """A child that is not there yet."""
    metadata, kind = wanted["metadata"], _KINDS.get(wanted["kind"], AUTOSCALER)
    found.changes.append(Mutation(Verb.CREATE, Key(kind, metadata["namespace"], metadata["name"]), manifest=wanted))
    found.made.append(f"{wanted['kind']} {metadata['name']}")


def keep_service(found: Outlook, wanted: Manifest, store: Store) -> None:
    """The Service is there, with the ports that it should have."""
    metadata = wanted["metadata"]
    there = store.get(Key(K8S_SERVICE, metadata["namespace"], metadata["name"]))
    if there is None:
        create(found, wanted)
    elif [_told(port) for port in there.spec.get("ports") or ()] != [_told(port) for port in wanted["spec"]["ports"]]:
        patch = {"spec": {"ports": wanted["spec"]["ports"]}}
        found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch=patch))
        found.made.append(f"Service {there.name}")


def _told(port: Manifest) -> tuple[object, ...]:
    return port.get("name"), port.get("port"), port.get("targetPort")


def _look(
    found: Outlook, item: Object, scaled_by: str, component: Component, chosen: Chosen | None, store: Store
) -> Standing:
    name = component_name(item, component)
    serving = _keep_deployment(found, item, component, chosen, store)
    keep_service(found, service(item, component, name), store)
    _keep_scaler(found, item, scaled_by, component, store)
    return Standing(name, serving > 0, serving)


def _keep_scaler(found: Outlook, item: Object, scaled_by: str, component: Component, store: Store) -> None:
    """There is the one that is asked for, as it should be, and no other that is its own."""
    wanted = scaler(item, component, scaled_by)
    for kind in (AUTOSCALER, SCALED_OBJECT):
        there = store.get(Key(kind, item.namespace, component_name(item, component)))
        is_wanted = wanted is not None and _KINDS.get(wanted["kind"], AUTOSCALER) == kind
        if there is None:
            if is_wanted and wanted is not None:
                create(found, wanted)
        elif (there.controller or {}).get("uid") != item.uid or there.deleting:
            continue
        elif not is_wanted or wanted is None:
            found.changes.append(Mutation(Verb.DELETE, there.key, there.uid))
        elif _differs(there.spec, wanted["spec"]):
            patch = {**dict.fromkeys(_OPTIONAL), **wanted["spec"]}
            patch = {name: value for name, value in patch.items() if value is not None or name in there.spec}
            found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch={"spec": patch}))
            found.made.append(f"{wanted['kind']} {there.name}")


def _differs(there: Manifest, wanted: Manifest) -> bool:
    """Whether something that is wanted is otherwise, or a part is there that is not."""
    return any(name in there and name not in wanted for name in _OPTIONAL) or not covers(there, wanted)


def renewed(there: Object, wanted: Manifest) -> Mutation:
    """The Deployment with pods of another make; its size stays."""
    template: Manifest = wanted["spec"]["template"]
    old: Manifest = there.spec.get("template") or {}
    left = {part: [name for name in old.get(part) or () if name not in _KEPT] for part in ("metadata", "spec")}
    patch = {part: {**dict.fromkeys(names, None), **template[part]} for part, names in left.items()}
    annotations = {"annotations": wanted["metadata"]["annotations"]}
    return Mutation(Verb.PATCH, there.key, there.uid, patch={"metadata": annotations, "spec": {"template": patch}})
