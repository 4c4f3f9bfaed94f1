"""The Jobs of a JobSet: made, suspended, resumed, and taken away where there are too many."""

from dataclasses import dataclass

from job_controller.domain.kubeflow.batch_jobs import BATCH_JOB, finished_as
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.jobset.jobs import job_manifest, job_name, pod_template
from job_controller.domain.kubeflow.jobset.restarts import Attempts, place_of
from job_controller.domain.kubeflow.jobset.spec import JobSetSpec, ReplicatedJobSpec
from job_controller.domain.reconcile import View
from kube import Key, Object
from kube.words import counted

SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True)
class World:
    """A JobSet and what it owns."""

    spec: JobSetSpec
    owned: dict[Key, Object]
    jobs: list[Object]
    attempts: Attempts
    view: View

    @property
    def present(self) -> list[Object]:
        """The Jobs of this attempt."""
        return [job for job in self.jobs if not self.attempts.is_past(job) and not job.deleting]


def drop_surplus(changes: Changes, world: World) -> None:
    """The Jobs beyond the replicas, or of a replicated job that is no more: a set may change while it is suspended."""
    replicas = {replicated.name: replicated.replicas for replicated in world.spec.jobs}
    for job in world.present:
        name, index = place_of(job)
        if index >= replicas.get(name, 0):
            changes.delete(job)
            changes.say(
                "JobsDeleted",
                "JobSetScaledDown",
                f"{changes.job.key} has {counted(replicas.get(name, 0), 'job')} of {name} now",
            )


def suspend_jobs(changes: Changes, world: World) -> None:
    """All Jobs are there and stand still."""
    for job in world.present:
        if not finished_as(job) and not job.spec.get("suspend"):
            changes.patch(job, {"spec": {"suspend": True}})
    for replicated in world.spec.jobs:
        _create_missing(changes, world, replicated, suspend=True)
    changes.condition(SUSPENDED, True, "SuspendedJobs", "jobset is suspended")
    changes.say("JobSetSuspended", "SuspendedJobs", f"{changes.job.key} is suspended")


def start_jobs(changes: Changes, world: World, replicated: ReplicatedJobSpec) -> None:
    """Make the Jobs that are missing and resume those that are suspended, with the template as it is now."""
    _create_missing(changes, world, replicated, suspend=False)
    for job in world.present:
        name, _ = place_of(job)
        if name == replicated.name and job.spec.get("suspend") and not finished_as(job):
            _resume(changes, world, replicated, job)


def _resume(changes: Changes, world: World, replicated: ReplicatedJobSpec, job: Object) -> None:
    """Let a suspended Job go on with the template as it is now; one of another size is made anew, as sizes are fixed."""
    name, index = place_of(job)
    attempt = world.attempts.of(name, index)
    wanted = job_manifest(changes.job, world.spec, replicated, index, attempt, suspend=False)["spec"]
    if any(job.spec.get(size) != wanted.get(size) for size in ("parallelism", "completions")):
        changes.delete(job)
        changes.say("JobsDeleted", "JobSetResized", f"{job.name} has another number of pods now and is made anew")
        return
    template = pod_template(changes.job, world.spec, replicated, index, attempt)
    changes.patch(job, {"spec": {"suspend": False, "template": template}})
    changes.say("JobsResumed", "ResumeJobs", f"{changes.job.key} is resumed")


def _create_missing(changes: Changes, world: World, replicated: ReplicatedJobSpec, *, suspend: bool) -> None:
    for index in range(replicated.replicas):
        key = Key(BATCH_JOB, changes.job.namespace, job_name(changes.job, replicated, index))
        if key not in world.owned:
            attempt = world.attempts.of(replicated.name, index)
            changes.create(job_manifest(changes.job, world.spec, replicated, index, attempt, suspend))
            changes.say("JobsCreated", "JobsMissing", f"{changes.job.key}: jobs of {replicated.name} are made")
