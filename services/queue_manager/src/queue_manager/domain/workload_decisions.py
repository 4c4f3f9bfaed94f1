"""What is decided about a workload, in mutations: quota given, refused with the reason, taken back."""

import json
from collections.abc import Iterator

from kube import Decision, Manifest, Mutation, Verb
from queue_manager.domain.flavor_choice import Verdict
from queue_manager.domain.groups import ADMITTED, INQUEUE, PENDING
from queue_manager.domain.waiting import condition
from queue_manager.domain.workload import ADMISSION, RESERVED, REVOKED, Workload

GROUP_ADMITTED = "GroupAdmitted"
POD_ADMITTED = "WorkloadAdmitted"
HELD = "WorkloadHeld"
REVOCATION = "WorkloadRevoked"
REQUEUED = "WorkloadRequeued"
GROWN = "WorkloadGrown"
REQUEUED_WORDS = ("Requeued", "its quota was taken back; it waits for quota again")


def admitted(workload: Workload, patch: Manifest, message: str, now: int) -> Decision:
    """The workload has its quota: ``patch`` says so in its annotations, and a group is let in."""
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


def grown(workload: Workload, text: str) -> Decision:
    """The group has quota for more of its members."""
    patch: Manifest = {"metadata": {"annotations": {ADMISSION: text}}}
    mutation = Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)
    message = f"{workload.key.name} has quota for more of its members"
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


def revoked(workload: Workload, reason: str, message: str) -> Decision:
    """Its quota is wanted back: gang_scheduler evicts its pods."""
    text = json.dumps({"reason": reason, "message": message}, separators=(",", ":"))
    patch: Manifest = {"metadata": {"annotations": {REVOKED: text}}}
    mutation = Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)
    return Decision(REVOCATION, workload.key, workload.uid, reason, message, (mutation,))


def requeued(workload: Workload, now: int) -> Decision:
    """It has nothing running: it gives its quota back and waits for it anew."""
    patch: Manifest = {"metadata": {"annotations": {ADMISSION: None, REVOKED: None}}}
    mutations = [Mutation(Verb.PATCH, workload.key, workload.uid, patch=patch)]
    reason, message = REQUEUED_WORDS
    if workload.is_group:
        status = {"phase": PENDING, "conditions": [condition(ADMITTED, "False", reason, message, now)]}
        mutations.append(Mutation(Verb.STATUS, workload.key, workload.uid, patch=status))
    return Decision(REQUEUED, workload.key, workload.uid, reason, message, tuple(mutations))


def _kind(workload: Workload) -> str:
    """The condition that says whether it holds quota."""
    return ADMITTED if workload.is_group else RESERVED
