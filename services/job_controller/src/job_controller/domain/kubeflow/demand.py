"""What a pod asks of a node, by Kubernetes' rule: init containers one after the other, sidecars beside all that follows."""

from kube import Manifest
from resources import Amounts, add, largest, parse_amounts


def pod_demand(spec: Manifest) -> Amounts:
    """The requests of a pod with that spec; limits stand in where requests are left out.

    Raises QuantityError for a quantity that is none.
    """
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        need = container_demand(container)
        peak = largest(peak, add(beside, need))
        if container.get("restartPolicy") == "Always":
            beside = add(beside, need)
    for container in spec.get("containers") or []:
        beside = add(beside, container_demand(container))
    return add(largest(peak, beside), parse_amounts(spec.get("overhead")))


def container_demand(container: Manifest) -> Amounts:
    """The requests of one container, limits where it names no request."""
    resources = container.get("resources") or {}
    return parse_amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})
