"""What a Kubeflow job says while its decisions are refused over and over. As upstream it is tried for ever, ever less often."""

from job_controller.domain.kubeflow import lifecycle
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.conditions import holds
from job_controller.domain.reconcile import Actions, Refusal
from kube import Object
from kube.words import counted


def note_refusal(job: Object, now: int, refusal: Refusal) -> Actions:
    """Say in the condition Blocked why the job does not run. One that runs, or has ended, says nothing."""
    if lifecycle.is_finished(job.status) or holds(job.status, lifecycle.RUNNING):
        return Actions()
    changes = Changes(job, now)
    times = f"{counted(refusal.times, 'time')} in a row it was refused: " if refusal.times else ""
    reason = "DecisionRefused" if refusal.times else "NameTaken"
    lifecycle.note_blocked(changes, reason, f"{times}{refusal.message}")
    changes.say("RefusalNoted", reason, f"{job.key}: {times}{refusal.message}")
    return changes.actions()
