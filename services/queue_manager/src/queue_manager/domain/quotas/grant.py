"""What a workload was given, and how the annotation says so."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from kube import Manifest
from kube.json_text import read_json
from queue_manager.domain.quotas.cluster_queue import Quotas
from resources import Amounts

ADMISSION = "tidegate.dev/admission"
"""The annotation that says which quota a workload holds, and what that means for where its pods may run."""

RESERVATION = "tidegate.dev/reservation"
"""The annotation in place of ADMISSION while quota is held and checks have not been answered: no pod may start yet."""

SINCE = "tidegate.dev/quota-since"
"""The annotation that says when the quota was given that a workload holds, RFC 3339: the youngest give theirs back first."""


class SetGrant(NamedTuple):
    """What one pod set was given: how many of its pods, and of which flavor each resource, how much for all of them."""

    name: str
    size: int
    flavors: tuple[tuple[str, str], ...]
    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """What a workload was given: the quota of ``cluster_queue``, of which flavor each resource, how much of it."""

    cluster_queue: str
    flavors: dict[str, str]
    amounts: Amounts
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Manifest, ...] = ()
    levels: tuple[str, ...] = ()
    """The labels of the topology of the nodes, the widest first; empty where they have none."""
    sets: tuple[SetGrant, ...] = ()
    usage: Quotas = field(init=False, compare=False)
    """What it takes, by flavor and resource."""

    def __post_init__(self) -> None:
        usage: Quotas = {}
        for flavors, amounts in self._parts():
            for resource, flavor in flavors.items():
                usage[flavor, resource] = usage.get((flavor, resource), 0) + amounts.get(resource, 0)
        object.__setattr__(self, "usage", usage)

    def _parts(self) -> list[tuple[dict[str, str], Amounts]]:
        if not self.sets:
            return [(self.flavors, self.amounts)]
        return [(dict(item.flavors), dict(item.amounts)) for item in self.sets]

    def text(self) -> str:
        """As the annotation holds it."""
        content: Manifest = {"clusterQueue": self.cluster_queue, "flavors": self.flavors, "usage": self.amounts}
        if self.node_selector:
            content["nodeSelector"] = self.node_selector
        if self.tolerations:
            content["tolerations"] = list(self.tolerations)
        if self.levels:
            content["topology"] = list(self.levels)
        if self.sets:
            content["podSets"] = [
                {"name": item.name, "count": item.size, "flavors": dict(item.flavors), "usage": dict(item.amounts)}
                for item in self.sets
            ]
        return json.dumps(content, separators=(",", ":"), sort_keys=True)


def read_admission(annotations: Mapping[str, str]) -> Admission | None:
    """The admission or reservation in an object's annotations; None where there is none or it is spoilt."""
    text = annotations.get(ADMISSION) or annotations.get(RESERVATION)
    return _parsed(text) if text else None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Admission | None:
    try:
        content = read_json(text)
        if not isinstance(content, dict):
            return None
        return Admission(
            str(content["clusterQueue"]),
            {str(name): str(flavor) for name, flavor in content["flavors"].items()},
            {str(name): int(amount) for name, amount in content["usage"].items()},
            dict(content.get("nodeSelector") or {}),
            tuple(content.get("tolerations") or ()),
            tuple(str(level) for level in content.get("topology") or ()),
            tuple(_read_set(item) for item in content.get("podSets") or ()),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _read_set(item: Manifest) -> SetGrant:
    flavors = tuple((str(name), str(flavor)) for name, flavor in sorted(item["flavors"].items()))
    amounts = tuple((str(name), int(amount)) for name, amount in sorted(item["usage"].items()))
    return SetGrant(str(item["name"]), int(item["count"]), flavors, amounts)
