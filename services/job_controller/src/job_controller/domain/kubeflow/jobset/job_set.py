"""JobSet: which Jobs it needs now.

In the order of upstream: what is finished is only cleared away; Jobs of an earlier attempt go; a failed Job is answered by
the failure policy; success ends the set; else Jobs are made, suspended or resumed, as dependencies and order allow.
A restart and the deletion of the Jobs that it replaces are one decision.
"""

from job_controller.domain.kubeflow.batch_jobs import BATCH_JOB, finished_as, job_failure
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.conditions import find_condition, first_holding, holds
from job_controller.domain.kubeflow.jobset.failure import Answer, answer_failures, failed_at
from job_controller.domain.kubeflow.jobset.group import group_of, own_group
from job_controller.domain.kubeflow.jobset.jobs import service_manifest
from job_controller.domain.kubeflow.jobset.making import SUSPENDED, World, drop_surplus, start_jobs, suspend_jobs
from job_controller.domain.kubeflow.jobset.progress import (
    Progress,
    count_jobs,
    has_started,
    has_succeeded,
    may_start,
)
from job_controller.domain.kubeflow.jobset.restarts import Attempts, place_of, read_attempts
from job_controller.domain.kubeflow.jobset.spec import JOB_SET, JobSetSpec, read_job_set
from job_controller.domain.reconcile import Actions, View
from kube import Event, Key, Object, parse_time
from kube.words import counted

COMPLETED, FAILED, RESTARTING = "Completed", "Failed", "RestartingJobSet"


class JobSets:
    """JobSet of ``jobset.x-k8s.io/v1alpha2``."""

    kind = JOB_SET

    def observe(self, job: Object, event: Event, now: int) -> None:
        """Nothing to remember: the levels tell everything."""

    def forget(self, uid: str) -> None:
        """Nothing was remembered."""

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """What should happen about the set now."""
        spec = read_job_set(job)
        if job.deleting or spec.managed_elsewhere:
            return Actions()
        changes = Changes(job, now)
        attempts = read_attempts(job.status)
        owned = {item.key: item for item in view.owned(job.uid)}
        jobs = [item for item in owned.values() if item.kind == BATCH_JOB]
        world = World(spec, owned, jobs, attempts, view)
        if first_holding(job.status, (COMPLETED, FAILED)):
            _clear_away(changes, world)
            _expire(changes, spec)
            return changes.actions()
        _go_on(changes, world)
        return changes.actions()


def _go_on(changes: Changes, world: World) -> None:
    failed = [job for job in world.present if finished_as(job) == "Failed"]
    counts = count_jobs(world.spec, world.present)
    attempts = world.attempts
    if failed:
        attempts = _answer(changes, world, failed)
    elif has_succeeded(world.spec, counts):
        _end(changes, COMPLETED, "AllJobsCompleted", "jobset completed successfully")
    if first_holding(changes.status, (COMPLETED, FAILED)):
        _clear_away(changes, world)
    else:
        for job in world.jobs:
            if attempts.is_past(job):
                changes.delete(job)
        if attempts is world.attempts:
            _provide(changes, world, counts)
    _note_counts(changes, world.spec, counts, attempts)


def _answer(changes: Changes, world: World, failed: list[Object]) -> Attempts:
    """Do what the failure policy says; returns the attempts after it."""
    policy = world.spec.failure
    if policy is None:
        first = job_failure(min(failed, key=failed_at))
        _end(
            changes,
            FAILED,
            "FailedJobs",
            f"jobset failed due to one or more job failures (first failed job: {first.words})",
        )
        return world.attempts
    answer = answer_failures(policy, failed)
    if answer.action == "FailJobSet":
        _end(changes, FAILED, "FailJobSetFailurePolicyAction", _words(answer, "jobset failed"))
        return world.attempts
    counts = not answer.action.endswith("IgnoreMaxRestarts")
    if counts and world.attempts.used >= policy.max_restarts:
        text = f"jobset failed due to reaching its {counted(policy.max_restarts, 'restart')}"
        _end(changes, FAILED, "ReachedMaxRestarts", _words(answer, text))
        return world.attempts
    if answer.action.startswith("RestartJobSet"):
        after = world.attempts.after_set_restart(counts)
    else:
        after = world.attempts.after_job_restart(place_of(answer.job), counts)
    _note_restart(changes, answer, after)
    return after


