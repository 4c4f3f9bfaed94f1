"""What of a gang that runs may still be bound, cut into portions: one member each, or those that start together."""

from collections.abc import Iterator

from gang_scheduler.domain.gangs.minimum import sub_group_of
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import LIVE, PodRecord, in_order
from gang_scheduler.domain.terms.gang_terms import GangTerms, MatchPolicy

Portion = tuple[PodRecord, ...]


def portions(group: Group) -> list[Portion]:
    """The waiting members that are not placed on trial, in their order. What follows a sub-group needs that one first."""
    terms = group.terms
    assert terms is not None, "a gang without terms waits"
    waiting = in_order(record for record in group.pending.values() if record.slot < 0)
    missing = terms.min_member - group.on_nodes
    if terms.match is MatchPolicy.WAITING_AND_RUNNING and missing > 0:
        # All that its minimum lacks together, then one by one.
        rest = [(record,) for record in waiting[missing:]]
        return [tuple(waiting[:missing]), *rest] if len(waiting) >= missing else []
    if not terms.sub_groups:
        return [(record,) for record in waiting]
    return list(_with_sub_groups(group, terms, waiting))


def lacks_minimum(group: Group, placed: int) -> bool:
    """Whether the next member is a replacement that the minimum needs, rather than surplus."""
    assert group.terms is not None
    if group.live + placed < group.terms.min_member:
        return True
    if not group.terms.roles:
        return False
    present = [r.role for r in group.members.values() if r.standing in LIVE or r.slot >= 0]
    return any(present.count(role) < least for role, least in group.terms.roles)


def _with_sub_groups(group: Group, terms: GangTerms, waiting: list[PodRecord]) -> Iterator[Portion]:
    running = {sub_group_of(r, terms) for r in group.members.values() if r.standing in LIVE or r.slot >= 0}
    divided: dict[tuple[int, tuple[str, ...]], list[PodRecord]] = {}
    for record in waiting:
        place = sub_group_of(record, terms)
        if place is None or place in running:
            yield (record,)
        else:
            divided.setdefault(place, []).append(record)
    for (number, _), members in sorted(divided.items(), key=lambda item: item[0]):
        size = terms.sub_groups[number].size
        if len(members) >= size:
            yield tuple(members[:size])
