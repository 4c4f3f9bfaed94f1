"""The volumes that there are and the classes that volumes are made by: on which nodes each can be had."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Mask
from gang_scheduler.domain.nodes.filters import term_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.terms.node_rules import NodeTerm, node_term
from gang_scheduler.domain.terms.selectors import label_selector, matches_all, requirements
from kube import Object
from kube.volumes import capacity_of, class_of, is_free, provisions, topology_term, volume_suits, waits_for_consumer


@dataclass(slots=True)
class VolumeSupply:
    """Volumes and classes as facts tell them, by name."""

    table: NodeTable
    volumes: dict[str, Object] = field(default_factory=dict)
    classes: dict[str, Object] = field(default_factory=dict)
    _open: dict[str, dict[str, Object]] = field(default_factory=dict)
    """By class the volumes that no claim has."""

    _terms: dict[str, tuple[Object, tuple[NodeTerm, ...]]] = field(default_factory=dict)

    def fold_volume(self, name: str, new: Object | None) -> None:
        """A volume came, changed or went."""
        before = self.volumes.pop(name, None)
        if before is not None:
            self._open.get(class_of(before) or "", {}).pop(name, None)
        if new is not None:
            self.volumes[name] = new
            if not (new.spec.get("claimRef") or {}).get("uid"):
                self._open.setdefault(class_of(new) or "", {})[name] = new

    def fold_class(self, name: str, new: Object | None) -> None:
        """A class came, changed or went."""
        self.classes.pop(name, None)
        if new is not None:
            self.classes[name] = new

    def class_missing(self, claim: Object) -> str:
        """Words for a class that the claim names and nobody knows; "" when there is nothing to say."""
        name = class_of(claim)
        return f': storageclass.storage.k8s.io "{name}" not found' if name and name not in self.classes else ""

    def waits_for_consumer(self, claim: Object) -> bool:
        """Whether a claim of this class is bound with its first pod."""
        return waits_for_consumer(self._class(claim))

    def nowhere(self) -> Mask:
        """No node at all."""
        return np.zeros(self.table.size, np.bool_)

    def reach(self, volume: str) -> Mask | None:
        """The nodes that a volume can be had on; None for all."""
        item = self.volumes[volume]
        known = self._terms.get(volume)
        if known is None or known[0] is not item:
            required = (item.spec.get("nodeAffinity") or {}).get("required") or {}
            terms = tuple(node_term(term) for term in required.get("nodeSelectorTerms") or ())
            known = self._terms[volume] = item, terms
        return self._any_term(known[1]) if known[1] else None

    def suitable(self, claim: Object) -> Iterator[tuple[int, str]]:
        """The volumes that no claim has and that would do for this one: capacity in bytes and name, in no order."""
        selector = label_selector(claim.spec.get("selector")) or ()
        for name, item in self._open.get(class_of(claim) or "", {}).items():
            if is_free(item, claim) and volume_suits(item, claim) and matches_all(selector, item.labels):
                yield capacity_of(item), name

    def made_at(self, claim: Object) -> Mask:
        """Where a volume can be made for a claim."""
        storage = self._class(claim)
        if storage is None or not provisions(storage):
            return self.nowhere()
        allowed = storage.body.get("allowedTopologies") or ()
        if not allowed:
            return np.ones(self.table.size, np.bool_)
        return self._any_term([_topology(item) for item in allowed])

    def near(self, claim: Object, slot: int) -> Mask:
        """Where a volume can be had that is made for a claim at ``slot``."""
        term = topology_term(self._class(claim), self.table.names[slot], self.table.labels_at(slot))
        return self._any_term([node_term(term)])

    def _class(self, claim: Object) -> Object | None:
        return self.classes.get(class_of(claim) or "")

    def _any_term(self, terms: Sequence[NodeTerm]) -> Mask:
        mask = self.nowhere()
        for term in terms:
            mask |= term_mask(term, self.table, ALL)
        return mask


def _topology(item: Mapping[str, Any]) -> NodeTerm:
    """A term of allowedTopologies: for every key one of its values."""
    given = item.get("matchLabelExpressions") or ()
    return NodeTerm(requirements([{**one, "operator": "In"} for one in given]), ())