def _note_restart(changes: Changes, answer: Answer, after: Attempts) -> None:
    what = "jobset restarts" if answer.action.startswith("RestartJobSet") else f"job {answer.job.name} restarts"
    message = _words(answer, what)
    changes.set_status({"restarts": after.restarts, "restartsCountTowardsMax": after.counted})
    reason = f"FailurePolicy_{answer.rule}" if answer.rule else "DefaultFailurePolicy"
    changes.condition(RESTARTING, True, reason, message)
    changes.say("JobSetRestarted", reason, message)


def _words(answer: Answer, what: str) -> str:
    rule = f" by rule {answer.rule}" if answer.rule else ""
    return f"{what}{rule} (first failed job: {job_failure(answer.job).words})"


def _provide(changes: Changes, world: World, counts: dict[str, Progress]) -> None:
    """The service, the group if the set asks for one, and the Jobs that may be there now."""
    spec, source = world.spec, changes.job
    if spec.subdomain and Key("Service", source.namespace, spec.subdomain) not in world.owned:
        changes.create(service_manifest(source, spec))
    drop_surplus(changes, world)
    if spec.suspend:
        suspend_jobs(changes, world)
        return
    if group_of(source):
        own_group(changes, spec, world.view)
    changes.condition(SUSPENDED, False, "ResumeJobs", "jobset is resumed")
    if spec.failure is not None and spec.failure.blocking and len(world.present) < len(world.jobs):
        return
    for replicated in may_start(spec, counts):
        start_jobs(changes, world, replicated)
    _note_startup(changes, spec, counts)


def _clear_away(changes: Changes, world: World) -> None:
    """A finished set keeps the Jobs that ended, for their logs; what still runs goes."""
    for job in world.jobs:
        if not finished_as(job):
            changes.delete(job)
    if changes.mutations:
        changes.say("JobsDeleted", "JobSetFinished", f"{changes.job.key} is finished; its running jobs are deleted")


def _end(changes: Changes, outcome: str, reason: str, message: str) -> None:
    changes.condition(outcome, True, reason, message)
    changes.condition(RESTARTING, False, reason, message)
    changes.set_status({"terminalState": outcome})
    changes.say(f"JobSet{outcome}", reason, message)


def _expire(changes: Changes, spec: JobSetSpec) -> None:
    ended = first_holding(changes.job.status, (COMPLETED, FAILED))
    if spec.ttl_seconds is None or ended is None:
        return
    due = parse_time(ended["lastTransitionTime"]) + spec.ttl_seconds * 1000
    if due > changes.now:
        changes.wake(due)
        return
    changes.delete(changes.job)
    changes.say("JobSetExpired", "TimeToLiveOver", f"{changes.job.key} is kept for {spec.ttl_seconds} s after its end")


def _note_startup(changes: Changes, spec: JobSetSpec, counts: dict[str, Progress]) -> None:
    started = all(has_started(replicated, counts[replicated.name]) for replicated in spec.jobs)
    if started and holds(changes.status, RESTARTING):
        changes.condition(RESTARTING, False, "JobsReady", "all jobs are ready again")
    if not spec.in_order:
        return
    progress = find_condition(changes.status, "StartupPolicyInProgress")
    if started:
        changes.condition(
            "StartupPolicyCompleted", True, "InOrderStartupPolicyCompleted", "all replicated jobs have started"
        )
        changes.condition(
            "StartupPolicyInProgress", False, "InOrderStartupPolicyCompleted", "all replicated jobs have started"
        )
    elif progress is None:
        changes.condition(
            "StartupPolicyInProgress", True, "InOrderStartupPolicyExecuting", "replicated jobs start in order"
        )


def _note_counts(changes: Changes, spec: JobSetSpec, counts: dict[str, Progress], attempts: Attempts) -> None:
    statuses = [
        {**counts[one.name].manifest(one.name), **attempts.status_of(one.name, one.replicas)} for one in spec.jobs
    ]
    changes.set_status({"restarts": attempts.restarts, "replicatedJobsStatus": statuses})
