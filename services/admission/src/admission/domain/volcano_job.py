"""Volcano Jobs: what a job gets when it says nothing, what it must hold, what of it may change.

JobTemplates and the jobs of CronJobs have the same spec and the same rules, under another path.
"""

from collections.abc import Iterable
from typing import Any

from admission.domain.changes import fixed
from admission.domain.errors import FieldError
from admission.domain.job_plugins import check_plugins, default_plugins, warn_plugins
from admission.domain.job_policies import POLICIES, check_duration, check_policies
from admission.domain.job_tasks import RETRIES, TASKS, check_tasks, default_task
from admission.domain.network_topology import NETWORK_TOPOLOGY, check_topology, default_topology
from admission.domain.priority import warn_missing_class
from admission.domain.queue_choice import check_queue, choose_queue
from admission.domain.shapes import TEXT, TEXTS, WHOLE, ListOf, MapOf, closed, copied, within
from admission.domain.volumes import CLAIM_SPEC, check_claim_spec
from admission.domain.world import Review
from kube import Manifest
from kube.words import counted

JOB_SPEC = closed(
    schedulerName=TEXT,
    minAvailable=WHOLE,
    volumes=ListOf(closed(mountPath=TEXT, volumeClaimName=TEXT, volumeClaim=CLAIM_SPEC)),
    tasks=TASKS,
    policies=POLICIES,
    plugins=MapOf(TEXTS),
    runningEstimate=TEXT,
    queue=TEXT,
    maxRetry=WHOLE,
    ttlSecondsAfterFinished=WHOLE,
    priorityClassName=TEXT,
    minSuccess=WHOLE,
    networkTopology=NETWORK_TOPOLOGY,
)
WAY_OUT = "only minAvailable, replicas and priorityClassName may; delete the job and create it anew"


def default_job(review: Review) -> None:
    """The spec as default_job_spec fills it in, and the queue."""
    default_job_spec(review.spec)
    if not review.spec.get("queue"):
        review.spec["queue"] = choose_queue(review)


def default_job_spec(spec: Manifest) -> None:
    """Names of tasks, minima, retries, and the plugins that others need."""
    for index, task in enumerate(spec.get("tasks") or []):
        default_task(index, task)
    spec["maxRetry"] = spec.get("maxRetry") or RETRIES
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(task["minAvailable"] for task in spec.get("tasks") or [])
    if "plugins" in spec:
        default_plugins(spec["plugins"])
    default_topology(spec)


def check_job(review: Review) -> Iterable[FieldError]:
    """The spec of a job is sound, and the queue that it goes to takes it."""
    yield from check_job_spec("spec", review.key.name, review.spec)
    if review.creating:
        yield from check_queue("spec.queue", review, review.spec["queue"])


def check_job_spec(path: str, name: str, spec: Manifest) -> Iterable[FieldError]:
    """All that holds for the spec at ``path`` of a job that will be called ``name``."""
    tasks = spec.get("tasks") or []
    yield from check_tasks(f"{path}.tasks", name, tasks, ())
    replicas = sum(max(task["replicas"], 0) for task in tasks)
    yield from within(f"{path}.minAvailable", spec["minAvailable"], 0)
    if tasks and spec["minAvailable"] > replicas:
        rule = f"minAvailable must be at most the replicas of all tasks together ({replicas}); lower it or raise them"
        yield FieldError(f"{path}.minAvailable", spec["minAvailable"], rule)
    yield from within(f"{path}.maxRetry", spec["maxRetry"], 0)
    yield from within(f"{path}.ttlSecondsAfterFinished", spec.get("ttlSecondsAfterFinished"), 0)
    yield from within(f"{path}.minSuccess", spec.get("minSuccess"), 1)
    if spec.get("runningEstimate"):
        yield from check_duration(f"{path}.runningEstimate", spec["runningEstimate"])
    yield from check_policies(f"{path}.policies", spec.get("policies") or [])
    yield from check_plugins(f"{path}.plugins", spec.get("plugins") or {}, [task["name"] for task in tasks])
    yield from check_topology(path, spec)
    yield from _check_volumes(f"{path}.volumes", spec.get("volumes") or [])


def _check_volumes(path: str, volumes: list[Manifest]) -> Iterable[FieldError]:
    taken: set[str] = set()
    for index, volume in enumerate(volumes):
        where, target = f"{path}[{index}]", volume.get("mountPath") or ""
        if not target or ":" in target:
            yield FieldError(
                f"{where}.mountPath", target, "must be a path without ':'; say where the volume is mounted"
            )
        elif target in taken:
            yield FieldError(f"{where}.mountPath", target, "is the path of two volumes; mount each at its own path")
        taken.add(target)
        claims = [name for name in ("volumeClaim", "volumeClaimName") if volume.get(name)]
        if len(claims) != 1:
            rule = f"must have either a volumeClaim or a volumeClaimName, but has {' and '.join(claims) or 'neither'}"
            yield FieldError(where, target, rule)
        yield from check_claim_spec(f"{where}.volumeClaim", volume.get("volumeClaim") or {})


def check_job_update(review: Review) -> Iterable[FieldError]:
    """Of a job that exists only its numbers may change: minima, replicas, and its priority class."""
    if review.old is None:
        return
    old, new = copied(review.old.spec), copied(review.spec)
    default_job_spec(old)
    before, after = ([task["name"] for task in spec.get("tasks") or []] for spec in (old, new))
    if before != after:
        rule = f"tasks may not be added, removed or renamed (they are {', '.join(before)}); {WAY_OUT}"
        yield FieldError("spec.tasks", ", ".join(after), rule)
        old.pop("tasks", None)
        new.pop("tasks", None)
    for spec in (old, new):
        _drop_changeable(spec)
    yield from fixed("spec", old, new, WAY_OUT)


def _drop_changeable(spec: dict[str, Any]) -> None:
    for name in ("minAvailable", "priorityClassName"):
        spec.pop(name, None)
    for task in spec.get("tasks") or []:
        for name in ("replicas", "minAvailable"):
            task.pop(name, None)


def warn_job(review: Review) -> Iterable[str]:
    """Priority classes that are missing, arguments that nobody reads, a minimum that is more than it seems."""
    yield from warn_job_spec("spec", review, review.spec)
    if review.old is None:
        yield from _warn_minimum(review.spec)


def _warn_minimum(spec: Manifest) -> Iterable[str]:
    """The minima of tasks hold, also where the job's is below their sum; Volcano does not look at them there."""
    tasks, minimum = spec.get("tasks") or [], spec.get("minAvailable") or 0
    together = sum(task.get("minAvailable") or 0 for task in tasks)
    if 0 < minimum < together and not any(task.get("dependsOn") for task in tasks):
        yield (
            f"spec.minAvailable is {minimum}, but its tasks need {counted(together, 'pod')}, and all {together} start together; give "
            "tasks a lower minAvailable if fewer will do (without one a task needs all its replicas)"
        )


def warn_job_spec(path: str, review: Review, spec: Manifest) -> Iterable[str]:
    yield from warn_missing_class(f"{path}.priorityClassName", review.world, spec.get("priorityClassName"))
    yield from warn_plugins(f"{path}.plugins", spec.get("plugins") or {})
    for index, task in enumerate(spec.get("tasks") or []):
        name = ((task.get("template") or {}).get("spec") or {}).get("priorityClassName")
        where = f"{path}.tasks[{index}].template.spec.priorityClassName"
        yield from warn_missing_class(where, review.world, name)
