"""The course that all kinds of jobs with replicas take: made, perhaps suspended, at work, finished, cleaned up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from job_controller.domain.kubeflow import lifecycle
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.refusals import note_refusal
from job_controller.domain.kubeflow.replica_specs import Framework, ReplicatedJob, read_replicated_job
from job_controller.domain.reconcile import Actions, Refusal, View
from kube import Event, Object

P = TypeVar("P")
"""What a job of the kind owns."""


@dataclass(frozen=True, slots=True)
class Steps(Generic[P]):
    """What is of one kind alone."""

    find: Callable[[ReplicatedJob, View], P]
    suspend: Callable[[Changes, P], None]
    drive: Callable[[Changes, ReplicatedJob, P, View], None]
    """Make what is missing, and note what became of it."""

    clean_up: Callable[[Changes, ReplicatedJob, P], None]
    """Called once the job has finished."""

    count: Callable[[Changes, ReplicatedJob, P], None]
    """Write the replicas' statuses."""


class ReplicatedJobs(Generic[P]):
    """One kind of job with replicas."""

    def __init__(self, framework: Framework, steps: Steps[P]) -> None:
        self.kind = framework.kind
        self._framework, self._steps = framework, steps

    def observe(self, job: Object, event: Event, now: int) -> None:
        """Nothing to remember: the levels tell everything."""

    def forget(self, uid: str) -> None:
        """Nothing was remembered."""

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """What should happen about the job now."""
        read, steps = read_replicated_job(job, self._framework), self._steps
        if job.deleting or read.policy.managed_elsewhere:
            return Actions()
        changes = Changes(job, now)
        parts = steps.find(read, view)
        if lifecycle.is_finished(job.status):
            lifecycle.expire(changes, read.policy)
        elif read.policy.suspend:
            steps.suspend(changes, parts)
        else:
            lifecycle.note_unblocked(changes)
            steps.drive(changes, read, parts, view)
        if lifecycle.is_finished(changes.status):
            steps.clean_up(changes, read, parts)
        steps.count(changes, read, parts)
        return changes.actions()

    def note_refusal(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """What is refused stands in the job's conditions."""
        return note_refusal(job, now, refusal)

    def give_up(self, job: Object, view: View, now: int, refusal: Refusal) -> Actions:
        """Nothing: it goes on to be tried."""
        return Actions()
