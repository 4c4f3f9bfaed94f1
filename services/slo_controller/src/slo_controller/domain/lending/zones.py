"""Batch resources of each NUMA node, in the zones of a NodeResourceTopology.

Nobody measures NUMA nodes by themselves everywhere: what the system uses, or is kept for it, and what is used by pods without a
NUMA node of their own, counts as spread evenly. So a zone is an estimate, and all of them together are never more than the node.

Source: Koordinator's ``batchresource`` plugin, its part for NUMA.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from kube import Manifest, Object
from resources import Amounts, QuantityError, add, format_amounts, parse_amounts
from slo_controller.domain.lending.batch import batch
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.reserved import Reserved
from slo_controller.domain.lending.rule import Rule
from slo_controller.domain.lending.tenants import Tenant, held
from slo_controller.domain.lending.terms import Use
from slo_controller.domain.names import BATCH_CPU, BATCH_MEMORY

PREFIX = "node-"
BATCH = (BATCH_CPU, BATCH_MEMORY)
_SHOWN = ("capacity", "allocatable", "available")


@dataclass(frozen=True, slots=True)
class Zone:
    """One NUMA node: its number, its place in the list of zones, and what it has."""

    number: int
    place: int
    capacity: Use


def zones_of(topology: Object | None) -> list[Zone]:
    """The NUMA nodes of a node, as somebody says; none where they cannot be told apart."""
    found = []
    for place, one in enumerate((topology.body.get("zones") or ()) if topology is not None else ()):
        try:
            number = int(str(one["name"]).removeprefix(PREFIX))
            listed = {str(part["name"]): part.get("capacity", 0) for part in one.get("resources") or ()}
            amounts = parse_amounts({name: listed[name] for name in ("cpu", "memory")})
        except (AttributeError, KeyError, TypeError, ValueError, QuantityError):
            continue
        found.append(Zone(number, place, Use(amounts["cpu"], amounts["memory"])))
    return found


def lent_by_zone(
    zones: Collection[Zone], rule: Rule, room: Reserved, seen: Measured, tenants: Collection[Tenant], ratio: int
) -> dict[int, Amounts]:
    """What may be lent to batch work of each zone, by its place; a core counts for ``ratio`` thousandths of one."""
    count = len(zones)
    found: dict[int, Amounts] = {}
    for zone in zones:
        here = [share for one in tenants if (share := _of_zone(one, zone.number, zones)) is not None]
        parts = {one.key: _part(seen.pods[one.key], _spread(one, zones)) for one in here if one.key in seen.pods}
        own = replace(seen, system=_part(seen.system, count), applications=_part(seen.applications, count), pods=parts)
        of_zone = Reserved(zone.capacity, _part(room.kept, count))
        found[zone.place] = {one.resource: one.amount for one in batch(rule, of_zone, own, held(here, own))}
        found[zone.place][BATCH_CPU] = found[zone.place][BATCH_CPU] * ratio // 1000
    return found


def _of_zone(tenant: Tenant, number: int, zones: Collection[Zone]) -> Tenant | None:
    """What of a pod counts in a zone; None where nothing does."""
    if tenant.zones and number not in tenant.zones:
        return None
    return tenant._replace(request=_part(tenant.request, _spread(tenant, zones)))


def _spread(tenant: Tenant, zones: Collection[Zone]) -> int:
    """Over how many zones a pod counts."""
    return len(tenant.zones) or len(zones)


def _part(use: Use, count: int) -> Use:
    """An even share, rounded up."""
    return Use(-(-use.cpu // count), -(-use.memory // count))


def zoned(listed: Iterable[Manifest], amounts: Mapping[int, Amounts], written: Mapping[str, int]) -> list[Manifest]:
    """The zones with their batch resources: together no more than what is ``written`` of the node."""
    together: Amounts = {}
    for of_zone in amounts.values():
        together = add(together, of_zone)
    zones = []
    for place, zone in enumerate(listed):
        told = {
            name: _within(amount, together[name], written.get(name, 0))
            for name, amount in amounts.get(place, {}).items()
        }
        zones.append({**zone, "resources": [*_others(zone), *_told(told)]})
    return zones


def unzoned(listed: Iterable[Manifest]) -> list[Manifest]:
    """The zones without batch resources."""
    return [{**zone, "resources": _others(zone)} for zone in listed]


def _within(amount: int, together: int, most: int) -> int:
    return amount * most // together if together > most else amount


def _others(zone: Manifest) -> list[Manifest]:
    return [part for part in zone.get("resources") or () if part.get("name") not in BATCH]


def _told(amounts: Amounts) -> list[Manifest]:
    return [{"name": name, **dict.fromkeys(_SHOWN, amount)} for name, amount in format_amounts(amounts).items()]


def are_zoned(topology: Object) -> bool:
    """Whether zones tell batch resources already."""
    zones = topology.body.get("zones") or ()
    return any(part.get("name") in BATCH for zone in zones for part in zone.get("resources") or ())
