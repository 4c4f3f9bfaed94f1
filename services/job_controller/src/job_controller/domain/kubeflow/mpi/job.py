"""MPIJob: the workers and the launcher start as one gang; the launcher's end is the job's.

With ``launcherCreationPolicy: WaitForWorkersReady`` the workers are the gang, and the launcher joins it when all are ready.
A worker that fails is made again where its restart policy is OnFailure; else it is left, as an elastic program goes on
without it and any other makes the launcher fail.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from job_controller.domain.kubeflow import lifecycle
from job_controller.domain.kubeflow.batch_jobs import finished_as, job_failure
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.gang import Role, ensure_group, group_key, group_spec, is_let_in
from job_controller.domain.kubeflow.mpi.pods import launcher_manifest, worker_manifest
from job_controller.domain.kubeflow.mpi.settings import MPI, MpiSettings, launcher_key, read_settings, worker_names
from job_controller.domain.kubeflow.mpi.surroundings import (
    config_data,
    config_manifest,
    job_labels,
    secret_manifest,
    service_manifest,
)
from job_controller.domain.kubeflow.replica_specs import JOB_ROLE, ReplicatedJob
from job_controller.domain.kubeflow.replicated_jobs import ReplicatedJobs, Steps
from job_controller.domain.kubeflow.verdict import phase, restart_count
from job_controller.domain.reconcile import View
from kube import Key, Manifest, Object
from kube.words import counted


@dataclass(frozen=True, slots=True)
class Parts:
    """What an MPIJob owns: workers by name, the launcher's Job and its pods, its group, the keys of all."""

    workers: Mapping[str, Object]
    launcher: Object | None
    launcher_pods: tuple[Object, ...]
    group: Object | None
    keys: Mapping[Key, Object]


def _parts(job: ReplicatedJob, view: View) -> Parts:
    owned = {item.key: item for item in view.owned(job.source.uid)}
    launcher = owned.get(launcher_key(job))
    pods = tuple(pod for pod in view.owned(launcher.uid) if pod.kind == "Pod") if launcher else ()
    workers = {item.name: item for item in owned.values() if item.kind == "Pod"}
    return Parts(workers, launcher, pods, owned.get(group_key(job.source)), owned)


def _suspend(changes: Changes, parts: Parts) -> None:
    lifecycle.note_created(changes)
    lifecycle.note_suspended(changes)
    for item in (*parts.workers.values(), parts.launcher, parts.group):
        if item is not None:
            changes.delete(item)


def _drive(changes: Changes, job: ReplicatedJob, parts: Parts, view: View) -> None:
    lifecycle.note_created(changes)
    lifecycle.note_resumed(changes)
    outcome = finished_as(parts.launcher)
    evicted = [pod.name for pod in parts.workers.values() if _is_evicted(pod)]
    if outcome == "Complete":
        lifecycle.note_succeeded(changes)
    elif outcome == "Failed" and parts.launcher is not None:
        lifecycle.note_failed(changes, f"launcher {job_failure(parts.launcher).words}")
    elif evicted:
        lifecycle.note_failed(changes, f"workers {', '.join(evicted)} were evicted by their nodes", "MPIJobEvicted")
    elif lifecycle.is_overdue(changes, job.policy):
        limit = job.policy.deadline_seconds
        lifecycle.note_failed(changes, f"it was active longer than its activeDeadlineSeconds, {limit} s")
    else:
        _keep_running(changes, job, parts, view)


def _keep_running(changes: Changes, job: ReplicatedJob, parts: Parts, view: View) -> None:
    workers = job.of_type("Worker")
    failed = [pod for pod in parts.workers.values() if phase(pod) == "Failed" and not pod.deleting]
    if failed and workers is not None and workers.restart_policy == "OnFailure":
        _restart(changes, job, parts, failed)
    if lifecycle.is_finished(changes.status):
        return
    settings = read_settings(job)
    _provide_surroundings(changes, job, settings, parts)
    _provide_pods(changes, job, settings, parts, view)
    running = [pod for pod in parts.workers.values() if _runs(pod)]
    if len(running) == job.count_of("Worker") and any(_runs(pod) for pod in parts.launcher_pods):
        lifecycle.note_running(changes)


def _restart(changes: Changes, job: ReplicatedJob, parts: Parts, failed: list[Object]) -> None:
    """Remove failed workers, to be made again, unless that would be one restart too many."""
    before = int(changes.status.get("restarts") or 0)
    of_launcher = int(parts.launcher.status.get("failed") or 0) if parts.launcher else 0
    limit = job.policy.backoff_limit
    names = ", ".join(pod.name for pod in failed)
    if limit is not None and before + of_launcher + len(failed) > limit:
        used = before + of_launcher
        lifecycle.note_failed(
            changes,
            f"it has been restarted {counted(used, 'time')} and its backoffLimit is {limit}; failed again: {names}",
        )
        return
    for pod in failed:
        changes.delete(pod)
    restarts = before + sum(1 + restart_count(pod) for pod in failed)
    changes.set_status({"restarts": restarts})
    lifecycle.note_restarting(changes, f"{job.title} is restarting: failed pods {names} (restart {restarts}).")


