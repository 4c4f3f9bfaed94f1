"""The nodes of a flavor by the levels of its topology, as vectors that are made anew when nodes changed."""

import json
from dataclasses import dataclass, field

import numpy as np

from kube import Manifest
from kube.node_choice import tolerates
from kube.selectors import matches
from queue_manager.domain.quotas.cluster_queue import Flavor
from queue_manager.domain.rooms.node_room import NodeRoom, NodeView
from topology.levels import Ints, LabelColumn, LevelTree, Mask, grow

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(slots=True)
class NodeDomains:
    """What does not depend on what is used: who may go where, and which node is in which domain."""

    nodes: NodeRoom
    _version: int = -1
    _trees: dict[tuple[str, ...], LevelTree] = field(default_factory=dict)
    _masks: dict[tuple[str, str], tuple[Flavor, Mask]] = field(default_factory=dict)
    _rank: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def tree(self, keys: tuple[str, ...]) -> LevelTree:
        """The domains that the values of these labels make, the widest first."""
        self._renew()
        if keys not in self._trees:
            exists = np.zeros(self.nodes.size, np.bool_)
            exists[list(self.nodes.views)] = True
            self._trees[keys] = grow([self._column(key) for key in keys], exists)
        return self._trees[keys]

    def _column(self, key: str) -> LabelColumn:
        labels = {slot: view.labels[key] for slot, view in self.nodes.views.items() if key in view.labels}
        values = sorted(set(labels.values()))
        places = {value: place for place, value in enumerate(values)}
        of_node = np.full(self.nodes.size, -1, np.int64)
        of_node[list(labels)] = [places[value] for value in labels.values()]
        return LabelColumn(key, values, of_node)

    def allowed(self, flavor: Flavor, limits: str) -> Mask:
        """The nodes of the flavor to which a pod may go whose spec says ``limits`` of nodes."""
        self._renew()
        known = self._masks.get((flavor.name, limits))
        if known is None or known[0] is not flavor:
            mask = np.zeros(self.nodes.size, np.bool_)
            selector, tolerations, required = json.loads(limits) if limits else ({}, [], None)
            wanted = {**flavor.labels, **(selector or {})}
            borne = [*(tolerations or ()), *flavor.tolerations]
            for slot, view in self.nodes.views.items():
                mask[slot] = _takes(view, wanted, borne, required)
            known = self._masks[flavor.name, limits] = (flavor, mask)
        return known[1]

    def rank(self) -> Ints:
        """For each slot the place of its node's name among all."""
        self._renew()
        return self._rank

    def _renew(self) -> None:
        if self._version != self.nodes.version:
            self._version = self.nodes.version
            self._trees.clear()
            self._masks.clear()
            self._rank = np.zeros(self.nodes.size, np.int64)
            for place, (_, slot) in enumerate(sorted((name, slot) for slot, name in self.nodes.names.items())):
                self._rank[slot] = place


def _takes(view: NodeView, labels: dict[str, str], tolerations: list[Manifest], required: Manifest | None) -> bool:
    if view.closed or any(view.labels.get(name) != value for name, value in labels.items()):
        return False
    if not all(any(tolerates(item, taint) for item in tolerations) for taint in view.taints):
        return False
    return required is None or any(_holds(term, view) for term in required.get("nodeSelectorTerms") or ())


def _holds(term: Manifest, view: NodeView) -> bool:
    """Whether a node selector term holds, as far as it is about labels and their presence."""
    known = [item for item in term.get("matchExpressions") or () if item.get("operator") in _OPERATORS]
    return matches({"matchExpressions": known}, view.labels)
