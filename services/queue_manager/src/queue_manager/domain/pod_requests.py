"""Requests of pods, worked out once for all pods of a template."""

from typing import Any

from kube import Object
from kube.pods import sound_pod_request
from resources import Amounts

_KEPT = 4096


class PodRequests:
    """Remembers the request for a list of containers that versions of a pod, and pods of one template, share.

    The list is kept beside its answer, so that its identity stays its own.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any, Amounts]] = {}

    def of(self, pod: Object) -> Amounts:
        """What the pod asks of its node. The same mapping may be given for many pods: never change it."""
        spec = pod.spec
        containers, overhead = spec.get("containers"), spec.get("overhead")
        known = self._known.get(id(containers))
        if known is not None and known[0] is containers and known[1] is overhead:
            return known[2]
        request = {name: amount for name, amount in sound_pod_request(spec).items() if amount}
        if "initContainers" not in spec and "resources" not in spec:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[id(containers)] = (containers, overhead, request)
        return request
