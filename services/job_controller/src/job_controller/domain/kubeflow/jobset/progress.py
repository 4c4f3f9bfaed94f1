"""How far the Jobs of a JobSet have come: counts by replicated job, and what may start or is done by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from job_controller.domain.kubeflow.batch_jobs import finished_as, pods_wanted
from job_controller.domain.kubeflow.jobset.jobs import REPLICATED_JOB
from job_controller.domain.kubeflow.jobset.spec import JobSetSpec, ReplicatedJobSpec
from kube import Manifest, Object


@dataclass(frozen=True, slots=True)
class Progress:
    """Jobs of one replicated job, counted; a Job is ready when as many pods as it wants are ready or done."""

    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0

    def manifest(self, name: str) -> Manifest:
        return {
            "name": name,
            "ready": self.ready,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "active": self.active,
            "suspended": self.suspended,
        }


def count_jobs(spec: JobSetSpec, jobs: Sequence[Object]) -> dict[str, Progress]:
    """The progress of every replicated job, by name."""
    by_name: dict[str, list[Object]] = {replicated.name: [] for replicated in spec.jobs}
    for job in jobs:
        by_name.setdefault(job.labels.get(REPLICATED_JOB, ""), []).append(job)
    return {replicated.name: _count(by_name[replicated.name]) for replicated in spec.jobs}


def _count(jobs: Sequence[Object]) -> Progress:
    going = [job for job in jobs if not finished_as(job)]
    ends = [finished_as(job) for job in jobs]
    return Progress(
        ready=sum(_is_ready(job) for job in going),
        succeeded=ends.count("Complete"),
        failed=ends.count("Failed"),
        active=sum(int(job.status.get("active") or 0) > 0 for job in going),
        suspended=sum(bool(job.spec.get("suspend")) for job in going),
    )


def _is_ready(job: Object) -> bool:
    done = int(job.status.get("ready") or 0) + int(job.status.get("succeeded") or 0)
    return not job.spec.get("suspend") and done >= pods_wanted(job.spec)


def has_started(replicated: ReplicatedJobSpec, progress: Progress) -> bool:
    """Whether every Job of it is ready or has come to its end."""
    return progress.ready + progress.succeeded + progress.failed >= replicated.replicas


def dependencies_met(spec: JobSetSpec, replicated: ReplicatedJobSpec, counts: Mapping[str, Progress]) -> bool:
    """Whether all that it depends on is as far as it asks for."""
    replicas = {other.name: other.replicas for other in spec.jobs}
    for name, wanted in replicated.depends_on:
        progress = counts.get(name, Progress())
        reached = progress.succeeded + (0 if wanted == "Complete" else progress.ready)
        if reached < replicas.get(name, 0):
            return False
    return True


def may_start(spec: JobSetSpec, counts: Mapping[str, Progress]) -> list[ReplicatedJobSpec]:
    """The replicated jobs whose Jobs may run now, in their order."""
    allowed: list[ReplicatedJobSpec] = []
    for replicated in spec.jobs:
        if dependencies_met(spec, replicated, counts):
            allowed.append(replicated)
        if spec.in_order and not has_started(replicated, counts[replicated.name]):
            break
    return allowed


def has_succeeded(spec: JobSetSpec, counts: Mapping[str, Progress]) -> bool:
    """Whether the Jobs that the success policy names are complete: all of them, or any."""
    targets = [job for job in spec.jobs if not spec.success_targets or job.name in spec.success_targets]
    if spec.success_operator == "Any" and any(counts[job.name].succeeded > 0 for job in targets):
        return True
    return bool(targets) and all(counts[job.name].succeeded >= job.replicas for job in targets)
