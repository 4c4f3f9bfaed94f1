"""The answer for somebody who waits: the rule, need and have, the nearest miss, its place, who is in the way, what helps."""

from collections.abc import Sequence

import numpy as np

from gang_scheduler.domain.answers.knowledge import Knowledge
from gang_scheduler.domain.answers.nearest_miss import domain_miss, nearest_miss
from gang_scheduler.domain.answers.outlook import Outlook, up_to, wanted
from gang_scheduler.domain.answers.queue_standing import guaranteed_to, line_of, queues_of, used_by
from gang_scheduler.domain.answers.ways_out import ways_out
from gang_scheduler.domain.gangs.gang import place_some
from gang_scheduler.domain.gangs.minimum import candidates
from gang_scheduler.domain.gangs.portions import portions
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, requests_of
from gang_scheduler.domain.reasons.block import Block
from gang_scheduler.domain.reasons.explain import Explanation, Reason, node_report
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.turns.attempt import Attempts
from gang_scheduler.domain.turns.turn import Turn, incomplete
from kube import Manifest, rfc3339
from resources import Amounts, format_amounts
from resources.amounts import format_amount

_TOLD_ONLY = (Reason.BEHIND_HEAD, Reason.ROOM_BEING_FREED)
"""Reasons that only a whole pass can find; what was told then is so still, or the unit would have been tried again."""


def waiting(k: Knowledge, group: Group, record: PodRecord | None) -> Manifest:
    """Why ``group`` waits, as the books stand now; ``record`` is the member that was asked about."""
    if k.cluster.room.ledger.queues is None:
        message = "the scheduler has not heard yet what the queues are; nothing is placed until then"
        return _with_ways({"verdict": "Waiting", "rule": "NotReady", "message": message}, {})
    answer: Manifest = {"verdict": "Waiting", **line_of(k.cluster, group), "heldRoom": _held(k, group)}
    unit = group.bundle()
    groups = [k.cluster.groups[gang] for gang in unit if gang in k.cluster.groups]
    with k.trial() as trial:
        explanation, records = _explained(k, trial, groups)
        answer |= {"rule": str(explanation.reason), "message": explanation.message, **explanation.detail}
        facts: Manifest = {}
        if records:
            facts = _facts(k, trial, groups, records, record, explanation)
            if not _hopeless(explanation):
                facts |= _outlook(k, trial, groups, records, record)
            if explanation.reason is Reason.GUARANTEED_TO_OTHERS and facts.get("nodes") and not facts.get("after"):
                names = ", ".join(item["queue"] for item in facts["guaranteedTo"]) or "others"
                facts["estimate"] = f"not known: there is room on nodes, but it is guaranteed to {names}"
    return _paused(k, _with_ways(answer | facts, answer | facts))


def _paused(k: Knowledge, answer: Manifest) -> Manifest:
    """The answer, with the pause before all else that keeps somebody waiting."""
    pause = k.cluster.pause
    if pause is None:
        return answer
    rest = "" if answer["rule"] == Reason.READY else f"; then: {answer['message']}"
    ways = [*ways_out(Reason.PAUSED, answer), *answer["waysOut"]]
    return answer | {"rule": str(Reason.PAUSED), "message": f"{pause}{rest}", "waysOut": ways}


def _outlook(
    k: Knowledge, trial: Trial, groups: list[Group], records: list[PodRecord], asked: PodRecord | None
) -> Manifest:
    """What has to happen first. A member is told it of itself once its gang runs; before, that is asked of the gang."""
    unit = groups[0].bundle()
    if asked is None or asked.group.id.kind == "pod":
        return Outlook(k, trial, unit, groups, records).manifest()
    mine = up_to(asked) if asked.group.open else []
    if not mine:
        return {}
    return Outlook(k, trial, unit, [asked.group], mine).manifest() | {"membersAhead": len(mine) - 1}


def _with_ways(answer: Manifest, numbers: Manifest) -> Manifest:
    return answer | {"waysOut": ways_out(str(answer["rule"]), numbers or answer)}


def _hopeless(explanation: Explanation) -> bool:
    return explanation.reason in (Reason.NEVER_FITS, Reason.BAD_REQUESTS)


def _explained(k: Knowledge, trial: Trial, groups: list[Group]) -> tuple[Explanation, list[PodRecord]]:
    """Why the unit cannot start now, found anew, and the members that would be placed together."""
    turn = Turn(groups[0].bundle(), groups)
    missing = incomplete(turn)
    if missing is not None:
        return missing.explanation, []
    told = k.explanations.get(turn.unit)
    attempts, lead = Attempts(k.cluster.room, trial), groups[0]
    fresh = [group for group in groups if not group.open and group.pending]
    block: Block | None
    if fresh:
        records = wanted(fresh)
        block = attempts.start(fresh)
    else:
        lead = next((group for group in groups if portions(group)), lead)
        records = list(next(iter(portions(lead)), ()))
        block = attempts.add(lead, tuple(records)) if records else None
    trial.rollback(0)
    if told is not None and (told.reason in _TOLD_ONLY or block is None):
        return told, records
    if block is None:
        return Explanation(Reason.READY, "nothing keeps it out: it is placed in the next pass"), records
    return block.explanation, records


