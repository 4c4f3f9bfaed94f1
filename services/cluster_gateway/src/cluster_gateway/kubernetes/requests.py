"""From what was decided to requests to an API server: one or two for each mutation."""

import base64
from collections.abc import Mapping

from apiserver.api import Answer, ApiRequest, field_manager
from cluster_gateway.kubernetes.discovery import Served
from cluster_gateway.secrets import GENERATE, SSH_KEYPAIR, ssh_keypair
from kube import Key, Manifest, Mutation, Object
from kube.devices import annotations_of

SCHEDULER = "tidegate"
"""Who places the pods that services make, where their job does not say: the server would say ``default-scheduler``."""

_TEMPLATED = ("Job.batch", "Deployment.apps")


class NotServed(Exception):
    """The cluster does not have the kind."""


def manager(service: str) -> Mapping[str, str]:
    """The parameter that makes ``service`` the field manager of what a request sets."""
    return {"fieldManager": field_manager(service)}


def creation(mutation: Mutation, served: Mapping[str, Served], service: str) -> ApiRequest:
    """POST of the object as it was decided. Raises NotServed."""
    kind = served_kind(served, mutation.key)
    manifest = mutation.manifest or {}
    metadata = {**(manifest.get("metadata") or {}), "name": mutation.key.name}
    if mutation.key.namespace:
        metadata["namespace"] = mutation.key.namespace
    body = {**manifest, "metadata": metadata}
    if mutation.key.kind == "Pod":
        body["spec"] = _ours(manifest.get("spec") or {})
    elif mutation.key.kind in _TEMPLATED:
        spec = manifest.get("spec") or {}
        template = spec.get("template") or {}
        body["spec"] = {**spec, "template": {**template, "spec": _ours(template.get("spec") or {})}}
    if mutation.key.kind == "Secret" and (metadata.get("annotations") or {}).get(GENERATE) == SSH_KEYPAIR:
        made = ssh_keypair(str(manifest.get("type", "")))
        body["data"] = {name: base64.b64encode(value).decode() for name, value in made.items()}
    if kind.has_status:
        body.pop("status", None)
    return ApiRequest("POST", kind.path(mutation.key.namespace), body, manager(service))


def _ours(pod_spec: Manifest) -> Manifest:
    return {"schedulerName": SCHEDULER, **pod_spec}


def deletion(mutation: Mutation, there: Object, served: Mapping[str, Served]) -> ApiRequest:
    """Deletion of this very object; what it owns goes after it."""
    path = served_kind(served, mutation.key).path(mutation.key.namespace, mutation.key.name)
    return ApiRequest("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **_options(mutation, there)})


def eviction(mutation: Mutation, there: Object, served: Mapping[str, Served]) -> ApiRequest:
    """Eviction of this very pod, which the server refuses where a disruption budget forbids it."""
    name, namespace = mutation.key.name, mutation.key.namespace
    options = _options(mutation, there)
    del options["propagationPolicy"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    }
    return ApiRequest("POST", served_kind(served, mutation.key).path(namespace, name) + "/eviction", body)


def binding(mutation: Mutation, there: Object, served: Mapping[str, Served]) -> ApiRequest:
    """Binding of this very pod to its node; the server copies the annotations, which name its devices, to the pod."""
    name, namespace = mutation.key.name, mutation.key.namespace
    metadata: Manifest = {"name": name, "namespace": namespace, "uid": there.uid}
    if mutation.devices:
        metadata["annotations"] = annotations_of(mutation.devices)
    target = {"apiVersion": "v1", "kind": "Node", "name": mutation.node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    return ApiRequest("POST", served_kind(served, mutation.key).path(namespace, name) + "/binding", body)


def reading(key: Key, served: Mapping[str, Served]) -> ApiRequest:
    """GET of the object as it is now."""
    return ApiRequest("GET", served_kind(served, key).path(key.namespace, key.name))


def values_of(answer: Answer) -> dict[str, bytes] | None:
    """The values of a Secret that was read; None where there is none."""
    if not answer.ok:
        return None
    return {name: base64.b64decode(value) for name, value in (answer.body.get("data") or {}).items()}


def served_kind(served: Mapping[str, Served], key: Key) -> Served:
    """How the cluster serves the kind of ``key``. Raises NotServed."""
    found = served.get(key.kind)
    if found is None:
        raise NotServed(f"the cluster has no kind {key.kind}: its CustomResourceDefinition is missing")
    return found


def _options(mutation: Mutation, there: Object) -> Manifest:
    options: Manifest = {"preconditions": {"uid": there.uid}, "propagationPolicy": "Background"}
    if mutation.grace_seconds is not None:
        options["gracePeriodSeconds"] = mutation.grace_seconds
    return options
