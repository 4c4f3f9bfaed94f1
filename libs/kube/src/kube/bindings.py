"""The bodies of bound pods: a template's body with the node laid over it as spec.nodeName."""

from kube.keys import Manifest


def with_node(body: Manifest, node: str) -> Manifest:
    """A pod's body with spec.nodeName set; all other parts are shared with ``body``."""
    return {**body, "spec": {**(body.get("spec") or {}), "nodeName": node}}


def without_node(body: Manifest) -> tuple[Manifest, str]:
    """A bound pod's body as it was before, the same for all pods of one template, and its node."""
    spec = body.get("spec") or {}
    node = spec.get("nodeName")
    if not node or not isinstance(node, str):
        return body, ""
    return {**body, "spec": {name: part for name, part in spec.items() if name != "nodeName"}}, node


class BoundBodies:
    """The bodies of pods that are bound together: those of one template on one node share theirs."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Manifest, Manifest]] = {}

    def on(self, body: Manifest, node: str) -> Manifest:
        """``with_node``, the same object for the same ``body`` and node."""
        known = self._known.get((id(body), node))
        if known is None:
            # The body is kept so that its id cannot be given to another one meanwhile.
            known = self._known[id(body), node] = (with_node(body, node), body)
        return known[0]

    def clear(self) -> None:
        """What is bound from now on is bound apart from what was before."""
        self._known.clear()