def _facts(
    k: Knowledge,
    trial: Trial,
    groups: Sequence[Group],
    records: list[PodRecord],
    asked: PodRecord | None,
    explanation: Explanation,
) -> Manifest:
    """The numbers: per pod, together, on the nodes, in the queues."""
    room = k.cluster.room
    placed = place_some(trial, records, len(records)) if len(records) > 1 else 0
    rest = [record for record in records if record.slot < 0]
    failed = rest[0] if rest else records[0]
    miss = nearest_miss(room, failed) if rest else None
    report = node_report(room, failed)
    trial.rollback(0)
    shown = asked if asked is not None and asked.slot < 0 else failed
    together = requests_of(records)
    resources = _resources(k, shown, together)
    answer: Manifest = {
        "need": format_amounts(shown.shape.requests),
        "needTogether": format_amounts(together),
        "have": {item["resource"]: item["mostOnOneNode"] for item in resources},
        "resources": resources,
        "nodeFilters": dict(report.filters),
        "queues": queues_of(k.cluster, groups[0].queue, together),
    }
    blocked = explanation.detail.get("queue")
    if explanation.reason is Reason.QUEUE_CAPABILITY and blocked:
        answer |= {"blockedBy": blocked, "usedBy": used_by(k.cluster, str(blocked), together)}
    if explanation.reason is Reason.GUARANTEED_TO_OTHERS:
        answer["guaranteedTo"] = guaranteed_to(k.cluster, groups[0].queue, together)
    if len(records) > 1:
        answer["gang"] = {"placed": placed, "needed": len(records), "roles": _roles(groups)}
    if miss is not None:
        answer["nearestMiss"] = miss.manifest(failed.key.name)
    topology = next((g.terms.topology for g in groups if g.terms is not None and g.terms.topology), None)
    if topology is not None:
        answer["nearestDomain"] = domain_miss(room, topology, records)
    return answer


def _resources(k: Knowledge, record: PodRecord, ask: Amounts) -> list[Manifest]:
    """For each resource: what one pod needs, the most on one node that it may go to, and what is free on all together.

    ``short`` says that it is too little for the pod, or for all that start together (``ask``).
    """
    table, mask = k.cluster.room.table, k.cluster.room.view(record).mask
    found = []
    for name, row in zip(record.shape.requests, table.rows_for(record.shape), strict=True):
        free = np.where(mask, np.maximum(table.allocatable[row] - table.used[row], 0), -1)
        slot = int(np.lexsort((table.rank(), -free))[0])
        found.append(
            {
                "resource": name,
                "need": format_amount(name, record.shape.requests[name]),
                "short": int(free[mask].sum()) < ask.get(name, 0) or int(free[slot]) < record.shape.requests[name],
                "mostOnOneNode": format_amount(name, max(0, int(free[slot]))),
                "node": table.names[slot] if free[slot] >= 0 else "",
                "freeTogether": format_amount(name, int(free[mask].sum())),
                "largestNode": format_amount(name, int(table.allocatable[row][mask].max(initial=0))),
            }
        )
    return found


def _roles(groups: Sequence[Group]) -> list[Manifest]:
    """The minima of roles, and how many of each run and wait."""
    found = []
    for group in groups:
        for role, least in group.terms.roles if group.terms is not None else ():
            waiting_now = sum(1 for record in candidates(group).of_role(role))
            members = sum(1 for record in group.members.values() if record.role == role)
            found.append(
                {"group": group.name, "role": role, "minimum": least, "waiting": waiting_now, "members": members}
            )
    return found


def _held(k: Knowledge, group: Group) -> list[Manifest]:
    """The room that is kept for others: for whom, on which nodes, why, and until when."""
    found = []
    for claim in k.claims.all():
        if group.id in claim.unit:
            continue
        nodes = sorted({node for _, node in claim.places.values() if node})
        awaited = [f"{key.namespace}/{key.name}" for key in sorted(claim.awaited) if key in k.cluster.pods]
        until = rfc3339(claim.until) if claim.until is not None else ""
        names = [f"{gang.namespace}/{gang.title}" for gang in claim.unit]
        found.append({"for": names, "basis": str(claim.basis), "nodes": nodes, "until": until, "awaits": awaited})
    return found
