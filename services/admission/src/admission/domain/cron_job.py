"""Volcano CronJobs and batch/v1 CronJobs: when, how many at a time, and the job to make."""

from collections.abc import Iterable

from admission.domain.cron_schedule import check_schedule, check_time_zone
from admission.domain.errors import FieldError
from admission.domain.object_meta import TEMPLATE_METADATA
from admission.domain.queue_choice import check_queue
from admission.domain.shapes import TEXT, TRUTH, WHOLE, Shape, closed, fields, one_of, within
from admission.domain.volcano_job import JOB_SPEC, check_job_spec, default_job_spec, warn_job_spec
from admission.domain.workloads import BATCH_JOB_SPEC, check_batch_job_spec, default_batch_job_spec
from admission.domain.world import Review

NAME_MAX = 52  # a job is called after its cron job, with the time (11 characters) behind


def _cron_spec(job: Shape) -> Shape:
    return closed(
        schedule=TEXT,
        timeZone=TEXT,
        startingDeadlineSeconds=WHOLE,
        concurrencyPolicy=TEXT,
        suspend=TRUTH,
        jobTemplate=fields(metadata=TEMPLATE_METADATA, spec=job),
        successfulJobsHistoryLimit=WHOLE,
        failedJobsHistoryLimit=WHOLE,
    )


VOLCANO_CRON_SPEC = _cron_spec(JOB_SPEC)
BATCH_CRON_SPEC = _cron_spec(BATCH_JOB_SPEC)


def default_cron(review: Review) -> None:
    """Jobs may run side by side; 3 succeeded and 1 failed one are kept."""
    spec = review.spec
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def default_volcano_cron(review: Review) -> None:
    default_cron(review)
    job = (review.spec.get("jobTemplate") or {}).get("spec")
    if job:
        default_job_spec(job)


def default_batch_cron(review: Review) -> None:
    default_cron(review)
    job = (review.spec.get("jobTemplate") or {}).get("spec")
    if job:
        default_batch_job_spec(job)


def check_cron(review: Review) -> Iterable[FieldError]:
    """A schedule that parses, a zone by name, limits that are no negative numbers, a job to make."""
    spec = review.spec
    if len(review.key.name) > NAME_MAX:
        yield FieldError(
            "metadata.name", review.key.name, f"must be at most {NAME_MAX} characters; its jobs add 11 more"
        )
    yield from check_schedule("spec.schedule", spec.get("schedule") or "")
    yield from check_time_zone("spec.timeZone", spec.get("timeZone"))
    yield from one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from within(f"spec.{name}", spec.get(name), 0)
    if not (spec.get("jobTemplate") or {}).get("spec"):
        yield FieldError("spec.jobTemplate.spec", None, "is required; describe the job to make")


def check_volcano_cron(review: Review) -> Iterable[FieldError]:
    yield from check_cron(review)
    job = (review.spec.get("jobTemplate") or {}).get("spec")
    if job:
        yield from check_job_spec("spec.jobTemplate.spec", review.key.name, job)
        if job.get("queue") and review.creating:
            yield from check_queue("spec.jobTemplate.spec.queue", review, job["queue"])


def check_batch_cron(review: Review) -> Iterable[FieldError]:
    yield from check_cron(review)
    job = (review.spec.get("jobTemplate") or {}).get("spec")
    if job:
        yield from check_batch_job_spec("spec.jobTemplate.spec", job)


def warn_volcano_cron(review: Review) -> Iterable[str]:
    job = (review.spec.get("jobTemplate") or {}).get("spec") or {}
    return warn_job_spec("spec.jobTemplate.spec", review, job)
