"""CronJob: a batch/v1 Job at every time of its schedule."""

from cluster_gateway.domain.controllers.work import Work, condition_of, controls, whole
from kube import Key, Manifest, Object, parse_time, rfc3339
from kube.cron import Schedule, ScheduleError, run_name
from kube.owners import owner_reference

CRON_JOB = "CronJob.batch"
JOB = "Job.batch"
_LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"
"""The label of Jobs that wait for quota: queue_manager lets them run."""

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def reconcile_cron_job(item: Object, work: Work) -> None:
    """Make the Job of the newest time that has come, forget old ones, write the status."""
    if item.deleting:
        return
    jobs = [found for found in work.store.owned_by(item.uid) if found.kind == JOB and controls(item, found)]
    active = [job for job in jobs if not _ended(job)]
    status: Manifest = {}
    due = None if item.spec.get("suspend") else _due(item, work)
    if due is not None and _start(item, due, active, work):
        status["lastScheduleTime"] = rfc3339(due)
    status["active"] = [_pointer(job) for job in active] or None
    succeeded = [str(job.status.get("completionTime")) for job in jobs if _ended(job) == "Complete"]
    if succeeded:
        status["lastSuccessfulTime"] = max([*succeeded, str(item.status.get("lastSuccessfulTime") or "")])
    work.status(item, status)
    _forget(item, jobs, work)


def _ended(job: Object) -> str:
    """``Complete`` or ``Failed`` for a Job that has ended, else ""."""
    for name in ("Complete", "Failed"):
        condition = condition_of(job.status, name)
        if condition is not None and condition.get("status") == "True":
            return name
    return ""


def _due(item: Object, work: Work) -> int | None:
    """The newest time of the schedule that has come and was not served; the work comes back for the next one.

    A schedule or a zone that cannot be read has no times: it was refused at admission.
    """
    schedule = Schedule(str(item.spec.get("schedule") or ""), str(item.spec.get("timeZone") or ""))
    since = parse_time(str(item.status.get("lastScheduleTime") or item.created or rfc3339(work.now)))
    try:
        latest, coming = schedule.due(since, work.now), schedule.next_after(since, work.now)
    except ScheduleError:
        return None
    if coming is not None:
        work.look_again(coming)
    deadline = item.spec.get("startingDeadlineSeconds")
    too_late = latest is not None and isinstance(deadline, int) and work.now > latest + deadline * 1000
    return None if too_late else latest


def _start(item: Object, due: int, active: list[Object], work: Work) -> bool:
    """Make the Job of ``due``; False where one that still runs forbids it, for as long as it does."""
    concurrency = item.spec.get("concurrencyPolicy")
    if active and concurrency == "Forbid":
        return False
    if concurrency == "Replace":
        for job in active:
            work.delete(job)
    name = run_name(item.name[:52], due)
    if work.store.get(Key(JOB, item.namespace, name)) is not None:
        return True
    template = item.spec.get("jobTemplate") or {}
    given = template.get("metadata") or {}
    metadata = {
        "name": name,
        "namespace": item.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": {**(given.get("annotations") or {}), _SCHEDULED: rfc3339(due)},
        "ownerReferences": [owner_reference(item)],
    }
    spec = template.get("spec") or {}
    if _LOCAL_QUEUE in (given.get("labels") or {}):
        spec = {**spec, "suspend": True}
    work.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return True


def _pointer(job: Object) -> Manifest:
    return {"apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace, "name": job.name, "uid": job.uid}


def _forget(item: Object, jobs: list[Object], work: Work) -> None:
    for ending, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        ended = sorted((job for job in jobs if _ended(job) == ending), key=lambda job: (job.created, job.key))
        kept = whole(item.spec.get(limit), 3 if ending == "Complete" else 1)
        for job in ended[: max(0, len(ended) - kept)]:
            work.delete(job)
