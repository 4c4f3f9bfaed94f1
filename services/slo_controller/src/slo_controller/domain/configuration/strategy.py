"""One key of the ConfigMap, read: a strategy for the cluster, and others for some of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube import Manifest
from kube.json_text import read_json
from kube.node_slo import overlaid
from kube.selectors import matches
from slo_controller.domain.configuration.checks import check
from slo_controller.domain.configuration.parts import Part

_OF_NODES = ("name", "nodeSelector")
"""What of a strategy for some nodes says which ones."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """``nodes`` are selectors and what holds on the nodes that they select: whole strategies, as ``cluster`` is one."""

    cluster: Manifest
    nodes: tuple[tuple[Manifest, Manifest], ...] = ()

    def on(self, labels: Mapping[str, str]) -> Manifest:
        """What holds on a node with these labels: the first that selects it, else that of the cluster."""
        return next((whole for selector, whole in self.nodes if matches(selector, labels)), self.cluster)


def read_strategy(text: str, part: Part, base: Manifest) -> Strategy:
    """What ``text`` says, over ``base``; what a strategy of nodes leaves out is as in that of the cluster.

    Raises ValueError, in words for who wrote it, where the text is no JSON or a field makes no sense.
    """
    given = read_json(text)
    if not isinstance(given, dict):
        raise ValueError("the content is no mapping")
    check({part.nodes: given.get(part.nodes)}, {part.nodes: []}, "the content")
    listed = given.get(part.nodes) or ()
    said = given.get(part.cluster) or {} if part.cluster else _but(given, (part.nodes,))
    cluster = _laid(base, said, part, part.cluster or "the content")
    return Strategy(cluster, tuple(_of_nodes(cluster, one, part, at) for at, one in enumerate(listed)))


def _of_nodes(cluster: Manifest, one: Any, part: Part, at: int) -> tuple[Manifest, Manifest]:
    place = f"{part.nodes}[{at}]"
    check(one, {}, place)
    selector = one.get("nodeSelector") or {}
    check(selector, {"matchLabels": {}}, f"{place}.nodeSelector")
    try:
        matches(selector, {})
    except (AttributeError, TypeError):
        raise ValueError(f"{place}.nodeSelector is no selector of labels") from None
    return selector, _laid(cluster, _but(one, _OF_NODES), part, place)


def _laid(base: Manifest, said: Manifest, part: Part, place: str) -> Manifest:
    check(said, part.defaults, place)
    whole = overlaid(base, said)
    check(whole, part.defaults, place)
    return whole


def _but(given: Manifest, names: tuple[str, ...]) -> Manifest:
    return {name: value for name, value in given.items() if name not in names}
