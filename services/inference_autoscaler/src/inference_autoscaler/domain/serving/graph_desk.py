"""All InferenceGraphs: each is looked at when it, its router, or a service that it names changes. Nothing has to be remembered."""

from collections.abc import Set as AbstractSet

from inference_autoscaler.domain.covering import covers
from inference_autoscaler.domain.horizontal.spec import AUTOSCALER
from inference_autoscaler.domain.horizontal.status import changed_conditions
from inference_autoscaler.domain.images import Images
from inference_autoscaler.domain.routing import Routing
from inference_autoscaler.domain.serving.children import MADE_OF
from inference_autoscaler.domain.serving.graph_children import (
    GRAPH,
    router_autoscaler,
    router_deployment,
    router_service,
)
from inference_autoscaler.domain.serving.inference_service import SERVICE, STOP
from inference_autoscaler.domain.serving.outcome import Outlook
from inference_autoscaler.domain.serving.standard import DEPLOYMENT, K8S_SERVICE, create, keep_service, renewed
from kube import Decision, Event, Key, Manifest, Mutation, Object, Outcome, Store, Verb, merge

_CHILDREN = (DEPLOYMENT, K8S_SERVICE, AUTOSCALER)
_Told = tuple[str, str, str]


class GraphDesk:
    """Makes the routers of InferenceGraphs, and says how they are."""

    def __init__(self, routing: Routing, images: Images) -> None:
        self.store = Store()
        self._routing, self._images = routing, images
        self._due: dict[Key, None] = {}
        self._naming: dict[Key, set[Key]] = {}
        """By each service, the graphs with a step that names it."""

    def fold(self, event: Event) -> None:
        """Take in that a graph, what one is made of, or a service changed."""
        if event.key.kind == GRAPH:
            self._fold_graph(event)
        elif event.key.kind == SERVICE:
            if _address(event.old) != _address(event.new):
                self._due.update(dict.fromkeys(self._naming.get(event.key, ())))
        elif event.key.kind in _CHILDREN:
            owner = event.object.controller or {}
            if owner.get("kind") == "InferenceGraph":
                self._due[Key(GRAPH, event.key.namespace, str(owner.get("name")))] = None

    def _fold_graph(self, event: Event) -> None:
        for key in _services(event.old) if event.old is not None else ():
            self._naming[key].discard(event.key)
            if not self._naming[key]:
                del self._naming[key]
        for key in _services(event.new) if event.new is not None else ():
            self._naming.setdefault(key, set()).add(event.key)
        if event.new is None:
            self._due.pop(event.key, None)
        else:
            self._due[event.key] = None

    def settle(self, outcome: Outcome) -> None:
        """Look again at what was refused."""
        if not outcome.applied:
            self._due[outcome.subject] = None

    def decide(self, now: int, in_flight: AbstractSet[Key]) -> list[Decision]:
        """A look at each that is due."""
        if not self._due:
            return []
        due, self._due = sorted(self._due), {key: None for key in self._due if key in in_flight}
        found = (self._look(key, now) for key in due if key not in in_flight)
        return [decision for decision in found if decision is not None]

    def _look(self, key: Key, now: int) -> Decision | None:
        item = self.store.get(key)
        if item is None or item.deleting:
            return None
        found = Outlook()
        ready = self._keep(found, item)
        patch = _status(item, ready, self._routing, now)
        mutations = (*found.changes, *([Mutation(Verb.STATUS, key, item.uid, patch=patch)] if patch else ()))
        if not mutations:
            return None
        if found.made:
            message = f"made anew: {', '.join(found.made)}"
            return Decision("InferenceServiceMade", key, item.uid, "ChildrenMade", message, mutations)
        return Decision("ServingExplained", key, item.uid, ready[1], ready[2], mutations)

    def _keep(self, found: Outlook, item: Object) -> _Told:
        """What has to happen to its children; how it is. A router that runs runs on while an address is looked for."""
        if item.annotations.get(STOP) == "true":
            there = [one for one in self.store.owned_by(item.uid) if one.kind in _CHILDREN and not one.deleting]
            found.changes += [Mutation(Verb.DELETE, one.key, one.uid) for one in there]
            return "False", "Stopped", "the graph is stopped"
        nodes, missing = self._addressed(item)
        if missing:
            return "False", "ServiceNotFound", f"no address is known of {', '.join(missing)}"
        wanted = router_deployment(item, nodes, self._images.graph_router)
        there_is = self.store.get(Key(DEPLOYMENT, item.namespace, item.name))
        if there_is is None:
            create(found, wanted)
        elif there_is.annotations.get(MADE_OF) != wanted["metadata"]["annotations"][MADE_OF]:
            found.changes.append(renewed(there_is, wanted))
            found.made.append(f"Deployment {item.name}")
        keep_service(found, router_service(item), self.store)
        self._keep_autoscaler(found, item)
        serving = 0 if there_is is None else int(there_is.status.get("availableReplicas") or 0)
        if serving:
            return "True", "MinimumReplicasAvailable", "requests are taken through the graph"
        return "Unknown", "MinimumReplicasUnavailable", "no pod of the router serves yet"

    def _keep_autoscaler(self, found: Outlook, item: Object) -> None:
        wanted = router_autoscaler(item)
        there = self.store.get(Key(AUTOSCALER, item.namespace, item.name))
        if there is None:
            if wanted is not None:
                create(found, wanted)
        elif (there.controller or {}).get("uid") != item.uid or there.deleting:
            return
        elif wanted is None:
            found.changes.append(Mutation(Verb.DELETE, there.key, there.uid))
        elif not covers(there.spec, wanted["spec"]):
            found.changes.append(Mutation(Verb.PATCH, there.key, there.uid, patch={"spec": wanted["spec"]}))
            found.made.append(f"HorizontalPodAutoscaler {there.name}")

    def _addressed(self, item: Object) -> tuple[Manifest, list[str]]:
        """The nodes with an address for each service that is named, and the services that have none."""
        addresses = {key.name: _endpoint(self.store.get(key)) for key in _services(item)}
        nodes: Manifest = {}
        for name, node in (item.spec.get("nodes") or {}).items():
            steps = [
                {**step, "serviceUrl": addresses[step["serviceName"]]} if step.get("serviceName") else step
                for step in node.get("steps") or ()
            ]
            nodes[name] = {**node, "steps": steps}
        return nodes, sorted(name for name, address in addresses.items() if not address)


