"""What an InferenceService is made of, by KServe's names: Deployments, Services, and in standard mode autoscalers."""

from inference_autoscaler.domain.serving.agent import PORT as AGENT_PORT
from inference_autoscaler.domain.serving.component import Component
from inference_autoscaler.domain.serving.inference_service import GROUP
from kube import Manifest, Object
from kube.owners import owner_reference

LABEL = f"{GROUP}inferenceservice"
COMPONENT = "component"
REVISION = "serving.knative.dev/revision"
MADE_OF = "tidegate.dev/made-of"
"""Annotation of a revision's Deployment: of what its pods were made. Another one needs another revision."""
PORT, CONTAINER_PORT = 80, 8080
_FRONT = "transformer-container"


def component_name(item: Object, component: Component) -> str:
    """What the children of a component are called."""
    own = f"{component.name}-" if component.name else ""
    return f"{item.name}-{own}{component.role}"


def revision_name(item: Object, component: Component, number: int) -> str:
    """As Knative names revisions."""
    return f"{component_name(item, component)}-{number:05d}"


def serving_container(pod: Manifest) -> Manifest:
    """The container that requests come to first."""
    containers: list[Manifest] = pod["containers"]
    return next((one for one in containers if one.get("name") == _FRONT), containers[0])


def serving_port(pod: Manifest) -> int:
    """Where its pods take requests, an agent aside."""
    ports = serving_container(pod).get("ports") or ()
    return int(ports[0]["containerPort"]) if ports else CONTAINER_PORT


def revision_deployment(item: Object, component: Component, name: str, replicas: int) -> Manifest:
    """The Deployment of the new revision ``name``."""
    made = _deployment(item, component, f"{name}-deployment", name, replicas)
    made["metadata"]["labels"][REVISION] = name
    made["metadata"]["annotations"] = {MADE_OF: component.digest}
    return made


def standard_deployment(item: Object, component: Component) -> Manifest:
    """The one Deployment of a component in standard mode, at its minimum: an autoscaler goes on from there."""
    name = component_name(item, component)
    made = _deployment(item, component, name, name, max(1, component.minimum))
    made["metadata"]["annotations"] = {MADE_OF: component.digest}
    return made


def service(item: Object, component: Component, name: str) -> Manifest:
    """The Service in front of the pods of the Deployment or revision ``name``."""
    first, *others = serving_container(component.pod).get("ports") or [{"containerPort": CONTAINER_PORT}]
    target = AGENT_PORT if component.agent is not None else int(first["containerPort"])
    ports = [_port(first, str(first.get("name") or name), PORT, target)]
    if component.agent is not None:
        ports[0].pop("appProtocol", None)  # it takes HTTP/1.1, whatever the server behind it does
    ports += [
        _port(one, str(one.get("name") or ""), int(one["containerPort"]), int(one["containerPort"])) for one in others
    ]
    spec = {"selector": {"app": f"isvc.{name}"}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata_of(item, component, name), "spec": spec}


def metadata_of(item: Object, component: Component, name: str) -> Manifest:
    """Name, labels and owner of a child."""
    return {
        "name": name,
        "namespace": item.namespace,
        "labels": {LABEL: item.name, COMPONENT: component.role},
        "ownerReferences": [owner_reference(item)],
    }


def _port(container: Manifest, name: str, port: int, target: int) -> Manifest:
    made: Manifest = {"name": name, "port": port, "targetPort": target, "protocol": container.get("protocol") or "TCP"}
    return {**made, "appProtocol": "kubernetes.io/h2c"} if name.startswith(("h2c", "grpc")) else made


def _deployment(item: Object, component: Component, name: str, app: str, replicas: int) -> Manifest:
    spec: Manifest = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": f"isvc.{app}"}},
        "template": _template(item, component, app),
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        "strategy": component.strategy
        or {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    metadata = metadata_of(item, component, name)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _template(item: Object, component: Component, app: str) -> Manifest:
    labels = {**component.labels, LABEL: item.name, COMPONENT: component.role, "app": f"isvc.{app}"}
    metadata: Manifest = {"labels": labels}
    if annotations := component.pod_annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": component.pod}
