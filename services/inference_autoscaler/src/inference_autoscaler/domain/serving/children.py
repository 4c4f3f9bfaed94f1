"""What an InferenceService is made of: Deployments, and in standard mode a Service and an autoscaler, by KServe's names."""

import json
from hashlib import sha256

from inference_autoscaler.domain.serving.inference_service import GROUP, Inference, Predictor
from inference_autoscaler.domain.serving.runtimes import SOURCE
from kube import Manifest, Object
from kube.owners import owner_reference

LABEL = f"{GROUP}inferenceservice"
COMPONENT = "component"
REVISION = "serving.knative.dev/revision"
MADE_OF = "tidegate.dev/made-of"
"""Annotation of a revision's Deployment: of what its pods were made. Another one needs another revision."""
PORT, CONTAINER_PORT = 80, 8080
_CPU_PERCENT = 80


def component_name(item: Object) -> str:
    """What the children of the predictor are called."""
    return f"{item.name}-predictor"


def revision_name(item: Object, number: int) -> str:
    """As Knative names revisions."""
    return f"{component_name(item)}-{number:05d}"


def template(item: Object, predictor: Predictor, name: str) -> Manifest:
    """The template of the pods that the Deployment ``name`` has."""
    labels = {**predictor.labels, LABEL: item.name, COMPONENT: "predictor", "app": f"isvc.{name}"}
    metadata: Manifest = {"labels": labels}
    if predictor.annotations:
        metadata["annotations"] = predictor.annotations
    return {"metadata": metadata, "spec": predictor.pod}


def made_of(predictor: Predictor) -> str:
    """A short text that differs where the pods do; how many there are is no part of it."""
    content = json.dumps(
        [predictor.pod, predictor.labels, predictor.concurrency, predictor.annotations.get(SOURCE)], sort_keys=True
    )
    return sha256(content.encode()).hexdigest()[:16]


def revision_deployment(item: Object, predictor: Predictor, number: int, replicas: int) -> Manifest:
    """The Deployment of a new revision."""
    name = revision_name(item, number)
    made = _deployment(item, predictor, f"{name}-deployment", name, replicas)
    made["metadata"]["labels"][REVISION] = name
    made["metadata"]["annotations"] = {MADE_OF: made_of(predictor)}
    return made


def standard_deployment(item: Object, predictor: Predictor) -> Manifest:
    """The one Deployment of a predictor in standard mode, at its minimum: an autoscaler goes on from there."""
    name = component_name(item)
    return _deployment(item, predictor, name, name, max(1, predictor.minimum))


def standard_service(item: Object) -> Manifest:
    """The Service in front of it."""
    name = component_name(item)
    ports = [{"name": name, "port": PORT, "targetPort": CONTAINER_PORT, "protocol": "TCP"}]
    spec = {"selector": {"app": f"isvc.{name}"}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(item, name), "spec": spec}


def standard_autoscaler(item: Object, predictor: Predictor) -> Manifest:
    """The HorizontalPodAutoscaler of it; a maximum that is not given is the minimum, as KServe has it.

    The ``behavior`` that a user wrote is honoured, which KServe drops.
    """
    name, minimum = component_name(item), max(1, predictor.minimum)
    spec: Manifest = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": minimum,
        "maxReplicas": max(predictor.maximum, minimum),
        "metrics": predictor.metrics or [_metric(predictor)],
    }
    if predictor.behavior:
        spec["behavior"] = predictor.behavior
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(item, name),
        "spec": spec,
    }


def is_scaled_here(spec: Inference) -> bool:
    """Whether an autoscaler is made for it in standard mode."""
    return spec.scaled_by == "hpa"


def _metric(predictor: Predictor) -> Manifest:
    percent = int(predictor.target) if predictor.target else _CPU_PERCENT
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": predictor.metric or "cpu", "target": target}}


def _deployment(item: Object, predictor: Predictor, name: str, app: str, replicas: int) -> Manifest:
    spec: Manifest = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": f"isvc.{app}"}},
        "template": template(item, predictor, app),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        "strategy": predictor.strategy
        or {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(item, name), "spec": spec}


def _metadata(item: Object, name: str) -> Manifest:
    return {
        "name": name,
        "namespace": item.namespace,
        "labels": {LABEL: item.name, COMPONENT: "predictor"},
        "ownerReferences": [owner_reference(item)],
    }