def _services(item: Object) -> set[Key]:
    nodes: Manifest = item.spec.get("nodes") or {}
    steps = (step for node in nodes.values() for step in node.get("steps") or ())
    return {Key(SERVICE, item.namespace, step["serviceName"]) for step in steps if step.get("serviceName")}


def _address(item: Object | None) -> tuple[str, str] | None:
    """Where it is, and what it speaks; None while it is nowhere."""
    url = (item.status.get("address") or {}).get("url") if item is not None else None
    if item is None or not url:
        return None
    return str(url), str(((item.spec.get("predictor") or {}).get("model") or {}).get("protocolVersion") or "v1")


def _endpoint(item: Object | None) -> str:
    """Where predictions of a service are asked for, by its protocol; "" while that is not known."""
    address = _address(item)
    if item is None or address is None:
        return ""
    url, protocol = address
    return f"{url}/v2/models/{item.name}/infer" if protocol == "v2" else f"{url}/v1/models/{item.name}:predict"


def _status(item: Object, ready: _Told, routing: Routing, now: int) -> Manifest:
    """What of the status is to be changed; empty where nothing is."""
    parts: Manifest = {
        "observedGeneration": item.metadata.get("generation", 1),
        "url": f"http://{routing.host(item.name, item.namespace, is_standard=True)}",
        "deploymentMode": "Standard",
    }
    patch = {name: value for name, value in parts.items() if merge(item.status, {name: value}) != item.status}
    status, reason, message = ready
    told = [{"type": "Ready", "status": status, "reason": reason, "message": message}]
    conditions = changed_conditions(item.status, told, now)
    return {**patch, **({"conditions": conditions} if conditions else {})}
