"""Workloads that are objects of their own: batch Jobs in a LocalQueue, and Workload objects that no job of ours is behind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kube import Key, Manifest, Object
from kube.pods import has_condition
from queue_manager.domain.members.members import GROUP, LOCAL_QUEUE, group_named_by
from queue_manager.domain.quotas.grant import RESERVATION, SINCE, Admission, SetGrant, read_admission
from queue_manager.domain.workloads.account import FREE, WORKLOAD, Account
from queue_manager.domain.workloads.podset import merged, podset_of
from queue_manager.domain.workloads.work_parts import WorkPart, make_part, read_parts
from queue_manager.domain.workloads.workload import (
    PRIORITY_CLASS,
    Constraints,
    Shape,
    Workload,
    constraints_of,
    told_of,
)

JOB = "Job.batch"
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
ELASTIC = "kueue.x-k8s.io/elastic-job"

PARALLELISM = "tidegate.dev/parallelism"
"""The annotation of a Job that keeps the parallelism it asked for while it runs with less."""

OF_JOB = "tidegate.dev/quota-of"
"""The annotation of pods whose quota their Job holds: they are no workloads of their own. Where they want to be near each
other it also says which gang they are, ``Job/name/count``: so many have to be there before the first may be placed."""


def holder_of(pod: Object) -> Key:
    """Whose quota a pod uses: its group's, its Job's, or its own."""
    group = group_named_by(pod)
    if group:
        return Key(GROUP, pod.namespace, group)
    controller = pod.controller if OF_JOB in pod.annotations else None
    return Key(JOB, pod.namespace, str(controller.get("name"))) if controller is not None else pod.key


def is_job_workload(item: Object) -> bool:
    """Whether the batch Job asks for quota itself: one that another job made is that one's business."""
    controller = item.controller
    return LOCAL_QUEUE in item.labels and (controller is None or controller.get("kind") == "CronJob")


def read_job(item: Object, priorities: Mapping[str, int], account: Account = FREE) -> Workload:
    """The workload of a batch Job: as many pods as run at a time."""
    template = item.spec.get("template") or {}
    pod_spec: Manifest = template.get("spec") or {}
    count = wanted_parallelism(item)
    least = _number(item.annotations.get(MIN_PARALLELISM), count)
    shape = _shape((make_part("main", count, min(count, least), pod_spec, constraints_of),), 0)
    asks = merged([podset_of((template.get("metadata") or {}).get("annotations") or {}, pod_spec, count)])
    priority = priorities.get(item.labels.get(PRIORITY_CLASS, ""), _number(pod_spec.get("priority"), 0))
    over = has_condition(item.status, "Complete") or has_condition(item.status, "Failed")
    admission = read_admission(item.annotations)
    runs = item.spec.get("parallelism")
    if admission is not None and admission.sets and not item.spec.get("suspend") and isinstance(runs, int):
        # Who lets pods go, or needs fewer from now on, gives their quota back.
        most = min(runs, _left_to_run(item, runs))
        admission = replace(admission, sets=(_less(admission.sets[0], max(0, admission.sets[0].size - most)),))
    waits_for_checks = RESERVATION in item.annotations
    return Workload(
        item.key,
        item.uid,
        item.labels[LOCAL_QUEUE],
        replace(shape, priority=priority, podsets=asks),
        item.created,
        count,
        over=over,
        deleting=item.deleting,
        admission=admission,
        since=item.annotations.get(SINCE, ""),
        told=told_of(item.status, waits_for_checks),
        let_in=not waits_for_checks,
        account=account,
        expected=sum(each.size for each in admission.sets) if admission is not None else count,
    )


def _left_to_run(item: Object, runs: int) -> int:
    """How many pods of the Job may run at a time from now on: no more than have to succeed yet, once one has.

    Source: Kueue's ``reclaimablePods`` of batch Jobs. One that is elastic asks for its size anew.
    """
    succeeded = _number(item.status.get("succeeded"), 0)
    if not succeeded or runs == 1 or item.annotations.get(ELASTIC) == "true":
        return runs
    return max(0, _number(item.spec.get("completions"), runs) - succeeded)


def gang_mark(item: Object, count: int) -> str:
    """What makes the pods of the Job a gang (see OF_JOB) that starts with ``count``, or with as many as are left to succeed."""
    completions = item.spec.get("completions")
    left = completions - _number(item.status.get("succeeded"), 0) if isinstance(completions, int) else count
    return f"Job/{item.name}/{max(1, min(count, left))}"


