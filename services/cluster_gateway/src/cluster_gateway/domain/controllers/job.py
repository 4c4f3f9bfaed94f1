"""batch/v1 Job: pods until enough have succeeded, or too many have failed.

A pod that is deleted, evicted too, does not count as failed and is replaced at once; one that failed is replaced after a
delay that doubles with every further failure.
"""

from collections.abc import Sequence

from cluster_gateway.domain.controllers.job_pods import (
    delay_after,
    failures_of,
    finished_at,
    index_of,
    is_indexed,
    make_pod,
    retry_at,
)
from cluster_gateway.domain.controllers.job_tally import JobTally, read_tally, started_at
from cluster_gateway.domain.controllers.made_pods import is_active, least_missed
from cluster_gateway.domain.controllers.work import Work, condition_of, with_conditions
from kube import Manifest, Object, parse_time, rfc3339
from kube.pods import has_condition, is_finished, is_ready

JOB = "Job.batch"
_OWN = "kubernetes.io/job-controller"


def reconcile_job(job: Object, finished: Sequence[Object], work: Work) -> None:
    """The next steps of ``job``; ``finished`` are its pods that have come to their end since the last look."""
    if job.deleting or job.spec.get("managedBy", _OWN) != _OWN:
        return
    pods = work.pods_of(job)
    tally = read_tally(job)
    tally.count(finished)
    if has_ended(job):
        _after_the_end(job, tally, pods, work)
        return
    suspended = bool(job.spec.get("suspend"))
    started = _start(job, suspended, work.now)
    active = [pod for pod in pods if is_active(pod)]
    ending = tally.success(len(active)) or tally.failure(_restarts(job, active), work.now, started)
    if ending and not (suspended and ending[0] == "DeadlineExceeded"):
        _end(job, tally, ending, pods, work)
        return
    if suspended:
        kept = _give_up(active, len(active), work)
    else:
        _watch_deadline(job, started, work)
        kept = _indexed(tally, pods, work) if is_indexed(job) else _plain(tally, pods, work)
    times = {} if suspended else {"startTime": rfc3339(started)}
    conditions = with_conditions(job.status, *_suspension(job, suspended, work.now))
    _report(job, tally, pods, kept, times | ({"conditions": conditions} if conditions else {}), work)


def has_ended(job: Object) -> bool:
    """Whether the Job is Complete or Failed."""
    return has_condition(job.status, "Complete") or has_condition(job.status, "Failed")


def _start(job: Object, suspended: bool, now: int) -> int:
    resumed = not suspended and has_condition(job.status, "Suspended")
    return now if resumed else started_at(job, now)


def _suspension(job: Object, suspended: bool, now: int) -> list[Manifest]:
    if not suspended and condition_of(job.status, "Suspended") is None:
        return []
    word = "suspended" if suspended else "resumed"
    return [_condition("Suspended", suspended, f"Job{word.capitalize()}", f"the Job is {word}", now)]


def _condition(name: str, holds: bool, reason: str, message: str, now: int) -> Manifest:
    return {
        "type": name,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "lastProbeTime": rfc3339(now),
        "lastTransitionTime": rfc3339(now),
    }


