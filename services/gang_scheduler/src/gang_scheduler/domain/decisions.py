"""From what a pass found to decisions: bindings, the words for those who wait, and the statuses of groups."""

from collections.abc import Iterator, Mapping, Sequence

from gang_scheduler.domain.dra.claim_book import reserved
from gang_scheduler.domain.dra.requests import users_of
from gang_scheduler.domain.evictions.evictor import Plan
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import NOMINATED, PodRecord
from gang_scheduler.domain.reasons.explain import Explanation, Reason
from gang_scheduler.domain.reasons.statuses import group_patch, pod_patch, waiting_condition
from gang_scheduler.domain.room.trial import Step
from gang_scheduler.domain.terms.revocable_pods import stated_priority
from gang_scheduler.domain.turns.memory import written
from gang_scheduler.domain.turns.turn import Turn
from kube import Decision, Manifest, Mutation, Object, Verb
from kube.devices import RESERVATION
from kube.volumes import SELECTED_NODE
from kube.words import counted, verb

NAMED = 8
"""So many pods or nodes are named in a message."""

BOUND_ALONE = "pod {} is bound"


def placed(turn: Turn, names: Sequence[str], uids: Mapping[str, str], now: int) -> Decision:
    """Bind what the unit was given in this pass; ``names`` are the nodes by slot, ``uids`` those of reservations by name."""
    if turn.alone and (decision := _bound_alone(turn.steps[0], names)):
        return decision
    count: dict[Group, int] = {}
    mutations = _claims_bound(turn, names)
    for step in turn.steps:
        node = names[step.slot]
        if step.allotments or step.reservation:
            mutations += _bound_with(step, node, uids)
        else:
            mutations += [Mutation(Verb.BIND, r.key, r.pod.uid, None, None, node) for r in step.records]
        group = step.records[0].group
        count[group] = count.get(group, 0) + len(step.records)
    for group, placed_now in count.items():
        mutations.extend(_status_of(group, group_patch(group, now, placed=placed_now)))
    if grants := [grant for step in turn.steps for grant in step.grants]:
        mutations += [Mutation(Verb.STATUS, claim.key, claim.uid, None, patch) for claim, patch in reserved(grants)]
    lead = subject_of(turn.groups)
    total = sum(count.values())
    if turn.started:
        title = " and ".join(group.name for group in turn.started)
        message = (
            f"{total} pods of {title} are bound at once"
            if total > 1
            else BOUND_ALONE.format(turn.steps[0].records[0].key.name)
        )
        return Decision("GangPlaced", lead.key, lead.uid, "MinimumPlaced", message, tuple(mutations))
    who = counted(total, "more pod")
    message = f"{who} of {lead.name} {verb(total)} bound"
    return Decision("SurplusPlaced", lead.key, lead.uid, "RoomForMore", message, tuple(mutations))


def released(claim: Object, patch: Manifest) -> Decision:
    """A resource claim is no longer for pods that have ended; nobody's devices go back to all."""
    kept = len(patch["reservedFor"] or ())
    gone = len(users_of(claim)) - kept
    rest = f"{counted(kept, 'pod')} still {verb(kept, 'has', 'have')} it" if kept else "its devices are free"
    message = f"resource claim {claim.name} was reserved for {counted(gone, 'pod')} that {verb(gone, 'has', 'have')} ended; {rest}"
    mutations = (Mutation(Verb.STATUS, claim.key, claim.uid, None, patch),)
    return Decision("ClaimReleased", claim.key, claim.uid, "PodsEnded", message, mutations)


def explained(turn: Turn, now: int) -> Decision | None:
    """Tell the groups and the pods of a unit why they wait; None when they have been told so."""
    assert turn.block is not None
    explanation = turn.block.explanation
    condition = waiting_condition(explanation, now)
    mutations: list[Mutation] = []
    blocked = {id(record) for record in turn.blocked}
    for group in turn.groups:
        if not group.let_in:
            continue
        mutations.extend(_status_of(group, group_patch(group, now, explanation=explanation)))
        for record in group.waiting():
            if id(record) in blocked:
                mutations.extend(_pod_status(record, pod_patch(record, explanation, condition)))
    if not mutations:
        return None
    lead = subject_of(turn.groups)
    return Decision("WaitExplained", lead.key, lead.uid, str(explanation.reason), explanation.message, tuple(mutations))


def observed(group: Group, now: int, explanation: Explanation | None) -> Decision | None:
    """The status of a group follows its pods."""
    mutations = _status_of(group, group_patch(group, now, explanation=explanation))
    if not mutations:
        return None
    message = f"{group.name}: {group.live} of its pods are bound or done"
    return Decision("GangObserved", group.key, group.uid, "PodsChanged", message, tuple(mutations))


