"""Who has to give its quota back and why, besides those whose quota somebody else is entitled to.

Queues that are drained, work that was deactivated, ran for too long, did not get ready in time, or failed a check.
"""

from enum import Enum
from typing import NamedTuple

from kube import Manifest, Mutation, Object, Verb, rfc3339
from kube.words import counted, verb
from queue_manager.domain.admitting.victims import FAIR, IN_QUEUE, RECLAIM, RECLAIM_BORROWING
from queue_manager.domain.cohorts.cohort_books import CohortBooks
from queue_manager.domain.gates.waiting import condition
from queue_manager.domain.quotas.cluster_queue import DRAIN, HOLD
from queue_manager.domain.quotas.kueue_policy import KueuePolicy
from queue_manager.domain.workloads.account import ANSWER, READY, REJECTED, RETRY, condition_of, moment
from queue_manager.domain.workloads.workload import Workload

PREEMPTIONS = (IN_QUEUE, RECLAIM, FAIR, RECLAIM_BORROWING)
"""The reasons for which quota is taken back for somebody else."""


class Then(Enum):
    """What becomes of the work afterwards."""

    QUEUES = "it waits for quota again"
    BACKS_OFF = "it stays away for a while first"
    STAYS_AWAY = "it is deactivated"


class Departure(NamedTuple):
    """Why somebody has to go; ``reason`` is Kueue's word for an eviction."""

    reason: str
    message: str
    then: Then = Then.QUEUES


SHRUNK = Departure("ParallelismLowered", "asks for fewer pods than it was to start with; it is given its quota anew")


def why_stopped(books: CohortBooks, workload: Workload, queue_name: str) -> Departure | None:
    """The queue of the workload is stopped: one that only holds keeps who was let in, and takes reservations back."""
    queue = books.queues.get(queue_name)
    if queue is not None and _sends_away(queue.stop, workload):
        return Departure("ClusterQueueStopped", f"ClusterQueue {queue.name} is {_STOPPED[queue.stop]}")
    local = books.local.get((workload.key.namespace, workload.local_queue))
    if local is not None and _sends_away(local.stop, workload):
        return Departure("LocalQueueStopped", f"LocalQueue {local.namespace}/{local.name} is {_STOPPED[local.stop]}")
    return None


_STOPPED = {HOLD: "stopped", DRAIN: "being drained"}


def _sends_away(stop: str, workload: Workload) -> bool:
    return stop == DRAIN or (stop == HOLD and not workload.let_in)


def why_told(workload: Workload, checks: list[str]) -> Departure | None:
    """Its Workload object says that it may not go on."""
    account = workload.account
    name = account.key.name if account.key is not None else workload.key.name
    if not account.active:
        return Departure("Deactivated", f"Workload {name} was deactivated")
    for check in checks:
        answer = account.answer(check)
        words = f": {answer.message}" if answer.message else ""
        if answer.state == REJECTED:
            return Departure("AdmissionCheck", f"AdmissionCheck {check} rejected it{words}", Then.STAYS_AWAY)
        if answer.state == RETRY:
            return Departure("AdmissionCheck", f"AdmissionCheck {check} asks for another try{words}", Then.BACKS_OFF)
    return None


def unanswered(workload: Workload, checks: list[str]) -> list[str]:
    """The checks that have not agreed yet."""
    return [check for check in checks if workload.account.answer(check).state != READY]


def time_left(workload: Workload, item: Object | None, ready: int, policy: KueuePolicy) -> tuple[int, Departure] | None:
    """Until when (ms) the workload may hold quota as things are, and why it has to go then; None for as long as it likes.

    ``item`` is its Workload object, which says since when it has been admitted; ``ready`` of its pods are.
    """
    admitted = condition_of(item.status, "Admitted") if item is not None else {}
    since = moment(admitted.get("lastTransitionTime"))
    if item is None or admitted.get("status") != "True" or not since:
        return None
    found = []
    account = workload.account
    if account.most_ms:
        text = f"ran for {account.most_ms // 1000} s, which is as long as it may"
        left = max(0, account.most_ms - account.spent_ms)
        found.append((since + left, Departure("MaximumExecutionTimeExceeded", text, Then.STAYS_AWAY)))
    if policy.ready_ms and workload.expected and ready < workload.expected:
        until, allowed = _ready_until(item, since, policy)
        text = f"{ready} of {counted(workload.expected, 'pod')} got ready within {allowed // 1000} s"
        limit = policy.limit is not None and account.attempts >= policy.limit
        if policy.limit is not None and limit:
            times = f"{counted(policy.limit, 'time')} {verb(policy.limit)} allowed"
            text += f", for the {account.attempts + 1}. time; {times}"
        if until is not None:
            then = Then.STAYS_AWAY if limit else Then.BACKS_OFF
            found.append((until, Departure("PodsReadyTimeout", text, then)))
    return min(found, key=lambda each: each[0], default=None)


def _ready_until(item: Object, since: int, policy: KueuePolicy) -> tuple[int | None, int]:
    """By when its pods have to be ready, and how long that is."""
    said = condition_of(item.status, "PodsReady")
    lost = moment(said.get("lastTransitionTime")) if said.get("reason") == "WaitForRecovery" else 0
    if lost >= since and lost:
        return (lost + policy.recovery_ms if policy.recovery_ms else None), policy.recovery_ms
    return since + policy.ready_ms, policy.ready_ms


def written_down(
    workload: Workload, item: Object | None, departure: Departure, policy: KueuePolicy, now: int
) -> list[Mutation]:
    """What the Workload object of an evicted workload has to say afterwards."""
    account = workload.account
    if item is None or account.key is None:
        return []
    preempted = departure.reason in PREEMPTIONS
    reason = "Preempted" if preempted else departure.reason
    status: Manifest = {"conditions": [condition("Evicted", "True", reason, departure.message, now)]}
    if preempted:
        status["conditions"].append(condition("Preempted", "True", departure.reason, departure.message, now))
    admitted = condition_of(item.status, "Admitted")
    if account.most_ms and admitted.get("status") == "True":
        ran = now - moment(admitted.get("lastTransitionTime"))
        status["accumulatedPastExecutionTimeSeconds"] = (account.spent_ms + ran) // 1000
    mutations = []
    patch: Manifest = {}
    if departure.then is Then.BACKS_OFF:
        attempts = account.attempts + 1
        back = rfc3339(now + policy.backoff_ms(attempts) + 999)
        status["requeueState"] = {"count": attempts, "requeueAt": back}
    elif departure.then is Then.STAYS_AWAY:
        patch["spec"] = {"active": False}
        status["requeueState"] = None
        status["accumulatedPastExecutionTimeSeconds"] = None
    status["admissionChecks"] = None
    asked = {name: None for name in item.annotations if name.startswith(ANSWER)}
    if asked and departure.reason == "AdmissionCheck":
        patch["metadata"] = {"annotations": asked}
    if patch:
        mutations.append(Mutation(Verb.PATCH, account.key, account.uid, patch=patch))
    return [*mutations, Mutation(Verb.STATUS, account.key, account.uid, patch=status)]
