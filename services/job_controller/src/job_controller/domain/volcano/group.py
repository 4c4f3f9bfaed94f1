"""The PodGroup of a Volcano Job: what the job asks its queue and the scheduler for, as one gang."""

from job_controller.domain.reconcile import View
from job_controller.domain.volcano.census import PARTITION, TASK
from job_controller.domain.volcano.ownership import owned
from job_controller.domain.volcano.spec import JobSpec, Task
from kube import Key, Manifest, Object
from kube.last_applied import without_last_applied
from kube.resource_quotas import minimum_counts
from kube.running_estimates import ESTIMATE
from kube.runtime_classes import completed
from resources import Amounts, QuantityError, add, format_amounts, parse_amounts, times


def group_manifest(job: Object, spec: JobSpec, view: View) -> Manifest:
    """The PodGroup ``<job>-<uid>``; the job's labels and annotations are its own, too."""
    annotations = without_last_applied(job.annotations)
    if spec.running_estimate:
        annotations.setdefault(ESTIMATE, spec.running_estimate)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": owned(job, f"{job.name}-{job.uid}", labels=job.labels, annotations=annotations),
        "spec": _spec(spec, view),
    }


def group_patch(group: Object, job: Object, spec: JobSpec, view: View) -> Manifest | None:
    """The change that brings the PodGroup to what the job asks for now; None when it is there."""
    wanted = _spec(spec, view)
    patch: Manifest = {}
    for name, value in wanted.items():
        before = group.spec.get(name)
        if name == "minResources" and _same_amounts(before, value):
            continue
        if before != value:
            gone = {key: None for key in before if key not in value} if isinstance(before, dict) else {}
            patch[name] = {**value, **gone} if isinstance(value, dict) else value
    return {"spec": patch} if patch else None


def _spec(spec: JobSpec, view: View) -> Manifest:
    result: Manifest = {
        "minMember": _members(spec),
        "minTaskMember": {task.name: _minimum(task) for task in spec.tasks},
        "queue": spec.queue,
    }
    if spec.priority_class:
        result["priorityClassName"] = spec.priority_class
    if (least := min_resources(spec, view)) is not None:
        result["minResources"] = format_amounts(least)
    if spec.topology:
        result["networkTopology"] = spec.topology
    if partitions := [_sub_group(task) for task in spec.tasks if task.partition]:
        result["subGroupPolicy"] = partitions
    return result


def _minimum(task: Task) -> int:
    """How many pods of a task the gang cannot start without: none where they are made only once others run."""
    return 0 if task.depends_on else task.minimum


def _members(spec: JobSpec) -> int:
    """How many pods have to start together: no more than are made before the first of them runs."""
    return min(spec.minimum, sum(task.replicas for task in spec.tasks if not task.depends_on))


def min_resources(spec: JobSpec, view: View) -> Amounts | None:
    """What the minimum of the job asks for, tasks of higher priority first; None when a quantity is none."""
    first = [task for task in spec.tasks if not task.depends_on]
    tasks = sorted(first, key=lambda task: -_priority(task, spec, view))
    minima, members = {task.name: task.minimum for task in tasks}, _members(spec)
    if members < sum(minima.values()):
        minima = dict.fromkeys(minima, 0)
    left = members - sum(minima.values())
    for task in tasks:
        more = min(left, task.replicas - minima[task.name])
        minima[task.name] += more
        left -= more
    total: Amounts = {}
    try:
        for task in tasks:
            total = add(total, times(minimum_counts(completed(task.pod_spec, view.get)), minima[task.name]))
    except QuantityError:
        return None
    return total


def _priority(task: Task, spec: JobSpec, view: View) -> int:
    name = task.pod_spec.get("priorityClassName") or spec.priority_class
    found = view.get(Key("PriorityClass.scheduling.k8s.io", "", str(name))) if name else None
    return int(found.body.get("value") or 0) if found else 0


def _sub_group(task: Task) -> Manifest:
    """One sub-group for each partition of the task: pods of the task that share their partition's id."""
    partition = task.partition
    assert partition is not None, "only a task with a partition policy has sub-groups"
    policy: Manifest = {
        "name": task.name,
        "subGroupSize": partition.size,
        "minSubGroups": 0 if task.depends_on else partition.minimum,
        "labelSelector": {"matchLabels": {TASK: task.name}},
        "matchLabelKeys": [PARTITION],
    }
    return {**policy, "networkTopology": partition.topology} if partition.topology else policy


def _same_amounts(left: Manifest | None, right: Manifest | None) -> bool:
    try:
        return parse_amounts(left) == parse_amounts(right)
    except QuantityError:
        return left == right
