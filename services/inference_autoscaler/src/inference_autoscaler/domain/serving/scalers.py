"""What scales a component in standard mode: a HorizontalPodAutoscaler, or a ScaledObject that makes one."""

from inference_autoscaler.domain.serving.children import component_name, metadata_of
from inference_autoscaler.domain.serving.component import Component
from kube import Manifest, Object

SCALED_OBJECT = "ScaledObject.keda.sh"
_CPU_PERCENT = 80


def scaler(item: Object, component: Component, scaled_by: str) -> Manifest | None:
    """What is to be there; None where nothing is."""
    if scaled_by == "hpa":
        return _autoscaler(item, component)
    return _scaled_object(item, component) if scaled_by == "keda" else None


def _autoscaler(item: Object, component: Component) -> Manifest:
    """A maximum that is not given is the minimum, as KServe has it. The ``behavior`` of a user is honoured, which KServe drops."""
    name, minimum = component_name(item, component), max(1, component.minimum)
    spec: Manifest = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": minimum,
        "maxReplicas": max(component.maximum, minimum),
        "metrics": component.metrics or [_metric(component)],
    }
    if component.behavior:
        spec["behavior"] = component.behavior
    metadata = metadata_of(item, component, name)
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def _metric(component: Component) -> Manifest:
    percent = int(component.target) if component.target else _CPU_PERCENT
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": component.metric or "cpu", "target": target}}


def _scaled_object(item: Object, component: Component) -> Manifest:
    """To zero where the minimum is zero and a source outside the pods can wake it."""
    name = component_name(item, component)
    triggers = [_trigger(one) for one in component.metrics] or [_resource("cpu", "Utilization", str(_CPU_PERCENT))]
    spec: Manifest = {
        "scaleTargetRef": {"name": name},
        "minReplicaCount": component.minimum,
        "maxReplicaCount": max(component.maximum, component.minimum, 1),
        "triggers": triggers,
    }
    if all(trigger["type"] in ("cpu", "memory") for trigger in triggers):
        spec["minReplicaCount"] = max(1, component.minimum)
    if component.behavior:
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": component.behavior}}
    metadata = metadata_of(item, component, name)
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}


def _trigger(metric: Manifest) -> Manifest:
    """A metric of KServe's as a trigger of KEDA's. Raises ValueError for a source that is none here."""
    kind = metric.get("type")
    if kind == "Resource":
        target = metric["resource"]["target"]
        value = target.get("averageUtilization") or target.get("averageValue") or target.get("value")
        return _resource(str(metric["resource"]["name"]), str(target.get("type") or "Utilization"), str(value))
    if kind == "External":
        source, target = metric["external"]["metric"], metric["external"]["target"]
        threshold = str(target.get("value") or target.get("averageValue"))
        told = {name: str(source[name]) for name in ("serverAddress", "query", "namespace") if source.get(name)}
        reference = metric["external"].get("authenticationRef") or {}
        trigger: Manifest = {
            "type": str(source.get("backend") or "prometheus"),
            "metadata": {**told, "threshold": threshold},
        }
        return (
            {**trigger, "authenticationRef": reference["authenticationRef"]}
            if reference.get("authenticationRef")
            else trigger
        )
    raise ValueError(f"autoScaling.metrics of type {kind} have no source here; use Resource or External")


def _resource(name: str, kind: str, value: str) -> Manifest:
    return {"type": name, "metricType": kind, "metadata": {"value": value}}
