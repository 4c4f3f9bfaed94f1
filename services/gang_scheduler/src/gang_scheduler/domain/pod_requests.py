"""How much room a pod takes on its node: containers, init containers, sidecars and overhead together."""

from typing import Any

from resources import Amounts, QuantityError, add, largest, parse_amounts

PODS = "pods"


def effective_requests(spec: dict[str, Any]) -> Amounts:
    """The requests of a pod spec as Kubernetes adds them up, with one of ``pods``; resources of which it asks nothing are left out.

    Sidecars (init containers with restartPolicy Always) run beside everything that starts after them, other init
    containers one at a time before the containers do. Raises QuantityError naming the resource that is wrong.
    """
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = add(running, _requests(container))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        needs = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, needs)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, needs))
    total = largest(add(running, sidecars), starting)
    total |= _requests(spec)
    total = add(total, parse_amounts(spec.get("overhead")))
    return {name: amount for name, amount in sorted(total.items()) if amount > 0} | {PODS: 1}


def _requests(holder: dict[str, Any]) -> Amounts:
    """Requests of a container or of a pod as a whole; a limit without a request is one, as in Kubernetes."""
    resources = holder.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests")
    return parse_amounts({**limits, **(requests or {})} if limits else requests)


def tolerant_requests(spec: dict[str, Any]) -> tuple[Amounts, str]:
    """Like effective_requests, but tells what is wrong instead of raising: (requests, "" or the error)."""
    try:
        return effective_requests(spec), ""
    except (QuantityError, AttributeError, TypeError) as error:
        return {PODS: 1}, str(error) or type(error).__name__
