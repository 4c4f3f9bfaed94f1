"""The bodies of bound pods: a template's body with the node laid over it as spec.nodeName."""

from typing import Any

from kube.keys import Manifest


class BoundBody(dict[str, Any]):
    """The body of a bound pod; ``template`` is the body that it had before, shared by all pods of one template."""

    __slots__ = ("template",)
    template: Manifest


def with_node(body: Manifest, node: str) -> Manifest:
    """A pod's body with spec.nodeName set; all other parts are shared with ``body``."""
    template = template_of(body)
    bound = BoundBody(template)
    bound["spec"] = {**(template.get("spec") or {}), "nodeName": node}
    bound.template = template
    return bound


def template_of(body: Manifest) -> Manifest:
    """A pod's body as it was before the pod was bound; pods whose templates are one differ in nothing but their nodes."""
    return body.template if type(body) is BoundBody else body


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
