"""What an InferenceGraph is made of, by KServe's names: a router with its Service and its autoscaler."""

import json
from hashlib import sha256

from inference_autoscaler.domain.serving.children import MADE_OF
from inference_autoscaler.domain.serving.inference_service import CLASS, GROUP
from kube import Manifest, Object
from kube.owners import owner_reference

GRAPH = "InferenceGraph.serving.kserve.io"
LABEL = f"{GROUP}inferencegraph"
PORT = 8080
_RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_OF_PODS = ("affinity", "tolerations", "nodeSelector", "nodeName", "serviceAccountName")
_OF_ROUTER = ("nodes", "timeout", "routerTimeouts")
_CPU_PERCENT = 80


def router_deployment(item: Object, nodes: Manifest, image: str) -> Manifest:
    """The router, with ``nodes`` in which each step has an address; its size is an autoscaler's once it is there."""
    graph = {name: item.spec[name] for name in _OF_ROUTER if name in item.spec} | {"nodes": nodes}
    container = {
        "name": item.name,
        "image": image,
        "args": ["--graph-json", json.dumps(graph, sort_keys=True)],
        "resources": item.spec.get("resources") or _RESOURCES,
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT}},
    }
    pod: Manifest = {name: item.spec[name] for name in _OF_PODS if item.spec.get(name)} | {"containers": [container]}
    labels = {LABEL: item.name, "app": f"isvc.{item.name}"}
    spec = {
        "replicas": _least(item),
        "selector": {"matchLabels": {"app": labels["app"]}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    digest = sha256(json.dumps(pod, sort_keys=True).encode()).hexdigest()[:16]
    metadata = {**_metadata(item), "annotations": {MADE_OF: digest}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def router_service(item: Object) -> Manifest:
    """The Service in front of it."""
    ports = [{"name": item.name, "port": 80, "targetPort": PORT, "protocol": "TCP"}]
    spec = {"selector": {"app": f"isvc.{item.name}"}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(item), "spec": spec}


def router_autoscaler(item: Object) -> Manifest | None:
    """Its autoscaler; None where others, or nobody, are to scale it."""
    if item.annotations.get(CLASS, "hpa") != "hpa":
        return None
    target = {"type": "Utilization", "averageUtilization": item.spec.get("scaleTarget") or _CPU_PERCENT}
    resource = {"name": item.spec.get("scaleMetric") or "cpu", "target": target}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.name},
        "minReplicas": _least(item),
        "maxReplicas": max(int(item.spec.get("maxReplicas") or 0), _least(item)),
        "metrics": [{"type": "Resource", "resource": resource}],
    }
    metadata = _metadata(item)
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def _least(item: Object) -> int:
    """A router that nobody asks is small, and one that is not there answers nobody."""
    least = item.spec.get("minReplicas")
    return 1 if least is None else max(1, int(least))


def _metadata(item: Object) -> Manifest:
    labels = {LABEL: item.name}
    return {
        "name": item.name,
        "namespace": item.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(item)],
    }
