"""Batch resources: what margin, system and online pods leave of a node.

Source: Koordinator's ``pkg/slo-controller/noderesource/plugins/batchresource``, and its documentation of the formula.
"""

from slo_controller.domain.lending.measured import Measured
from slo_controller.domain.lending.reserved import Reserved
from slo_controller.domain.lending.rule import Rule
from slo_controller.domain.lending.tenants import Held
from slo_controller.domain.lending.terms import COUNTED, Lent, Term

_WORDS = {
    "usage": "used by online pods",
    "request": "requested by online pods",
    "maxUsageRequest": "used or requested by online pods",
}


def batch(rule: Rule, room: Reserved, seen: Measured, tenants: Held) -> list[Lent]:
    """What may be lent to batch work, of cpu and of memory."""
    return [_batch(name, rule, room, seen, tenants) for name in COUNTED]


def _batch(name: str, rule: Rule, room: Reserved, seen: Measured, tenants: Held) -> Lent:
    reclaim, capacity, kept = rule.of(name), room.capacity.of(name), room.kept.of(name)
    margin = share(capacity, 100 - reclaim.threshold)
    system = (seen.system + seen.applications).of(name)
    terms = [Term("capacity", capacity), Term(f"margin of {100 - reclaim.threshold}%", -margin)]
    if reclaim.policy == "request" or kept > system:
        terms.append(Term("reserved", -kept))
    else:
        terms.append(Term("used by the system", -system))
    online = tenants.by(reclaim.policy, name)
    terms.append(Term(_WORDS[reclaim.policy], -online))
    return _capped(name, sum(term.amount for term in terms), capacity, reclaim.batch_cap, terms, tenants)


def _capped(name: str, amount: int, capacity: int, cap: int | None, terms: list[Term], tenants: Held) -> Lent:
    notes = [f"{tenants.unmeasured} of {tenants.pods} pods count with their requests: not measured yet"]
    notes = notes if tenants.unmeasured else []
    if cap is not None and amount > (most := share(capacity, cap)):
        amount = most
        notes.append(f"no more than {cap}% of capacity")
    if amount < 0:
        notes.append("never less than nothing")
    return Lent(f"kubernetes.io/batch-{name}", max(amount, 0), tuple(terms), tuple(notes))


def share(amount: int, percent: int) -> int:
    """``percent`` of ``amount``, what is finer than the unit dropped."""
    part = abs(amount * percent) // 100
    return part if percent >= 0 else -part
