"""Network domains: HyperNodes, which name nodes or lower HyperNodes, as masks over the nodes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Mask
from gang_scheduler.domain.nodes.filters import conjunction_mask
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.terms.network_words import NODE_LAYER, Topology
from gang_scheduler.domain.terms.selectors import label_selector
from gang_scheduler.domain.topology.label_tree import label_domains, layers_of
from gang_scheduler.domain.topology.network_domains import Domain, DomainTable, Need
from kube import Event, Object

HYPER_NODE = "HyperNode.topology.volcano.sh"
LAYERS = "ClusterNetworkTopology.scheduling.koordinator.sh"


@dataclass(slots=True)
class HyperNodes:
    """All HyperNodes. Labels make the domains above them, or all. Computed anew when they or the nodes changed.

    Which labels these are a ClusterNetworkTopology may say, Koordinator's: the one named ``default``, else the first.
    """

    table: NodeTable
    _items: dict[str, Object] = field(default_factory=dict)
    _layers: dict[str, Object] = field(default_factory=dict)
    _domains: DomainTable = field(default_factory=lambda: DomainTable(()))
    _version: int = -1
    _highest: int = 0
    """The highest tier of HyperNodes, 0 where there are none."""

    def fold(self, event: Event) -> None:
        """A HyperNode, or a ClusterNetworkTopology, came, changed or went."""
        items = self._layers if event.key.kind == LAYERS else self._items
        items.pop(event.key.name, None)
        if event.new is not None:
            items[event.key.name] = event.new
        self._version = -1
        # Whoever waits may find room now.
        self.table.rules.forget()

    def domains(self) -> DomainTable:
        """All domains."""
        if self._version != self.table.version:
            self._version = self.table.version
            described = list(self._described())
            self._highest = max((domain.tier for domain in described), default=0)
            name = min(self._layers, key=lambda name: (name != "default", name), default="")
            layers = layers_of(self._layers[name].spec) if name else ()
            self._domains = DomainTable([*described, *label_domains(self.table, self._highest, layers)])
        return self._domains

    def choices(
        self,
        topology: Topology,
        fence: Mask | None,
        held: Sequence[int],
        needs: Sequence[Need],
        rows: list[int],
        *,
        fullest: bool,
    ) -> Iterator[Mask]:
        """The domains inside ``fence`` that hold the nodes ``held`` and may have room for ``needs``, the best first.

        After them, where it only should be one domain, few domains together, and at last the whole fence.
        """
        if NODE_LAYER in topology.tier_names:
            yield from self._nodes_alone(fence, held, needs, rows, fullest=fullest)
            if topology.hard:
                return
        domains, highest = self.domains(), self.highest(topology)
        found = domains.candidates(highest, held, needs)
        for nodes in domains.ordered(found, self.table, rows, fullest=fullest):
            yield nodes if fence is None else nodes & fence
        if not topology.hard:
            for nodes in domains.unions(highest, held, needs):
                yield nodes if fence is None else nodes & fence
            yield np.ones(self.table.size, np.bool_) if fence is None else fence

    def highest(self, topology: Topology) -> int | None:
        """The highest tier that is allowed, None for any. Who names none gets HyperNodes, if there are any."""
        if topology.tier_names:
            tiers = [self.domains().tier_named(name) for name in topology.tier_names]
            return min(tiers) if topology.hard else max(tiers)
        self.domains()
        return self._highest or None if topology.tier is None else topology.tier

    def possible(self, topology: Topology, needs: Sequence[Need]) -> bool:
        """Whether any domain that is allowed has room for ``needs``."""
        if NODE_LAYER in topology.tier_names:
            return bool(_large_enough(self.table.exists, needs).any())
        return bool(len(self.domains().candidates(self.highest(topology), (), needs)))

    def _nodes_alone(
        self, fence: Mask | None, held: Sequence[int], needs: Sequence[Need], rows: list[int], *, fullest: bool
    ) -> Iterator[Mask]:
        """Every node by itself that holds the nodes ``held`` and may have room for ``needs``, in the order of domains."""
        fitting = np.flatnonzero(_large_enough(self.table.exists if fence is None else fence, needs))
        shares = (self.table.used[rows] / np.maximum(self.table.allocatable[rows], 1)).sum(axis=0).round(9)[fitting]
        for slot in fitting[np.lexsort((self.table.rank()[fitting], -shares if fullest else shares))].tolist():
            if set(held) <= {slot}:
                mask = np.zeros(self.table.size, np.bool_)
                mask[slot] = True
                yield mask

    def _described(self) -> Iterator[Domain]:
        masks: dict[str, Mask] = {}
        for name, item in self._items.items():
            tier, tier_name = int(item.spec.get("tier") or 0), str(item.spec.get("tierName") or "")
            yield Domain(tier, name, self._mask(name, masks, ()), tier_name)

    def _mask(self, name: str, masks: dict[str, Mask], above: tuple[str, ...]) -> Mask:
        if name in masks:
            return masks[name]
        mask = np.zeros(self.table.size, np.bool_)
        item = self._items.get(name)
        if item is None or name in above:
            return mask
        for member in item.spec.get("members") or ():
            selector = member.get("selector") or {}
            if member.get("type") == "HyperNode":
                for other in _named(selector, self._items):
                    mask |= self._mask(other, masks, (*above, name))
            else:
                mask |= self._nodes(selector)
        masks[name] = mask
        return mask

    def _nodes(self, selector: Mapping[str, Any]) -> Mask:
        mask = np.zeros(self.table.size, np.bool_)
        mask[[self.table.slots[name] for name in _named(selector, self.table.slots)]] = True
        labels = label_selector(selector.get("labelMatch"))
        if labels is not None:
            mask |= self.table.exists & conjunction_mask(labels, self.table, ALL)
        return mask


def _large_enough(nodes: Mask, needs: Sequence[Need]) -> Mask:
    """Those of ``nodes`` each of which has room for all of ``needs``, looked at shape by shape."""
    large = nodes.copy()
    for need in needs:
        large &= need.copies >= need.wanted
    return large


def _named(selector: Mapping[str, Any], names: Mapping[str, Any]) -> list[str]:
    """Those of ``names`` that an exactMatch or regexMatch takes; a pattern that is none takes nothing."""
    exact = (selector.get("exactMatch") or {}).get("name")
    pattern = (selector.get("regexMatch") or {}).get("pattern")
    found = [str(exact)] if exact in names else []
    if pattern:
        try:
            found += [name for name in names if re.search(pattern, name)]
        except re.error:
            return found
    return found
