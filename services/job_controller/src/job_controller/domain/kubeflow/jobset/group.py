"""The gang of a JobSet.

A set whose Jobs wait for each other cannot start whole. So those that others wait for to complete stand outside the gang, and
those that wait for others to be ready, or for their turn, join it later: the rest is what starts together.
"""

from job_controller.domain.kubeflow.batch_jobs import pods_wanted
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.gang import GROUP_NAME, POD_GROUP, Role, group_manifest, group_spec
from job_controller.domain.kubeflow.jobset.spec import JobSetSpec, ReplicatedJobSpec
from job_controller.domain.kubeflow.run_policy import SchedulingPolicy
from job_controller.domain.reconcile import View
from kube import Key, Manifest, Object

LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"


def group_of(job_set: Object) -> str:
    """The pod group of the set: the one that it names; one of its own name in a LocalQueue, where it gets quota as a whole."""
    named = job_set.annotations.get(GROUP_NAME)
    return named or (job_set.name if LOCAL_QUEUE in job_set.labels else "")


def gang_members(jobs: tuple[ReplicatedJobSpec, ...]) -> list[ReplicatedJobSpec]:
    """The replicated jobs whose pods are of the gang."""
    awaited = {name for job in jobs for name, status in job.depends_on if status == "Complete"}
    return [job for job in jobs if job.name not in awaited]


def gang_roles(jobs: tuple[ReplicatedJobSpec, ...], in_order: bool) -> list[Role]:
    """Those of the gang that start together."""
    members = gang_members(jobs)
    names = {job.name for job in members}
    first = [job for job in members if names.isdisjoint(name for name, _ in job.depends_on)]
    together = first[:1] if in_order else first
    return [Role(job.replicas * pods_wanted(job.job_spec), _pod_spec(job)) for job in together]


def own_group(changes: Changes, spec: JobSetSpec, view: View) -> None:
    """Make the group of the set, unless there is one of that name already."""
    name = group_of(changes.job)
    if view.get(Key(POD_GROUP, changes.job.namespace, name)) is not None:
        return
    roles = gang_roles(spec.jobs, spec.in_order)
    group = group_spec(changes.job, SchedulingPolicy(), roles, sum(role.count for role in roles), view)
    manifest = group_manifest(changes.job, group)
    changes.create({**manifest, "metadata": {**manifest["metadata"], "name": name}})


def _pod_spec(job: ReplicatedJobSpec) -> Manifest:
    spec: Manifest = (job.job_spec.get("template") or {}).get("spec") or {}
    return spec
