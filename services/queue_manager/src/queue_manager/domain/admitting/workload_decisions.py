"""What is decided about a workload, in mutations: quota given, refused with the reason, taken back."""

import json
from collections.abc import Iterator, Sequence

from kube import Decision, Manifest, Mutation, Object, Verb, rfc3339
from kube.words import counted
from queue_manager.domain.cohorts.flavor_choice import Verdict, WaitReason
from queue_manager.domain.gates.waiting import condition
from queue_manager.domain.members.groups import ADMITTED, INQUEUE, PENDING
from queue_manager.domain.members.members import LOCAL_QUEUE
from queue_manager.domain.quotas.grant import ADMISSION, RESERVATION, SINCE, Admission
from queue_manager.domain.workloads.job_workload import JOB, OF_JOB, PARALLELISM, gang_mark, wanted_parallelism
from queue_manager.domain.workloads.workload import RESERVED, REVOKED, Workload

GROUP_ADMITTED = "GroupAdmitted"
POD_ADMITTED = "WorkloadAdmitted"
QUOTA_RESERVED = "WorkloadReserved"
HELD = "WorkloadHeld"
REVOCATION = "WorkloadRevoked"
REQUEUED = "WorkloadRequeued"
GROWN = "WorkloadGrown"
REQUEUED_WORDS = ("Requeued", "its quota was taken back; it waits for quota again")


def grant_patch(workload: Workload, item: Object | None, admission: Admission, now: int) -> Manifest:
    """What makes a workload start with its quota, given ``now`` unless it was reserved before.

    A Job runs with as many pods as there is quota for.
    """
    text = admission.text()
    annotations: Manifest = {ADMISSION: text}
    if workload.let_in:
        annotations[SINCE] = rfc3339(now)
    else:
        annotations[RESERVATION] = None
    if workload.key.kind != JOB or item is None:
        return {"metadata": {"annotations": annotations}}
    count, wanted = sum(each.size for each in admission.sets), wanted_parallelism(item)
    spec: Manifest = {"suspend": False}
    if count < wanted:
        annotations[PARALLELISM] = str(wanted)
        spec["parallelism"] = count
    labels = {LOCAL_QUEUE: workload.local_queue}
    gang = gang_mark(item, count) if workload.shape.podsets and admission.levels else "Job"
    spec["template"] = {"metadata": {"labels": labels, "annotations": {ADMISSION: text, OF_JOB: gang}}}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def reservation_patch(admission: Admission, now: int) -> Manifest:
    """What makes a workload hold quota from ``now`` on without starting."""
    return {"metadata": {"annotations": {RESERVATION: admission.text(), SINCE: rfc3339(now)}}}


def _withdrawal(workload: Workload, item: Object | None) -> Manifest:
    annotations: Manifest = {ADMISSION: None, REVOKED: None, SINCE: None}
    if not workload.let_in:
        annotations[RESERVATION] = None
    if workload.key.kind != JOB or item is None:
        return {"metadata": {"annotations": annotations}}
    spec: Manifest = {
        "suspend": True,
        "template": {"metadata": {"annotations": {ADMISSION: None, OF_JOB: None}}},
    }
    if PARALLELISM in item.annotations:
        spec["parallelism"] = wanted_parallelism(item)
        annotations[PARALLELISM] = None
    return {"metadata": {"annotations": annotations}, "spec": spec}


def admitted(workload: Workload, patch: Manifest, message: str, now: int) -> Decision:
    """The workload has its quota and may start: ``patch`` says so in its annotations, and a group is let in."""
    mutations = [Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)]
    status: Manifest = {"phase": INQUEUE} if workload.is_group else {}
    if workload.told is not None:
        status["conditions"] = [condition(_kind(workload), "True", "QuotaReserved", "", now)]
    if status:
        mutations.append(Mutation(Verb.STATUS, workload.key, workload.uid, patch=status))
    key, uid, changes = workload.key, workload.uid, tuple(mutations)
    if workload.is_group:
        return Decision(GROUP_ADMITTED, key, uid, "QuotaReserved", message, changes)
    return Decision(POD_ADMITTED, key, uid, "QuotaReserved", message, changes)


