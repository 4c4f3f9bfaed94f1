"""The object that leads requests from outside to an InferenceService: an HTTPRoute, an Ingress or a Service of the type LoadBalancer.

An HTTPRoute shares requests by weights as the rollout says. The other two know no weights: with them the revision with
the largest share gets all. None is made before there is a revision to lead to, unless it leads to the inference gateway, which
shares by itself, and where requests wait.
"""

from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.routing import HTTP_ROUTE, INGRESS, Routing, place_of
from inference_autoscaler.domain.serving.children import LABEL, PORT, service
from inference_autoscaler.domain.serving.component import EXPLAINER, PREDICTOR, TRANSFORMER
from inference_autoscaler.domain.serving.inference_service import STANDARD, Inference
from inference_autoscaler.domain.serving.outcome import Outlook
from kube import Key, Manifest, Mutation, Object, Store, Verb
from kube.owners import owner_reference

_SERVICE = "Service"
_KINDS = {"HTTPRoute": HTTP_ROUTE, "Ingress": INGRESS, "LoadBalancer": _SERVICE}
_NEEDED = ("Accepted", "ResolvedRefs")
_EXPLAINED = r"^/v1/models/[\w-]+:explain$"


def keep_route(found: Outlook, item: Object, spec: Inference, routing: Routing, store: Store) -> None:
    """There is the one that is asked for, as it should be, and no other that is the service's own."""
    kind = _KINDS.get(routing.by)
    key = Key(kind, item.namespace, item.name) if kind is not None else None
    for child in store.owned_by(item.uid):
        if child.name == item.name and child.kind in _KINDS.values() and child.key != key and not child.deleting:
            found.routes.append(Mutation(Verb.DELETE, child.key, child.uid))
    if key is None:
        return
    wanted, there = _route(found, item, spec, routing), store.get(key)
    if there is None:
        found.unrouted = f"{routing.by} {item.name} is not there yet"
        if wanted is not None:
            found.routes.append(Mutation(Verb.CREATE, key, manifest=wanted))
    elif (there.controller or {}).get("uid") != item.uid:
        found.unrouted = f"{routing.by} {item.name} is somebody else's"
    else:
        found.unrouted = _rejected(there) or _unaddressed(there)
        if wanted is not None and not covers(there.spec, wanted["spec"]):
            found.routes.append(Mutation(Verb.PATCH, key, there.uid, patch={"spec": wanted["spec"]}))


def _route(found: Outlook, item: Object, spec: Inference, routing: Routing) -> Manifest | None:
    """What is to be there; None as long as nothing can be led to."""
    front = TRANSFORMER if TRANSFORMER in found.standings else PREDICTOR
    shares = {role: _shares(found, role) for role in (front, EXPLAINER) if role in found.standings}
    host = routing.host(item.name, item.namespace, is_standard=spec.mode == STANDARD)
    if routing.through:
        return _http_route(item, routing, host, [_rule("PathPrefix", "/", [_through(routing)])])
    if not all(shares.values()):
        return None
    if routing.by == "HTTPRoute":
        rules = [_rule("PathPrefix", "/", _weighed(shares[front]))]
        if EXPLAINER in shares:
            rules.insert(0, _rule("RegularExpression", _EXPLAINED, _weighed(shares[EXPLAINER])))
        return _http_route(item, routing, host, rules)
    largest = min(shares[front], key=lambda name: (-shares[front][name], name))
    if routing.by == "Ingress":
        return _ingress(item, routing, host, largest)
    component = next(one for one in spec.components if one.role == front)
    inside = service(item, component, largest)
    return {**inside, "metadata": _metadata(item), "spec": {**inside["spec"], "type": "LoadBalancer"}}


def _shares(found: Outlook, role: str) -> dict[str, int]:
    """The percentage of each Service of the component."""
    standing = found.standings[role]
    if standing.rollout is not None:
        return standing.rollout.split
    return {standing.name: 100} if standing.is_serving else {}


def _http_route(item: Object, routing: Routing, host: str, rules: list[Manifest]) -> Manifest:
    namespace, name = place_of(routing.gateway)
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": namespace, "name": name}
    spec = {"parentRefs": [parent], "hostnames": [host], "rules": rules}
    kind = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}
    return {**kind, "metadata": _metadata(item), "spec": spec}


def _rule(kind: str, path: str, backends: list[Manifest]) -> Manifest:
    return {"matches": [{"path": {"type": kind, "value": path}}], "backendRefs": backends}


def _weighed(shares: dict[str, int]) -> list[Manifest]:
    return [
        {"group": "", "kind": "Service", "name": name, "port": PORT, "weight": percent}
        for name, percent in sorted(shares.items())
    ]


def _through(routing: Routing) -> Manifest:
    namespace, name = place_of(routing.through)
    return {"group": "", "kind": "Service", "namespace": namespace, "name": name, "port": PORT}


def _ingress(item: Object, routing: Routing, host: str, name: str) -> Manifest:
    backend = {"service": {"name": name, "port": {"number": PORT}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec: Manifest = {"rules": [{"host": host, "http": {"paths": [path]}}]}
    if routing.ingress_class:
        spec["ingressClassName"] = routing.ingress_class
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": _metadata(item), "spec": spec}


def _metadata(item: Object) -> Manifest:
    return {
        "name": item.name,
        "namespace": item.namespace,
        "labels": {LABEL: item.name},
        "ownerReferences": [owner_reference(item)],
    }


def _rejected(route: Object) -> str:
    """Why the Gateway does not take it, or may not lead where it leads; empty where it does, or has not said anything yet."""
    told = (one for parent in route.status.get("parents") or () for one in parent.get("conditions") or ())
    refused = (one for one in told if one.get("type") in _NEEDED and one.get("status") == "False")
    return next((f"{one.get('reason')}: {one.get('message')}" for one in refused), "")


def _unaddressed(route: Object) -> str:
    """Why nobody finds a load balancer; empty for what has an address, or is none."""
    if route.kind != _SERVICE or (route.status.get("loadBalancer") or {}).get("ingress"):
        return ""
    return f"the load balancer of Service {route.name} has no address yet"