def _restarts(job: Object, active: Sequence[Object]) -> int:
    """How often containers of the pods were started again in place."""
    if ((job.spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return 0
    statuses = [status for pod in active for status in pod.status.get("containerStatuses") or ()]
    return sum(int(status.get("restartCount") or 0) for status in statuses)


def _watch_deadline(job: Object, started: int, work: Work) -> None:
    deadline = job.spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int):
        work.look_again(started + deadline * 1000)


def _give_up(pods: Sequence[Object], count: int, work: Work) -> int:
    """Delete ``count`` of the pods; returns how many stay."""
    for pod in least_missed(pods, count):
        work.delete(pod)
    return len(pods) - count


def _holding(job: Object, pods: Sequence[Object]) -> list[Object]:
    """The pods in whose place none is made yet: those that run, and those on their way out where the Job says so."""
    policy = job.spec.get("podReplacementPolicy") or ("Failed" if job.spec.get("podFailurePolicy") else "")
    waits = policy == "Failed"
    return [pod for pod in pods if not is_finished(pod) and (waits or not pod.deleting)]


def _plain(tally: JobTally, pods: Sequence[Object], work: Work) -> int:
    """Keep as many pods as may work at once and are still needed; returns how many there will be of those that were."""
    active = [pod for pod in pods if is_active(pod)]
    holding = len(_holding(tally.job, pods))
    if tally.completions is not None:
        wanted = min(tally.parallelism, max(0, tally.completions - tally.succeeded))
    else:
        wanted = min(tally.parallelism, len(active)) if tally.succeeded else tally.parallelism
    if len(active) > wanted:
        return _give_up(active, len(active) - wanted, work)
    at = retry_at(tally.job, pods)
    if holding < wanted and at > work.now:
        work.look_again(at)
        return len(active)
    for _ in range(wanted - holding):
        make_pod(tally.job, work)
    return len(active)


def _indexed(tally: JobTally, pods: Sequence[Object], work: Work) -> int:
    """The same for a Job whose pods have a number each: lowest numbers first, one pod for each."""
    job = tally.job
    settled = tally.completed | tally.failed_indexes
    active: dict[int, Object] = {}
    surplus: list[Object] = []
    for pod in sorted((pod for pod in pods if is_active(pod)), key=lambda pod: (index_of(pod), pod.created, pod.key)):
        index = index_of(pod)
        fits = 0 <= index < (tally.completions or 0) and index not in settled and index not in active
        if fits and len(active) < tally.parallelism:
            active[index] = pod
        else:
            surplus.append(pod)
    for pod in surplus:
        work.delete(pod)
    held = {index_of(pod) for pod in _holding(job, pods)} - {index_of(pod) for pod in surplus}
    room = tally.parallelism - len(held)
    for index in range(tally.completions or 0):
        if room <= 0:
            break
        if index not in settled and index not in held and _make_indexed(tally, pods, index, work):
            room -= 1
    return len(active)


def _make_indexed(tally: JobTally, pods: Sequence[Object], index: int, work: Work) -> bool:
    """Make the pod of ``index`` if its time has come."""
    failures = None
    at = 0
    if tally.limit_per_index is None:
        at = retry_at(tally.job, pods)
    else:
        ended = [pod for pod in pods if index_of(pod) == index and pod.status.get("phase") == "Failed"]
        failures = max((failures_of(pod) + 1 for pod in ended), default=0)
        at = max((finished_at(pod) for pod in ended), default=0) + delay_after(failures)
    if at > work.now:
        work.look_again(at)
        return False
    make_pod(tally.job, work, index, failures)
    return True


def _end(job: Object, tally: JobTally, ending: tuple[str, str], pods: Sequence[Object], work: Work) -> None:
    reason, message = ending
    good = reason in ("CompletionsReached", "SuccessPolicy")
    names = ("SuccessCriteriaMet", "Complete") if good else ("FailureTarget", "Failed")
    conditions = with_conditions(job.status, *(_condition(name, True, reason, message, work.now) for name in names))
    kept = _give_up(active := [pod for pod in pods if is_active(pod)], len(active), work)
    times = {"startTime": rfc3339(started_at(job, work.now))} | ({"completionTime": rfc3339(work.now)} if good else {})
    _report(job, tally, pods, kept, {**times, "conditions": conditions}, work)


def _after_the_end(job: Object, tally: JobTally, pods: Sequence[Object], work: Work) -> None:
    """No pod goes on, and the Job itself goes when its time to live is over."""
    active = [pod for pod in pods if is_active(pod)]
    _report(job, tally, pods, _give_up(active, len(active), work), {}, work)
    ttl = job.spec.get("ttlSecondsAfterFinished")
    if not isinstance(ttl, int):
        return
    ended = condition_of(job.status, "Complete") or condition_of(job.status, "Failed") or {}
    at = parse_time(str(ended.get("lastTransitionTime") or rfc3339(work.now))) + ttl * 1000
    if at > work.now:
        work.look_again(at)
    else:
        work.delete(job)


def _report(job: Object, tally: JobTally, pods: Sequence[Object], active: int, more: Manifest, work: Work) -> None:
    going = sum(pod.deleting and not is_finished(pod) for pod in pods)
    ready = sum(is_active(pod) and is_ready(pod) for pod in pods) if active else 0
    work.status(job, {**tally.status(), "active": active, "ready": ready, "terminating": going, **more})
