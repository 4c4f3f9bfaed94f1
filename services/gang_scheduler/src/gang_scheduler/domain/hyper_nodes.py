"""Network domains: HyperNodes, which name nodes or lower HyperNodes, as masks over the nodes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gang_scheduler.domain.filters import conjunction_mask
from gang_scheduler.domain.node_table import NodeTable
from gang_scheduler.domain.selectors import label_selector
from gang_scheduler.domain.vectors import ALL, Ints, Mask
from kube import Event, Object

HYPER_NODE = "HyperNode.topology.volcano.sh"


class Topology(NamedTuple):
    """What a gang, or a sub-group, asks of the network: all of it inside one domain at or below a tier."""

    hard: bool
    tier: int | None = None
    """None: any tier."""

    tier_name: str = ""

    def __str__(self) -> str:
        if self.tier_name:
            return f"of tier {self.tier_name} or lower"
        return "of any tier" if self.tier is None else f"of tier {self.tier} or lower"


def topology_of(item: Mapping[str, Any] | None) -> Topology | None:
    """A networkTopology field; None when it asks for nothing."""
    if not item:
        return None
    tier = item.get("highestTierAllowed")
    hard = str(item.get("mode") or "hard") != "soft"
    return Topology(hard, None if tier is None else int(tier), str(item.get("highestTierName") or ""))


class Domain(NamedTuple):
    """One HyperNode with the nodes below it."""

    tier: int
    name: str
    nodes: Mask


@dataclass(slots=True)
class HyperNodes:
    """All HyperNodes. Their masks are computed anew when they or the nodes changed."""

    table: NodeTable
    _items: dict[str, Object] = field(default_factory=dict)
    _domains: list[Domain] = field(default_factory=list)
    _version: int = -1

    def fold(self, event: Event) -> None:
        """A HyperNode came, changed or went."""
        self._items.pop(event.key.name, None)
        if event.new is not None:
            self._items[event.key.name] = event.new
        self._version = -1
        # Whoever waits may find room now.
        self.table.rules.forget()

    def domains(self) -> list[Domain]:
        """All domains by tier and name."""
        if self._version != self.table.version:
            self._version = self.table.version
            masks: dict[str, Mask] = {}
            found = [
                Domain(int(item.spec.get("tier") or 0), name, self._mask(name, masks, ()))
                for name, item in self._items.items()
            ]
            self._domains = sorted(found, key=lambda domain: (domain.tier, domain.name))
        return self._domains

    def choices(
        self, topology: Topology, fence: Mask | None, held: Sequence[int], rows: list[int], *, fullest: bool
    ) -> Iterator[Mask]:
        """The domains inside ``fence`` that hold the nodes ``held``: lowest tier first, then the fullest of ``rows``.

        After them, where it only should be one domain, the whole fence.
        """
        highest = self._highest(topology)
        found = [
            domain
            for domain in self.domains()
            if (highest is None or domain.tier <= highest) and all(domain.nodes[slot] for slot in held)
        ]
        for domain in sorted(found, key=lambda domain: (domain.tier, self._fill(domain, rows, fullest), domain.name)):
            yield domain.nodes if fence is None else domain.nodes & fence
        if not topology.hard:
            yield np.ones(self.table.size, np.bool_) if fence is None else fence

    def _highest(self, topology: Topology) -> int | None:
        if not topology.tier_name:
            return topology.tier
        named = [
            int(i.spec.get("tier") or 0) for i in self._items.values() if i.spec.get("tierName") == topology.tier_name
        ]
        return max(named, default=-1)

    def _fill(self, domain: Domain, rows: list[int], fullest: bool) -> float:
        has: Ints = self.table.allocatable[rows][:, domain.nodes].sum(axis=1)
        used: Ints = self.table.used[rows][:, domain.nodes].sum(axis=1)
        share = float((used / np.maximum(has, 1)).sum())
        return -round(share, 9) if fullest else round(share, 9)

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
