"""Reading batch/v1 Jobs: how they ended, and why."""

from dataclasses import dataclass

from job_controller.domain.kubeflow.conditions import find_condition, first_holding
from kube import Manifest, Object

BATCH_JOB = "Job.batch"


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why a Job failed; ``at`` is the RFC 3339 time of it."""

    name: str
    reason: str
    message: str
    at: str

    @property
    def words(self) -> str:
        detail = f": {self.message.rstrip('.')}" if self.message else ""
        return f"{self.name} failed ({self.reason or 'no reason given'}){detail}"


def finished_as(job: Object | None) -> str:
    """``Complete``, ``Failed`` or "" for a Job that goes on, or is not there."""
    found = first_holding(job.status, ("Complete", "Failed")) if job else None
    return str(found["type"]) if found else ""


def job_failure(job: Object) -> JobFailure:
    """What the Job's condition says of its failure."""
    condition: Manifest = find_condition(job.status, "Failed") or {}
    said = (str(condition.get(part) or "") for part in ("reason", "message", "lastTransitionTime"))
    return JobFailure(job.name, *said)


def pods_wanted(spec: Manifest) -> int:
    """How many pods of the Job run at a time: its parallelism, or its completions where they are fewer."""
    parallelism = spec.get("parallelism")
    completions = spec.get("completions")
    wanted = 1 if parallelism is None else int(parallelism)
    return wanted if completions is None else min(wanted, int(completions))
