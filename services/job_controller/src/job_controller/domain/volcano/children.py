"""Volcano Jobs as children of something else: a flow, a schedule."""

from job_controller.domain.volcano.spec import JOB
from kube import Object, parse_time

ENDED = ("Completed", "Failed", "Terminated", "Aborted")


def phase_of(job: Object) -> str:
    """The phase of a Volcano Job; "Pending" while it has none."""
    return str((job.status.get("state") or {}).get("phase") or "Pending")


def has_ended(job: Object) -> bool:
    """Whether nothing of the job will run any more, unless somebody resumes it."""
    return phase_of(job) in ENDED


def ended_at(job: Object) -> str:
    """When it came to its present phase, RFC 3339."""
    return str((job.status.get("state") or {}).get("lastTransitionTime") or "")


def child_jobs(children: list[Object]) -> list[Object]:
    """The Volcano Jobs among the children, oldest first."""
    jobs = [item for item in children if item.kind == JOB]
    return sorted(jobs, key=lambda job: (_time(job.created), job.name))


def _time(text: str) -> int:
    try:
        return parse_time(text)
    except ValueError:
        return 0
