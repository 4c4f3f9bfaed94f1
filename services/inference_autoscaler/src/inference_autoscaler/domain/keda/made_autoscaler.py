"""The HorizontalPodAutoscaler that a ScaledObject has made."""

from inference_autoscaler.domain.keda.scaled_object import NAME_LABEL, Scaled, Trigger
from inference_autoscaler.domain.keda.triggers import KNOWN, RESOURCES, target_milli
from kube import Manifest, Object
from kube.kinds import api_version_of
from kube.owners import owner_reference
from resources import format_quantity


def autoscaler_of(item: Object, spec: Scaled) -> Manifest:
    """Its manifest. At least one replica: below that the ScaledObject itself decides."""
    kind = spec.target.kind
    reference = {"apiVersion": api_version_of(kind), "kind": kind.partition(".")[0], "name": spec.target.name}
    labels = {NAME_LABEL: item.name, "app.kubernetes.io/managed-by": "keda-operator"}
    wanted: Manifest = {
        "scaleTargetRef": reference,
        "minReplicas": max(1, spec.minimum),
        "maxReplicas": spec.maximum,
        "metrics": [_metric(one, item.name) for one in spec.triggers if one.type in KNOWN],
    }
    if spec.behavior:
        wanted["behavior"] = spec.behavior
    metadata = {
        "name": spec.autoscaler,
        "namespace": item.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(item)],
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": wanted,
    }


def _metric(trigger: Trigger, name: str) -> Manifest:
    if trigger.type in RESOURCES:
        return _resource(trigger)
    field = "value" if trigger.kind == "Value" else "averageValue"
    target = {"type": trigger.kind, field: format_quantity(target_milli(trigger), milli=True)}
    metric = {"name": trigger.metric, "selector": {"matchLabels": {NAME_LABEL: name}}}
    return {"type": "External", "external": {"metric": metric, "target": target}}


def _resource(trigger: Trigger) -> Manifest:
    value = str(trigger.metadata["value"])
    target: Manifest = {"type": trigger.kind}
    target |= {"averageUtilization": int(value)} if trigger.kind == "Utilization" else {"averageValue": value}
    container = trigger.metadata.get("containerName")
    if container:
        source = {"name": trigger.type, "container": str(container), "target": target}
        return {"type": "ContainerResource", "containerResource": source}
    return {"type": "Resource", "resource": {"name": trigger.type, "target": target}}