def _provide_surroundings(changes: Changes, job: ReplicatedJob, settings: MpiSettings, parts: Parts) -> None:
    data = config_data(job, settings, [name for name, pod in sorted(parts.workers.items()) if _runs(pod)])
    config = parts.keys.get(Key("ConfigMap", job.namespace, f"{job.name}-config"))
    if config is None:
        changes.create(config_manifest(job, data))
    elif config.body.get("data") != data:
        changes.patch(config, {"data": data})
    if Key("Service", job.namespace, job.name) not in parts.keys:
        changes.create(service_manifest(job))
    if Key("Secret", job.namespace, f"{job.name}-ssh") not in parts.keys:
        changes.create(secret_manifest(job))


def _provide_pods(changes: Changes, job: ReplicatedJob, settings: MpiSettings, parts: Parts, view: View) -> None:
    """Once the queue has let the gang in, all workers that are missing, and the launcher when its time has come."""
    order = reversed(job.replicas) if settings.launcher_waits else job.replicas
    roles = [Role(replica.count, replica.pod_spec) for replica in order]
    smallest = job.count_of("Worker") + (0 if settings.launcher_waits else 1)
    spec = group_spec(job.source, job.policy.scheduling, roles, smallest, view)
    ensure_group(changes, parts.group, spec, job.title)
    wanted = worker_names(job)
    for name in sorted(parts.workers.keys() - set(wanted)):
        changes.delete(parts.workers[name])
    workers, launcher = job.of_type("Worker"), job.of_type("Launcher")
    if not is_let_in(parts.group):
        return
    lifecycle.note_started(changes)
    missing = [index for index, name in enumerate(wanted) if name not in parts.workers]
    for index in missing:
        if workers is not None:
            changes.create(worker_manifest(job, settings, workers, index))
    ready = all(name in parts.workers and _is_ready(parts.workers[name]) for name in wanted)
    launches = launcher is not None and parts.launcher is None and (ready or not settings.launcher_waits)
    if launches and launcher is not None:
        changes.create(launcher_manifest(job, settings, launcher))
    if missing or launches:
        also = " and the launcher" if launches else ""
        changes.say("PodsWanted", "PodsMissing", f"{job.title}: {len(missing)} workers{also} are made")


def _clean_up(changes: Changes, job: ReplicatedJob, parts: Parts) -> None:
    """Stop the launcher, and treat workers as the policy says; the group goes when nothing of it runs any more."""
    if parts.launcher is not None and not finished_as(parts.launcher) and not parts.launcher.spec.get("suspend"):
        changes.patch(parts.launcher, {"spec": {"suspend": True}})
    for pod in parts.workers.values():
        ended = phase(pod) in ("Succeeded", "Failed")
        unbound = not ended and not pod.spec.get("nodeName")
        if job.policy.clean_pods == "All" or unbound or (job.policy.clean_pods == "Running" and not ended):
            changes.delete(pod)
    everyone = (*parts.workers.values(), *parts.launcher_pods)
    if parts.group is not None and all(phase(pod) in ("Succeeded", "Failed") for pod in everyone):
        changes.delete(parts.group)
    if changes.mutations:
        changes.say(
            "PodsCleanedUp",
            "CleanPodPolicy",
            f"{job.title} is finished; its clean pod policy is {job.policy.clean_pods}",
        )


def _count_replicas(changes: Changes, job: ReplicatedJob, parts: Parts) -> None:
    """Count workers by phase, and the launcher by what has become of its Job."""
    launcher = parts.launcher.status if parts.launcher else {}
    outcome = finished_as(parts.launcher)
    counts: Manifest = {
        "Launcher": {
            "active": sum(_runs(pod) for pod in parts.launcher_pods),
            "succeeded": 1 if outcome == "Complete" else 0,
            "failed": int(launcher.get("failed") or 0),
        }
    }
    if job.of_type("Worker") is not None:
        phases = [phase(pod) for pod in parts.workers.values() if not pod.deleting]
        counts["Worker"] = {
            "active": phases.count("Running"),
            "succeeded": phases.count("Succeeded"),
            "failed": phases.count("Failed"),
        }
    for role, count in counts.items():
        selector = {**job_labels(job), JOB_ROLE: role.lower()}
        count["selector"] = ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    changes.set_status({"replicaStatuses": counts})


def _runs(pod: Object) -> bool:
    return phase(pod) == "Running" and not pod.deleting


def _is_ready(pod: Object) -> bool:
    conditions = pod.status.get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _is_evicted(pod: Object) -> bool:
    return phase(pod) == "Failed" and pod.status.get("reason") == "Evicted"


def mpi_jobs() -> ReplicatedJobs[Parts]:
    """MPIJob of ``kubeflow.org/v2beta1``."""
    return ReplicatedJobs(MPI, Steps(_parts, _suspend, _drive, _clean_up, _count_replicas))
