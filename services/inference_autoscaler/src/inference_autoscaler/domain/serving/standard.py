"""InferenceServices in standard mode: a Deployment, a Service and an autoscaler, kept as they should be."""

from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.serving.children import (
    MADE_OF,
    component_name,
    is_scaled_here,
    made_of,
    standard_autoscaler,
    standard_deployment,
    standard_service,
)
from inference_autoscaler.domain.serving.inference_service import Inference
from inference_autoscaler.domain.serving.outcome import Outlook
from kube import Key, Manifest, Mutation, Object, Store, Verb

DEPLOYMENT, K8S_SERVICE = "Deployment.apps", "Service"


def look(item: Object, spec: Inference, store: Store) -> Outlook:
    """What has to happen to its children."""
    found = Outlook()
    name, predictor = component_name(item), spec.predictor
    wanted = standard_deployment(item, predictor)
    wanted["metadata"]["annotations"] = {MADE_OF: made_of(predictor)}
    there = store.get(Key(DEPLOYMENT, item.namespace, name))
    if there is None:
        _create(found, wanted)
    else:
        found.is_serving = int(there.status.get("availableReplicas") or 0) > 0
        if there.annotations.get(MADE_OF) != made_of(predictor):
            found.changes.append(_renewed(there, wanted))
            found.made.append(f"Deployment {name}")
        elif spec.scaled_by == "none" and there.spec.get("replicas") != predictor.minimum:
            patch = {"spec": {"replicas": predictor.minimum}}
            found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch=patch))
            found.sizes.append(f"{name} {predictor.minimum}, its minReplicas")
    if store.get(Key(K8S_SERVICE, item.namespace, name)) is None:
        _create(found, standard_service(item))
    _keep_autoscaler(found, item, spec, store)
    return found


def _keep_autoscaler(found: Outlook, item: Object, spec: Inference, store: Store) -> None:
    """There is one, as it should be, where one is asked for; else none that is its own."""
    wanted = standard_autoscaler(item, spec.predictor)
    there = store.get(Key(AUTOSCALER, item.namespace, component_name(item)))
    if there is None:
        if is_scaled_here(spec):
            _create(found, wanted)
    elif (there.controller or {}).get("uid") == item.uid:
        if not is_scaled_here(spec):
            found.changes.append(Mutation(Verb.DELETE, there.key, there.uid))
        elif there.spec != {**there.spec, **wanted["spec"]} or ("behavior" in there.spec) != (
            "behavior" in wanted["spec"]
        ):
            patch = {"behavior": None, **wanted["spec"]}
            found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch={"spec": patch}))
            found.made.append(f"HorizontalPodAutoscaler {there.name}")


def _create(found: Outlook, wanted: Manifest) -> None:
    kind = {"Deployment": DEPLOYMENT, "Service": K8S_SERVICE}.get(wanted["kind"], AUTOSCALER)
    metadata = wanted["metadata"]
    found.changes.append(Mutation(Verb.CREATE, Key(kind, metadata["namespace"], metadata["name"]), manifest=wanted))
    found.made.append(f"{wanted['kind']} {metadata['name']}")


def _renewed(there: Object, wanted: Manifest) -> Mutation:
    """The Deployment with pods of another make; its size stays."""
    template: Manifest = wanted["spec"]["template"]
    old: Manifest = there.spec.get("template") or {}
    patch = {part: {**dict.fromkeys(old.get(part) or (), None), **template[part]} for part in ("metadata", "spec")}
    annotations = {"annotations": wanted["metadata"]["annotations"]}
    return Mutation(Verb.PATCH, there.key, there.uid, patch={"metadata": annotations, "spec": {"template": patch}})
