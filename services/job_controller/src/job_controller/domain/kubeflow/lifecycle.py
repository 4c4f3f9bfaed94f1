"""The life of a Kubeflow job as its conditions tell it: Created, Running, Restarting, Suspended, Succeeded or Failed.

Running and Restarting take turns. Succeeded and Failed are final: nothing is written over them, whatever becomes of the pods.
Where upstream removes a condition it is set to "False" here, which every reader takes to mean the same.
"""

from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.conditions import first_holding, holds
from job_controller.domain.kubeflow.run_policy import RunPolicy
from kube import Manifest, parse_time, rfc3339

CREATED, RUNNING, RESTARTING = "Created", "Running", "Restarting"
SUCCEEDED, FAILED, SUSPENDED, BLOCKED = "Succeeded", "Failed", "Suspended", "Blocked"


def is_finished(status: Manifest) -> bool:
    return first_holding(status, (SUCCEEDED, FAILED)) is not None


def note_created(changes: Changes) -> None:
    changes.condition(CREATED, True, _reason(changes, "Created"), f"{_title(changes)} is created.")


def note_running(changes: Changes) -> None:
    changes.condition(RUNNING, True, _reason(changes, "Running"), f"{_title(changes)} is running.")
    changes.condition(RESTARTING, False, _reason(changes, "Running"), f"{_title(changes)} is running.")


def note_waiting(changes: Changes, message: str) -> None:
    """The job ran and does not any more, for no fault of its own: its pods were evicted and wait for room."""
    changes.condition(RUNNING, False, _reason(changes, "Pending"), message)


def note_blocked(changes: Changes, reason: str, message: str) -> None:
    """What the job needs cannot be made. A condition of our own: upstream tells it in events only."""
    changes.condition(BLOCKED, True, reason, message)


def note_unblocked(changes: Changes) -> None:
    changes.condition(BLOCKED, False, "Unblocked", f"{_title(changes)} has what it needs.")


def note_restarting(changes: Changes, message: str) -> None:
    changes.condition(RESTARTING, True, _reason(changes, "Restarting"), message)
    changes.condition(RUNNING, False, _reason(changes, "Restarting"), message)
    changes.say("PodsRestarted", "Restarting", message)


def note_suspended(changes: Changes) -> None:
    """The job holds nothing; its clock stands still, and starts anew when it resumes."""
    message = f"{_title(changes)} is suspended."
    changes.condition(RUNNING, False, _reason(changes, "Suspended"), message)
    changes.condition(RESTARTING, False, _reason(changes, "Suspended"), message)
    if not holds(changes.status, SUSPENDED):
        changes.condition(SUSPENDED, True, _reason(changes, "Suspended"), message)
        changes.set_status({"startTime": None})
        changes.say("JobSuspended", "Suspended", message)


def note_resumed(changes: Changes) -> None:
    changes.condition(SUSPENDED, False, _reason(changes, "Resumed"), f"{_title(changes)} is resumed.")


def note_started(changes: Changes) -> None:
    """The moment from which the deadline counts: the first at which the job's pods may exist."""
    if not changes.status.get("startTime"):
        changes.set_status({"startTime": rfc3339(changes.now)})


def note_succeeded(changes: Changes) -> None:
    message = f"{_title(changes)} successfully completed."
    _finish(changes, SUCCEEDED, message)
    changes.say("JobSucceeded", "Succeeded", message)


def note_failed(changes: Changes, cause: str, reason: str = "") -> None:
    """``cause`` completes the sentence "the job has failed: …"; ``reason`` is the condition's, ``<Kind>Failed`` if left out."""
    message = f"{_title(changes)} has failed: {cause}."
    _finish(changes, FAILED, message, reason)
    changes.say("JobFailed", "Failed", message)


def is_overdue(changes: Changes, policy: RunPolicy) -> bool:
    """Whether the job has been active as long as it may be; looks again when it will have been."""
    started = changes.status.get("startTime")
    if policy.deadline_seconds is None or not started:
        return False
    due = parse_time(started) + policy.deadline_seconds * 1000
    if due > changes.now:
        changes.wake(due)
    return due <= changes.now


def expire(changes: Changes, policy: RunPolicy) -> None:
    """Delete the finished job when its time to live is over; looks again when it will be."""
    ended = changes.status.get("completionTime")
    if policy.ttl_seconds is None or not ended:
        return
    due = parse_time(ended) + policy.ttl_seconds * 1000
    if due > changes.now:
        changes.wake(due)
        return
    changes.delete(changes.job)
    seconds = policy.ttl_seconds
    changes.say(
        "JobExpired", "TimeToLiveOver", f"{_title(changes)} ended at {ended} and is kept for {seconds} s after that"
    )


def _finish(changes: Changes, outcome: str, message: str, reason: str = "") -> None:
    reason = reason or _reason(changes, outcome)
    for kind in (RUNNING, RESTARTING):
        changes.condition(kind, False, reason, message)
    changes.condition(outcome, True, reason, message)
    changes.set_status({"completionTime": rfc3339(changes.now)})


def _reason(changes: Changes, word: str) -> str:
    return changes.job.kind.partition(".")[0] + word


def _title(changes: Changes) -> str:
    return f"{changes.job.kind.partition('.')[0]} {changes.job.namespace}/{changes.job.name}"
