"""TFJob, PyTorchJob, XGBoostJob, PaddleJob and JAXJob: which pods they need now, and what has become of them.

Everything follows from the levels: the job, its group, its pods. The restarts that its backoffLimit counts are in its status
(``restarts``), written together with the deletion of the pod that failed, so that no restart is counted twice or forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from job_controller.domain.kubeflow import lifecycle
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.conditions import holds
from job_controller.domain.kubeflow.elastic_scaling import autoscaler_manifest
from job_controller.domain.kubeflow.gang import Role, ensure_group, group_key, group_spec, is_let_in
from job_controller.domain.kubeflow.members import pod_manifest, replica_selector, service_manifest
from job_controller.domain.kubeflow.replica_specs import (
    REPLICA_INDEX,
    REPLICA_TYPE,
    Framework,
    ReplicatedJob,
    member_name,
)
from job_controller.domain.kubeflow.replicated_jobs import ReplicatedJobs, Steps
from job_controller.domain.kubeflow.verdict import (
    Tally,
    has_succeeded,
    judge_failures,
    phase,
    restart_count,
    tally,
)
from job_controller.domain.reconcile import View
from kube import Key, Manifest, Object
from kube.words import counted, verb


@dataclass(frozen=True, slots=True)
class Children:
    """What a job owns."""

    members: Mapping[tuple[str, int], Object]
    services: Mapping[str, Object]
    group: Object | None
    keys: frozenset[Key]


def _children(job: ReplicatedJob, view: View) -> Children:
    owned = view.owned(job.source.uid)
    types = {kind.lower(): kind for kind in job.framework.types}
    members = {}
    for pod in (item for item in owned if item.kind == "Pod"):
        kind, index = types.get(pod.labels.get(REPLICA_TYPE, "")), pod.labels.get(REPLICA_INDEX, "")
        if kind and index.isdigit():
            members[(kind, int(index))] = pod
    services = {item.name: item for item in owned if item.kind == "Service"}
    group = next((item for item in owned if item.key == group_key(job.source)), None)
    return Children(members, services, group, frozenset(item.key for item in owned))


def _suspend(changes: Changes, children: Children) -> None:
    lifecycle.note_created(changes)
    lifecycle.note_suspended(changes)
    for pod in children.members.values():
        changes.delete(pod)
    if children.group is not None:
        changes.delete(children.group)


def _drive(changes: Changes, job: ReplicatedJob, children: Children, view: View) -> None:
    lifecycle.note_created(changes)
    lifecycle.note_resumed(changes)
    if has_succeeded(job, children.members):
        lifecycle.note_succeeded(changes)
        return
    failure = judge_failures(job, children.members)
    if failure.reason:
        lifecycle.note_failed(changes, failure.reason)
    elif lifecycle.is_overdue(changes, job.policy):
        limit = job.policy.deadline_seconds
        lifecycle.note_failed(changes, f"it was active longer than its activeDeadlineSeconds, {limit} s")
    else:
        _restart(changes, job, failure.retry)
        _scale_in(changes, job, children)
        _provide(changes, job, children, view)
        _note_progress(changes, job, children)


def _restart(changes: Changes, job: ReplicatedJob, failed: tuple[Object, ...]) -> None:
    """Remove failed pods, to be made again, and count them with the restarts that the node made in them."""
    if not failed:
        return
    for pod in failed:
        changes.delete(pod)
    restarts = int(changes.status.get("restarts") or 0) + sum(1 + restart_count(pod) for pod in failed)
    changes.set_status({"restarts": restarts})
    limit = job.policy.backoff_limit
    of = "" if limit is None else f" of {limit}"
    names = ", ".join(pod.name for pod in failed)
    lifecycle.note_restarting(changes, f"{job.title} is restarting: failed pods {names} (restart {restarts}{of}).")


def _scale_in(changes: Changes, job: ReplicatedJob, children: Children) -> None:
    """Remove the pods of the highest indexes that there are too many of; the others go on."""
    for (kind, index), pod in sorted(children.members.items()):
        if index < job.count_of(kind):
            continue
        changes.delete(pod)
        service = children.services.get(pod.name)
        if service is not None:
            changes.delete(service)
        changes.say(
            "PodsDropped", "ScaledIn", f"{job.title} has {counted(job.count_of(kind), 'replica')} of {kind} now"
        )


def _provide(changes: Changes, job: ReplicatedJob, children: Children, view: View) -> None:
    """Keep the group as the job wants it, and once its queue has let it in, make all pods that are missing together."""
    _keep_group(changes, job, children, view)
    autoscaler = autoscaler_manifest(job)
    if autoscaler is not None and _autoscaler_key(job) not in children.keys:
        changes.create(autoscaler)
    if not is_let_in(children.group):
        return
    lifecycle.note_started(changes)
    missing = [(replica, index) for replica, index in job.members() if (replica.type, index) not in children.members]
    for replica, index in missing:
        if member_name(job.name, replica.type, index) not in children.services:
            changes.create(service_manifest(job, replica, index))
        changes.create(pod_manifest(job, replica, index))
    if missing:
        changes.say(
            "PodsWanted",
            "PodsMissing",
            f"{job.title} needs {counted(job.total, 'pod')}; {len(missing)} of them {verb(len(missing))} made",
        )


def _keep_group(changes: Changes, job: ReplicatedJob, children: Children, view: View) -> None:
    roles = [Role(replica.count, replica.pod_spec) for replica in job.replicas]
    smallest = job.total
    if job.elastic is not None:
        smallest += min(job.elastic[0], job.count_of("Worker")) - job.count_of("Worker")
    spec = group_spec(job.source, job.policy.scheduling, roles, smallest, view)
    ensure_group(changes, children.group, spec, job.title)


def _note_progress(changes: Changes, job: ReplicatedJob, children: Children) -> None:
    tallies = {replica.type: tally(children.members, replica) for replica in job.replicas}
    deciding = tallies[job.deciding.type] if job.deciding else Tally()
    here = sum(each.active + each.succeeded for each in tallies.values())
    if deciding.active > 0 and (here == job.total or not holds(changes.status, lifecycle.RESTARTING)):
        lifecycle.note_running(changes)
    elif deciding.active == 0 and deciding.succeeded == 0:
        lifecycle.note_waiting(
            changes, f"{job.title} waits: {here} of {counted(job.total, 'pod')} {verb(here, 'runs', 'run')}."
        )


def _clean_up(changes: Changes, job: ReplicatedJob, children: Children) -> None:
    """What the policy says of the pods of a finished job; its group goes when nothing of it runs any more."""
    for pod in children.members.values():
        ended = phase(pod) in ("Succeeded", "Failed")
        # A pod that has no node yet has no log to keep, and must not start any more.
        unbound = not ended and not pod.spec.get("nodeName")
        if job.policy.clean_pods == "All" or unbound or (job.policy.clean_pods == "Running" and not ended):
            changes.delete(pod)
            service = children.services.get(pod.name)
            if service is not None:
                changes.delete(service)
    live = any(phase(pod) not in ("Succeeded", "Failed") for pod in children.members.values())
    if children.group is not None and not live:
        changes.delete(children.group)
    if changes.mutations:
        changes.say(
            "PodsCleanedUp",
            "CleanPodPolicy",
            f"{job.title} is finished; its clean pod policy is {job.policy.clean_pods}",
        )


def _count_replicas(changes: Changes, job: ReplicatedJob, children: Children) -> None:
    """Count pods by type. Those of a finished job that are gone still count as what they came to."""
    finished = lifecycle.is_finished(changes.job.status)
    before = changes.status.get("replicaStatuses") or {}
    for replica in job.replicas:
        now, old = tally(children.members, replica), before.get(replica.type) or {}
        counts: Manifest = {
            "active": now.active,
            "succeeded": max(now.succeeded, old.get("succeeded") or 0) if finished else now.succeeded,
            "failed": max(now.failed, old.get("failed") or 0) if finished else now.failed,
            "selector": ",".join(f"{name}={value}" for name, value in sorted(replica_selector(job, replica).items())),
        }
        changes.set_status({"replicaStatuses": {replica.type: counts}})


def _autoscaler_key(job: ReplicatedJob) -> Key:
    return Key("HorizontalPodAutoscaler.autoscaling", job.namespace, job.name)


def training_jobs(framework: Framework) -> ReplicatedJobs[Children]:
    """One of the v1 kinds."""
    return ReplicatedJobs(framework, Steps(_children, _suspend, _drive, _clean_up, _count_replicas))
