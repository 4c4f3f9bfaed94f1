"""What the queue manager says of one queue: its place in the tree, its share and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gang_scheduler.domain.queues.node_groups import NodeGroups, node_groups_of
from gang_scheduler.domain.terms.gang_terms import FIXED
from resources import Amounts


@dataclass(frozen=True, slots=True)
class Entitlement:
    """Amounts as in ``resources``; ``capability`` names only the resources that are capped."""

    name: str
    parent: str = ""
    weight: int = 1
    priority: int = 0
    open: bool = True
    strict_fifo: bool = False
    reclaimable: bool = True
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)
    maximum: Amounts = field(default_factory=dict)
    """What the capability can grow to, where that is more than it is now."""
    placement: str = ""
    """Which nodes its work goes to first, ``binpack`` or ``spread``, if it says so."""
    node_groups: NodeGroups | None = None
    """The node groups that it speaks of."""

    @property
    def limits(self) -> tuple[Any, ...]:
        """All that decides whether something may start, as opposed to who goes first."""
        return self.parent, self.open, self.strict_fifo, self.guarantee, self.capability


def entitlements(payload: Mapping[str, Any]) -> dict[str, Entitlement]:
    """The queues of an EntitlementsComputed decision, by name; a part of a queue that is limited by itself is one, too."""
    found: dict[str, Entitlement] = {}
    for name, item in sorted((payload.get("queues") or {}).items()):
        found[name] = _entitlement(name, item)
        if "fixed" in item:
            found[name + FIXED] = _fixed(found[name], _amounts(item["fixed"]))
    return found


def _fixed(queue: Entitlement, most: Amounts) -> Entitlement:
    """What may be used by those of a queue that cannot be taken back."""
    return replace(
        queue,
        name=queue.name + FIXED,
        parent=queue.name,
        reclaimable=False,
        deserved=most,
        guarantee={},
        capability=most,
        maximum={},
    )


def _entitlement(name: str, item: Mapping[str, Any]) -> Entitlement:
    return Entitlement(
        name,
        str(item.get("parent") or ""),
        max(1, int(item.get("weight") or 1)),
        int(item.get("priority") or 0),
        bool(item.get("open", True)),
        bool(item.get("strict_fifo")),
        bool(item.get("reclaimable", True)),
        _amounts(item.get("deserved")),
        _amounts(item.get("guarantee")),
        _amounts(item.get("capability")),
        _amounts(item.get("maximum")),
        str(item.get("placement") or ""),
        node_groups_of(item.get("node_groups")),
    )


def _amounts(item: Mapping[str, Any] | None) -> Amounts:
    return {str(name): int(amount) for name, amount in (item or {}).items()}
