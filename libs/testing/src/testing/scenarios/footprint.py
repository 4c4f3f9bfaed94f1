"""What a pod holds of a node: the requests that Kubernetes counts, as integer amounts."""

from collections.abc import Mapping
from typing import Any

from kube import Object
from resources import Amounts, add, largest, parse_amounts

# The older names of the batch and mid resources mean the same.
_OLD_PREFIX, _NEW_PREFIX = "koordinator.sh/", "kubernetes.io/"
_RENAMED = ("batch-cpu", "batch-memory", "mid-cpu", "mid-memory")


def footprint(pod: Object) -> Amounts:
    """What the pod takes of its node: containers and sidecars together, or an init container with the sidecars before
    it where that is more, and the overhead; and one of the node's pods.
    """
    spec = pod.spec
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, _requests(container))
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, _requests(container)))
    running = sidecars
    for container in spec.get("containers") or ():
        running = add(running, _requests(container))
    whole = spec.get("resources") or {}
    total = {**amounts(whole.get("limits")), **largest(running, starting), **amounts(whole.get("requests"))}
    return add(add(total, amounts(spec.get("overhead"))), {"pods": 1})


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    """A resource list as amounts, under the names in use today."""
    return {_renamed(name): amount for name, amount in parse_amounts(quantities).items()}


def _requests(part: Mapping[str, Any]) -> Amounts:
    resources = part.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def _renamed(name: str) -> str:
    short = name.removeprefix(_OLD_PREFIX)
    return _NEW_PREFIX + short if short != name and short in _RENAMED else name