def waits_for_more(item: Object) -> bool:
    """Whether the Job was to start with more pods than it makes by now, so that those wait for others that never come.

    Once a pod has succeeded it has started.
    """
    annotations = ((item.spec.get("template") or {}).get("metadata") or {}).get("annotations") or {}
    mark, runs = str(annotations.get(OF_JOB) or ""), item.spec.get("parallelism")
    if mark.count("/") != 2 or item.spec.get("suspend") or not isinstance(runs, int):
        return False
    makes = min(runs, _number(item.spec.get("completions"), runs))
    return not _number(item.status.get("succeeded"), 0) and makes < _number(mark.rpartition("/")[2], 0)


def wanted_parallelism(item: Object) -> int:
    """How many pods of the Job would run at a time if it had its way."""
    wanted = _number(item.annotations.get(PARALLELISM), _number(item.spec.get("parallelism"), 1))
    completions = item.spec.get("completions")
    return min(wanted, completions) if isinstance(completions, int) else wanted


class OwnShapes:
    """Remembers the shape for a list of pod sets, which all versions of a Workload share.

    The list is kept beside its answer, so that its identity stays its own.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int, Shape, int]] = {}

    def of(self, spec: Manifest, priority: int) -> tuple[Shape, int]:
        """The shape of a Workload's spec, and how many pods it is of."""
        listed = spec.get("podSets")
        known = self._known.get(id(listed))
        if known is not None and known[0] is listed and known[1] == priority:
            return known[2], known[3]
        sets = read_parts(listed, constraints_of)
        shape, count = _shape(sets, priority), sum(each.size for each in sets)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[id(listed)] = (listed, priority, shape, count)
        return shape, count


_KEPT = 65_536


def read_own(item: Object, priorities: Mapping[str, int], account: Account, shapes: OwnShapes) -> Workload:
    """The workload of a Workload object that stands for itself."""
    spec, status, annotations = item.spec, item.status, item.annotations
    shape, count = shapes.of(spec, _priority(spec, priorities))
    admission = read_admission(annotations)
    if admission is not None and "reclaimablePods" in status:
        admission = _without_reclaimed(admission, status["reclaimablePods"] or ())
    waits_for_checks = RESERVATION in annotations
    return Workload(
        item.key,
        item.uid,
        str(spec.get("queueName") or ""),
        shape,
        item.created,
        count,
        over=has_condition(status, "Finished"),
        deleting=item.deleting,
        admission=admission,
        since=annotations.get(SINCE, ""),
        told=told_of(status, waits_for_checks),
        let_in=not waits_for_checks,
        account=account,
        expected=0,
    )


def is_own(key: Key) -> bool:
    return key.kind == WORKLOAD


def _shape(sets: tuple[WorkPart, ...], priority: int) -> Shape:
    total: dict[str, int] = {}
    for item in sets:
        for name, amount in item.asked(item.size):
            total[name] = total.get(name, 0) + amount
    constraints = Constraints(sets[0].constraints) if sets else Constraints()
    return Shape(priority, tuple(sorted(total.items())), constraints, sets=sets)


def _without_reclaimed(admission: Admission, listed: Any) -> Admission:
    """What is still held when pods that are done with have given their part back."""
    given = {str(item.get("name")): _number(item.get("count"), 0) for item in listed}
    if not given or not admission.sets:
        return admission
    sets = tuple(_less(item, given.get(item.name, 0)) for item in admission.sets)
    return replace(admission, sets=sets)


def _less(item: SetGrant, gone: int) -> SetGrant:
    left = max(0, item.size - gone)
    amounts = tuple((name, amount * left // item.size if item.size else 0) for name, amount in item.amounts)
    return SetGrant(item.name, left, item.flavors, amounts)


def _priority(spec: Manifest, priorities: Mapping[str, int]) -> int:
    given = spec.get("priority")
    if isinstance(given, int):
        return given
    named = (spec.get("priorityClassRef") or {}).get("name") or spec.get("priorityClassName") or ""
    return priorities.get(str(named), 0)


def _number(value: Any, default: int) -> int:
    if isinstance(value, bool):
        return default
    try:
        return max(0, int(value))
    except (TypeError, ValueError):
        return default