def reserved(workload: Workload, admission: Admission, checks: Sequence[str], now: int) -> Decision:
    """The workload has its quota, and may not start before ``checks`` have agreed."""
    message = waiting_for(checks)
    status: Manifest = {"conditions": [condition(ADMITTED, "False", WaitReason.CHECKS, message, now)]}
    if workload.is_group:
        status["phase"] = PENDING
    elif workload.told is not None:
        status["conditions"].append(condition(RESERVED, "True", "QuotaReserved", "", now))
    mutations = (
        Mutation(Verb.PATCH, workload.key, workload.uid, patch=reservation_patch(admission, now)),
        Mutation(Verb.STATUS, workload.key, workload.uid, patch=status),
    )
    return Decision(QUOTA_RESERVED, workload.key, workload.uid, str(WaitReason.CHECKS), message, mutations)


def waiting_for(checks: Sequence[str]) -> str:
    """What somebody is told who holds quota and waits for checks."""
    return f"quota is held; waits for the admission checks {', '.join(checks)} to agree"


def group_grown(workload: Workload, admission: Admission) -> Decision:
    """The group has quota for more of its members."""
    return _grown(workload, {"metadata": {"annotations": {ADMISSION: admission.text()}}}, "more of its members")


def job_grown(workload: Workload, item: Object, admission: Admission) -> Decision:
    """The Job ``item`` has quota for more pods than it runs with."""
    size, text = sum(each.size for each in admission.sets), admission.text()
    annotations: Manifest = {ADMISSION: text}
    if size >= wanted_parallelism(item):
        annotations[PARALLELISM] = None
    template = {"metadata": {"annotations": {ADMISSION: text}}}
    patch = {"metadata": {"annotations": annotations}, "spec": {"parallelism": size, "template": template}}
    return _grown(workload, patch, counted(size, "pod"))


def _grown(workload: Workload, patch: Manifest, what: str) -> Decision:
    mutation = Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)
    message = f"{workload.key.name} has quota for {what}"
    return Decision(GROWN, workload.key, workload.uid, "QuotaReserved", message, (mutation,))


def held_back(workload: Workload, verdict: Verdict, now: int) -> Iterator[Decision]:
    """Tell a workload why it waits, unless it knows."""
    reason, message = str(verdict.reason), verdict.message
    if workload.told == (reason, message):
        return
    status: Manifest = {"conditions": [condition(_kind(workload), "False", reason, message, now)]}
    if workload.is_group:
        status["phase"] = PENDING
    mutation = Mutation(Verb.STATUS, workload.key, workload.uid, patch=status)
    yield Decision(HELD, workload.key, workload.uid, reason, message, (mutation,))


def revoked(workload: Workload, reason: str, message: str, more: Sequence[Mutation] = ()) -> Decision:
    """Its quota is wanted back: gang_scheduler evicts its pods. ``more`` is what its Workload object says of it."""
    text = json.dumps({"reason": reason, "message": message}, separators=(",", ":"))
    patch: Manifest = {"metadata": {"annotations": {REVOKED: text}}}
    mutation = Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)
    return Decision(REVOCATION, workload.key, workload.uid, reason, message, (mutation, *more))


def requeued(
    workload: Workload, item: Object | None, now: int, words: tuple[str, str], more: Sequence[Mutation] = ()
) -> Decision:
    """It has nothing running, or its Job ends what runs: it gives its quota back and waits for it anew.

    ``words`` are the reason and the sentence for people.
    """
    mutations = [Mutation(Verb.PATCH, workload.key, workload.uid, patch=_withdrawal(workload, item))]
    reason, message = words
    if workload.is_group:
        status = {"phase": PENDING, "conditions": [condition(ADMITTED, "False", reason, message, now)]}
        mutations.append(Mutation(Verb.STATUS, workload.key, workload.uid, patch=status))
    return Decision(REQUEUED, workload.key, workload.uid, reason, message, (*mutations, *more))


def _kind(workload: Workload) -> str:
    """The condition that says whether it may start, and why not."""
    return ADMITTED if workload.is_group or not workload.let_in else RESERVED
