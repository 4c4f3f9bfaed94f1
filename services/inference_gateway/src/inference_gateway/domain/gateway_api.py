"""The same routes for a cluster whose own gateway carries the requests: HTTPRoutes of the Gateway API, or an Ingress."""

from collections.abc import Iterator

from inference_gateway.domain.serving.names import hosts
from inference_gateway.domain.serving.service import Service, Split
from kube import Manifest
from kube.kinds import api_version_of

PORT = 80
_KSERVE_FORM = 4
"""Place of KServe's own form among the hosts of a service; the first one is Knative's."""


def http_routes(service: Service, domain: str, gateway: tuple[str, str]) -> list[Manifest]:
    """One for the service and one for each component, under KServe's names; ``gateway`` is a namespace and a name.

    A component that may get no requests yet has none. The weights are the shares; a backend is the Service of a component or a
    revision, which goes by its name.
    """
    parents = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": gateway[0], "name": gateway[1]}]
    return [
        {
            **_head("gateway.networking.k8s.io/v1", "HTTPRoute", service, name),
            "spec": {
                "parentRefs": parents,
                "hostnames": _public(name, service, domain),
                "rules": [_rule(path, split) for path, split in rules],
            },
        }
        for name, rules in _asked(service)
    ]


def ingress(service: Service, domain: str, class_name: str) -> Manifest | None:
    """One for the service and all its components. An Ingress knows neither shares nor patterns: None where there are several shares,
    or nobody to answer; explanations have a host of their own."""
    asked = list(_asked(service))
    if not asked or any(len(split) != 1 for _, rules in asked for _, split in rules):
        return None
    found = [
        {"host": host, "http": {"paths": [_path(split) for path, split in rules if not path]}}
        for name, rules in asked
        for host in _public(name, service, domain)
    ]
    spec: Manifest = {"rules": found, **({"ingressClassName": class_name} if class_name else {})}
    return {**_head("networking.k8s.io/v1", "Ingress", service, service.key.name), "spec": spec}


def load_balancer(service: Service) -> Manifest | None:
    """One address for the service by itself; None while it is not one pool that answers."""
    split = service.parts[service.entry].split
    if len(split) != 1:
        return None
    ports = [{"name": "http", "port": PORT, "targetPort": 8080, "protocol": "TCP"}]
    spec = {"type": "LoadBalancer", "selector": {"app": f"isvc.{split[0][0][1]}"}, "ports": ports}
    return {**_head("v1", "Service", service, f"{service.key.name}-public"), "spec": spec}


def _asked(service: Service) -> Iterator[tuple[str, list[tuple[str, Split]]]]:
    """The names of what is asked, each with (path, split): the service first, explanations of it before all else."""
    entry, explainer = service.parts[service.entry], service.parts.get("explainer")
    if entry.split and not service.is_stopped:
        explained = [(":explain", explainer.split)] if explainer is not None and explainer.split else []
        yield service.key.name, [*explained, ("", entry.split)]
        for component, part in service.parts.items():
            if component and part.split:
                yield f"{service.key.name}-{component}", [("", part.split)]


def _rule(path: str, split: Split) -> Manifest:
    match = (
        {"type": "RegularExpression", "value": f"^/v1/models/[^/]+{path}$"}
        if path
        else {"type": "PathPrefix", "value": "/"}
    )
    backends = [{"kind": "Service", "name": pool[1], "port": PORT, "weight": share} for pool, share in split]
    return {"matches": [{"path": match}], "backendRefs": backends}


def _path(split: Split) -> Manifest:
    backend = {"service": {"name": split[0][0][1], "port": {"number": PORT}}}
    return {"path": "/", "pathType": "Prefix", "backend": backend}


def _public(name: str, service: Service, domain: str) -> list[str]:
    listed = hosts(name, service.key.namespace, domain)
    return [listed[0], listed[_KSERVE_FORM]]


def _head(version: str, kind: str, service: Service, name: str) -> Manifest:
    key = service.key
    owner = {
        "apiVersion": api_version_of(key.kind),
        "kind": key.kind.partition(".")[0],
        "name": key.name,
        "uid": service.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {"name": name, "namespace": key.namespace, "ownerReferences": [owner]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
