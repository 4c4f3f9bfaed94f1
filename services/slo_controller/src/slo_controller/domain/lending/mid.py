"""Mid resources: what prod pods ask for and are not expected to use, or a fixed share of the node.

Source: Koordinator's ``pkg/slo-controller/noderesource/plugins/midresource``.
"""

from slo_controller.domain.lending.batch import share
from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.reserved import Reserved
from slo_controller.domain.lending.rule import Rule
from slo_controller.domain.lending.terms import COUNTED, Lent, Term, Use


def mid(rule: Rule, room: Reserved, seen: Measured, requested: Use, predicted: Use) -> list[Lent]:
    """What may be lent to mid work, of cpu and of memory.

    ``requested`` is what prod pods ask for; ``predicted`` is what of that they are not expected to use, where whoever measures
    the node does not say it.
    """
    reclaimable = seen.reclaimable if seen.reclaimable is not None else predicted
    return [_mid(name, rule, room, seen, requested, reclaimable) for name in COUNTED]


def _mid(name: str, rule: Rule, room: Reserved, seen: Measured, requested: Use, reclaimable: Use) -> Lent:
    reclaim, capacity = rule.of(name), room.capacity.of(name)
    if reclaim.mid_static > 0:
        fixed = share(capacity, reclaim.mid_static)
        return _capped(name, reclaim.mid_cap, capacity, [Term(f"{reclaim.mid_static}% of capacity", fixed)])
    unused = max(capacity - seen.node.of(name), 0)
    terms = [Term("not expected to be used by prod pods", reclaimable.of(name))]
    if unused < reclaimable.of(name):
        terms = [Term("unused", unused)]
    if rule.mid_unallocated:
        system = max((seen.system + seen.applications).of(name), room.kept.of(name))
        free = max(capacity - system - requested.of(name), 0)
        terms.append(Term(f"{rule.mid_unallocated}% of what is not requested", share(free, rule.mid_unallocated)))
    return _capped(name, reclaim.mid_cap, capacity, terms)


def _capped(name: str, cap: int, capacity: int, terms: list[Term]) -> Lent:
    amount, most = sum(term.amount for term in terms), share(capacity, cap)
    notes = (f"no more than {cap}% of capacity",) if amount > most else ()
    return Lent(f"kubernetes.io/mid-{name}", max(min(amount, most), 0), tuple(terms), notes)
