"""All that may be lent of one node at one moment: batch and mid, before and after what others have been given of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kube import Object
from kube.json_text import read_json
from kube.normalization import PLAIN_MILLI, core_milli
from resources import Amounts, QuantityError, add, parse_amounts
from slo_controller.domain.lending.batch import batch
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.mid import mid
from slo_controller.domain.lending.reserved import reserved
from slo_controller.domain.lending.rule import Rule
from slo_controller.domain.lending.tenants import PROD, Tenant, held
from slo_controller.domain.lending.terms import NOTHING, Lent, Term, Use
from slo_controller.domain.lending.zones import BATCH, lent_by_zone, zones_of
from slo_controller.domain.names import BATCH_CPU, OTHERS_SHARES

_OF_BATCH = ("koord-batch", "batch")


@dataclass(frozen=True, slots=True)
class Computed:
    """``lent`` is what may be lent; ``before`` is that with what others have been given, empty where they have nothing."""

    lent: tuple[Lent, ...]
    before: Amounts
    complaints: tuple[str, ...] = ()
    zones: Mapping[int, Amounts] = field(default_factory=dict)
    """Of batch resources, by the place of the zone."""

    @property
    def amounts(self) -> Amounts:
        return {one.resource: one.amount for one in self.lent}


def compute(
    node: Object,
    rule: Rule,
    seen: Measured,
    tenants: Collection[Tenant],
    predicted: Use,
    topology: Object | None = None,
) -> Computed:
    """What may be lent of ``node`` by ``rule``; ``predicted`` is what prod pods ask for and are not expected to use."""
    room, online = reserved(node), held(tenants, seen)
    requested = sum((one.request for one in tenants if one.band == PROD), NOTHING)
    ratio = core_milli(node.annotations)
    zones = lent_by_zone(zones_of(topology), rule, room, seen, tenants, ratio)
    lent = [*_normalized(ratio, batch(rule, room, seen, online)), *mid(rule, room, seen, requested, predicted)]
    taken, complaint = taken_by_others(node)
    complaints = tuple(filter(None, (*rule.complaints, room.complaint, complaint)))
    if not taken:
        return Computed(tuple(lent), {}, complaints, zones)
    before = {one.resource: one.amount for one in lent if one.resource in BATCH}
    return Computed(tuple(_without(one, taken) for one in lent), before, complaints, zones)


def taken_by_others(node: Object) -> tuple[Amounts, str]:
    """What systems beside Kubernetes, such as YARN, have been given of the batch resources; and what of it makes no sense."""
    total: Amounts = {}
    try:
        listed = read_json(node.annotations.get(OTHERS_SHARES) or "{}").get("allocations") or ()
        for one in listed:
            if one.get("priority") in _OF_BATCH:
                total = add(total, parse_amounts(one.get("resources")))
    except (AttributeError, TypeError, ValueError, QuantityError) as error:
        return {}, f"annotation {OTHERS_SHARES} does not count: {error}"
    return {name: amount for name, amount in total.items() if amount > 0}, ""


def _without(one: Lent, taken: Mapping[str, int]) -> Lent:
    amount = taken.get(one.resource, 0)
    if not amount:
        return one
    terms = (*one.terms, Term("given to others", -amount))
    return replace(one, amount=max(one.amount - amount, 0), terms=terms)


def _normalized(ratio: int, lent: list[Lent]) -> list[Lent]:
    """Where a CPU does more than the one that all are measured by, its cores count for more."""
    if ratio == PLAIN_MILLI:
        return lent
    return [_times(one, ratio) if one.resource == BATCH_CPU else one for one in lent]


def _times(one: Lent, ratio: int) -> Lent:
    more = one.amount * (ratio - 1000) // 1000
    return replace(one, amount=one.amount + more, terms=(*one.terms, Term(f"at {ratio / 1000:.2f} a core", more)))
