"""What gangs say of the network: Volcano's networkTopology, or annotations of Volcano and Koordinator in its place."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kube.json_text import read_json

GATHERING = "gang.scheduling.koordinator.sh/network-topology-spec"
"""``{"gatherStrategy": [{"layer": …, "strategy": "MustGather" or "PreferGather"}]}``"""
MODE = "volcano.sh/network-topology-mode"
HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"

CLUSTER_LAYER, NODE_LAYER = "ClusterTopologyLayer", "NodeTopologyLayer"
"""Koordinator's layers that are always there: the whole cluster, and single nodes."""


class Topology(NamedTuple):
    """What a gang, or a sub-group, asks of the network: all of it inside one domain at or below a tier."""

    hard: bool
    tier: int | None = None
    """None: any tier."""

    tier_names: tuple[str, ...] = ()
    """In place of a number: the narrowest of these counts where it is hard, else the widest."""

    def __str__(self) -> str:
        if self.tier_names:
            return f"of tier {' and '.join(self.tier_names)} or lower"
        return "of any tier" if self.tier is None else f"of tier {self.tier} or lower"


def topology_of(item: Mapping[str, Any] | None) -> Topology | None:
    """A networkTopology field; None when it asks for nothing."""
    if not item:
        return None
    tier, name = item.get("highestTierAllowed"), str(item.get("highestTierName") or "")
    hard = str(item.get("mode") or "hard") != "soft"
    return Topology(hard, None if tier is None else int(tier), (name,) if name else ())


def topology_told(annotations: Mapping[str, str]) -> Topology | None:
    """What annotations of a PodGroup or of a pod ask for, Koordinator's before Volcano's; None for nothing."""
    if GATHERING in annotations:
        return _gathering(annotations[GATHERING])
    if MODE not in annotations and HIGHEST_TIER not in annotations:
        return None
    tier = annotations.get(HIGHEST_TIER, "")
    return Topology(annotations.get(MODE) != "soft", int(tier) if tier.isdecimal() else None)


@lru_cache(maxsize=1024)
def _gathering(text: str) -> Topology | None:
    """Where members must gather; where there is no must, where they should. Of all wishes the lowest tier goes first anyway."""
    try:
        content = read_json(text)
    except ValueError:
        return None
    rules = content.get("gatherStrategy") if isinstance(content, dict) else None
    found: dict[str, list[str]] = {"MustGather": [], "PreferGather": []}
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, dict) and rule.get("strategy") in found and rule.get("layer") not in (None, CLUSTER_LAYER):
            found[rule["strategy"]].append(str(rule["layer"]))
    must, should = found["MustGather"], found["PreferGather"]
    return Topology(bool(must), None, tuple(must or should)) if must or should else None