def _bound_alone(step: Step, names: Sequence[str]) -> Decision | None:
    """The same for a pod by itself that is given a node and no more than devices, for the many such pods; None for any other."""
    if step.reservation or step.volumes or step.grants:
        return None
    record = step.records[0]
    devices = step.allotments[0].manifest() if step.allotments else None
    mutations = (Mutation(Verb.BIND, record.key, record.pod.uid, None, None, names[step.slot], devices),)
    message = BOUND_ALONE.format(record.key.name)
    return Decision("GangPlaced", record.key, record.pod.uid, "MinimumPlaced", message, mutations)


def _bound_with(step: Step, node: str, uids: Mapping[str, str]) -> Iterator[Mutation]:
    """Bind pods along with the devices and the reservation that they are given."""
    allotments = [allotment.manifest() for allotment in step.allotments] or [None] * len(step.records)
    if step.reservation:
        given = {RESERVATION: {"name": step.reservation, "uid": uids[step.reservation]}}
        allotments = [{**(allotment or {}), **given} for allotment in allotments]
    for record, devices in zip(step.records, allotments, strict=True):
        yield Mutation(Verb.BIND, record.key, record.pod.uid, None, None, node, devices)


def _claims_bound(turn: Turn, names: Sequence[str]) -> list[Mutation]:
    """The claims that are bound with their first pods: each is told its node, and its volume if there is one for it."""
    chosen = {choice.claim: choice for step in turn.steps for choice in step.volumes}
    patches = []
    for choice in chosen.values():
        patch: Manifest = {"metadata": {"annotations": {SELECTED_NODE: names[choice.slot]}}}
        if choice.volume:
            patch["spec"] = {"volumeName": choice.volume}
        patches.append(Mutation(Verb.PATCH, choice.claim, choice.uid, None, patch))
    return patches


def subject_of(groups: Sequence[Group]) -> Group:
    """The group that a decision about a unit names: the first by name."""
    return groups[0]


def _status_of(group: Group, patch: Manifest) -> list[Mutation]:
    return [Mutation(Verb.STATUS, group.key, group.uid, None, patch)] if patch else []


def _pod_status(record: PodRecord, patch: Manifest) -> list[Mutation]:
    return [Mutation(Verb.STATUS, record.key, record.pod.uid, None, patch)] if patch else []


def room_made(turn: Turn, now: int) -> Decision:
    """Evict whom the unit needs out of its way, and tell it that it waits for their room. The payload is the claim."""
    plan, explained_as = turn.plan, explained(turn, now)
    assert plan is not None
    lead = subject_of(turn.groups)
    mutations = [Mutation(Verb.EVICT, record.key, record.pod.uid) for record in plan.victims]
    payload = {"claim": written(plan.claim)}
    told = (*(explained_as.mutations if explained_as else ()), *_nominated(turn, plan))
    if not plan.victims:
        message = f"{lead.name} waits for pods that are leaving already"
        return Decision("WaitExplained", lead.key, lead.uid, str(Reason.ROOM_BEING_FREED), message, told, payload)
    name = "QueueReclaimed" if plan.reclaimed else "GangPreempted"
    reason = "ReclaimedByQueue" if plan.reclaimed else "PreemptedByPriority"
    message = _eviction_words(lead, plan)
    return Decision(name, lead.key, lead.uid, reason, message, (*mutations, *told), payload)


def _nominated(turn: Turn, plan: Plan) -> list[Mutation]:
    """The pods are told for which nodes they wait."""
    records = (record for group in turn.groups for record in group.waiting())
    wanted = [(record, plan.claim.places[record.key][1]) for record in records if record.key in plan.claim.places]
    return [
        Mutation(Verb.STATUS, record.key, record.pod.uid, None, {NOMINATED: node})
        for record, node in wanted
        if record.nominated != node
    ]


def _eviction_words(lead: Group, plan: Plan) -> str:
    pods = [
        f"{r.key.namespace}/{r.key.name} (priority {stated_priority(r.form.priority)}, queue {r.group.queue}, on {r.node})"
        for r in plan.victims[:NAMED]
    ]
    victims = len(plan.victims)
    more = f" and {victims - NAMED} more" if victims > NAMED else ""
    nodes = sorted({node for _, node in plan.claim.places.values()})
    on = ", ".join(nodes[:NAMED]) + (" and others" if len(nodes) > NAMED else "")
    ground = f"queue {lead.queue} takes back what it deserves" if plan.reclaimed else f"it has priority {plan.priority}"
    count = f"{counted(victims, 'pod')} {verb(victims)}"
    return f"{count} evicted for {lead.id.namespace}/{lead.name} to start on {on}, as {ground}: {', '.join(pods)}{more}"
