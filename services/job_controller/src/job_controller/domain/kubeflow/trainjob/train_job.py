"""TrainJob: it keeps one JobSet and one gang, and ends as its JobSet ends.

A TrainJob that has ended never makes its JobSet again, whoever deletes it: the end is in the TrainJob's own status.
"""

from dataclasses import dataclass

from job_controller.domain.kubeflow.batch_jobs import BATCH_JOB, finished_as
from job_controller.domain.kubeflow.changes import Changes
from job_controller.domain.kubeflow.conditions import find_condition, first_holding, holds
from job_controller.domain.kubeflow.gang import ensure_group, group_key, group_spec
from job_controller.domain.kubeflow.jobset.group import gang_members, gang_roles
from job_controller.domain.kubeflow.jobset.spec import JOB_SET, JobSetSpec, read_job_set
from job_controller.domain.kubeflow.run_policy import SchedulingPolicy
from job_controller.domain.kubeflow.trainjob.mpi import hosts_manifest, hosts_name, keys_manifest, keys_name
from job_controller.domain.kubeflow.trainjob.runtime import TRAIN_JOB, Training, find_runtime, node_counts, runtime_key
from job_controller.domain.kubeflow.trainjob.template import job_set_manifest, with_gang
from job_controller.domain.reconcile import Actions, View
from kube import Event, Key, Manifest, Object, from_manifest, parse_time
from kube.words import counted

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
OWN_CONTROLLERS = ("", "trainer.kubeflow.org/trainjob-controller")


class TrainJobs:
    """TrainJob of ``trainer.kubeflow.org/v1alpha1``."""

    kind = TRAIN_JOB

    def observe(self, job: Object, event: Event, now: int) -> None:
        """Nothing to remember: the levels tell everything."""

    def forget(self, uid: str) -> None:
        """Nothing was remembered."""

    def reconcile(self, job: Object, view: View, now: int) -> Actions:
        """What should happen about the job now."""
        if job.deleting or (job.spec.get("managedBy") or "") not in OWN_CONTROLLERS:
            return Actions()
        changes = Changes(job, now)
        owned = {item.key: item for item in view.owned(job.uid)}
        parts = Parts(owned, owned.get(Key(JOB_SET, job.namespace, job.name)), owned.get(group_key(job)), view)
        if not first_holding(job.status, (COMPLETE, FAILED)):
            _take_over_outcome(changes, parts)
        if first_holding(changes.status, (COMPLETE, FAILED)):
            _release(changes, parts)
        elif _is_overdue(changes):
            _stop(changes, parts)
        else:
            _provide(changes, parts)
        return changes.actions()


@dataclass(frozen=True, slots=True)
class Parts:
    """What a TrainJob owns."""

    owned: dict[Key, Object]
    job_set: Object | None
    group: Object | None
    view: View


def _take_over_outcome(changes: Changes, parts: Parts) -> None:
    """The JobSet's end is the TrainJob's, with its reason; its counts are shown as they are."""
    if parts.job_set is None:
        return
    status = parts.job_set.status
    fields = ("name", "ready", "succeeded", "failed", "active", "suspended")
    counts = [{name: one.get(name, 0) for name in fields} for one in status.get("replicatedJobsStatus") or []]
    if counts:
        changes.set_status({"jobsStatus": counts})
    for of_set, of_job in (("Completed", COMPLETE), ("Failed", FAILED)):
        condition = find_condition(status, of_set)
        if condition and condition.get("status") == "True":
            reason, message = condition.get("reason") or of_set, condition.get("message") or ""
            changes.condition(of_job, True, reason, message)
            changes.say(f"TrainJob{of_job}d" if of_job == COMPLETE else "TrainJobFailed", reason, message)


def _provide(changes: Changes, parts: Parts) -> None:
    job = changes.job
    runtime = find_runtime(job, parts.view)
    suspend = bool(job.spec.get("suspend"))
    if runtime is not None:
        training = Training(job, runtime.spec)
        wanted = job_set_manifest(training, suspend=suspend)
        made = _standing(parts.job_set, training, wanted)
        replaced = made is None and parts.job_set is not None and not suspend and not parts.job_set.spec.get("suspend")
        if replaced and parts.job_set is not None:
            _replace(changes, training, parts.job_set)
        spec = read_job_set(made or from_manifest(wanted))
        _keep_gang(changes, spec, training.topology, parts, suspend)
        wanted = with_gang(wanted, job.name, {member.name for member in gang_members(spec.jobs)})
        if "mpi" in training.policy:
            _provide_mpi(changes, training, parts)
        if not replaced:
            _keep_job_set(changes, wanted, parts, suspend)
    elif parts.job_set is None:
        message = f"{runtime_key(job)}, the runtime of {job.key}, does not exist"
        changes.condition(FAILED, True, "TrainingRuntimeNotSupported", message)
        changes.say("TrainJobFailed", "TrainingRuntimeNotSupported", message)
        return
    else:
        _keep_without_runtime(changes, parts.job_set, parts, suspend)
    if suspend:
        changes.condition(SUSPENDED, True, "Suspended", "TrainJob is suspended")
    else:
        changes.condition(SUSPENDED, False, "Resumed", "TrainJob is resumed")


def _standing(job_set: Object | None, training: Training, wanted: Manifest) -> Object | None:
    """The JobSet that goes on as it was made; None where it stands still, or has not the nodes that the job asks for.

    What changes in the runtime does not touch a job that runs.
    """
    if job_set is None or job_set.spec.get("suspend"):
        return None
    if training.trainer.get("numNodes") is None:
        return job_set
    have, want = node_counts(job_set.spec), node_counts(wanted["spec"])
    return None if any(have[name] != want[name] for name in have.keys() & want.keys()) else job_set


def _replace(changes: Changes, training: Training, job_set: Object) -> None:
    """Another number of nodes begins anew: each node is told how many there are when it starts."""
    changes.delete(job_set)
    message = f"{changes.job.key} has {counted(training.nodes, 'node')} now; its job set is made anew and goes on from its checkpoint"
    changes.say("TrainJobResized", "NodesChanged", message)


def _keep_gang(changes: Changes, spec: JobSetSpec, topology: Manifest | None, parts: Parts, suspend: bool) -> None:
    """One gang of all pods that can start together; a suspended job asks its queue for nothing."""
    if suspend:
        if parts.group is not None:
            changes.delete(parts.group)
        return
    roles = gang_roles(spec.jobs, spec.in_order)
    group = group_spec(changes.job, SchedulingPolicy(), roles, sum(role.count for role in roles), parts.view)
    group |= {"networkTopology": topology} if topology else {}
    ensure_group(changes, parts.group, group, str(changes.job.key))


def _keep_job_set(changes: Changes, wanted: Manifest, parts: Parts, suspend: bool) -> None:
    if parts.job_set is None:
        changes.create(wanted)
        changes.say("JobSetCreated", "JobCreated", f"{changes.job.key} is a job set of its runtime's template now")
    elif bool(parts.job_set.spec.get("suspend")) != suspend:
        # What was patched into the runtime while the job stood still (node selectors, for instance) holds from now on.
        changes.patch(parts.job_set, {"spec": {"suspend": True} if suspend else wanted["spec"]})
        word = "Suspended" if suspend else "Resumed"
        changes.say(f"TrainJob{word}", word, f"{changes.job.key} is {word.lower()}")


def _keep_without_runtime(changes: Changes, job_set: Object, parts: Parts, suspend: bool) -> None:
    """The runtime was deleted under a running job: the JobSet that was made of it stands."""
    _keep_gang(changes, read_job_set(job_set), None, parts, suspend)
    if bool(job_set.spec.get("suspend")) != suspend:
        changes.patch(job_set, {"spec": {"suspend": suspend}})


def _provide_mpi(changes: Changes, training: Training, parts: Parts) -> None:
    namespace = training.job.namespace
    hosts, found = hosts_manifest(training), parts.owned.get(Key("ConfigMap", namespace, hosts_name(training)))
    if found is None:
        changes.create(hosts)
    elif found.body.get("data") != hosts["data"]:
        changes.patch(found, {"data": hosts["data"]})
    if Key("Secret", namespace, keys_name(training)) not in parts.owned:
        changes.create(keys_manifest(training))


def _is_overdue(changes: Changes) -> bool:
    """Whether the job has been active as long as it may be, since its creation or its last resumption."""
    job = changes.job
    seconds = job.spec.get("activeDeadlineSeconds")
    if not seconds or job.spec.get("suspend") or holds(job.status, SUSPENDED):
        return False
    resumed = find_condition(job.status, SUSPENDED)
    since = resumed["lastTransitionTime"] if resumed else job.created
    if not since:
        return False
    due = parse_time(since) + int(seconds) * 1000
    if due > changes.now:
        changes.wake(due)
    return due <= changes.now


def _stop(changes: Changes, parts: Parts) -> None:
    seconds = changes.job.spec["activeDeadlineSeconds"]
    message = f"TrainJob was active longer than its activeDeadlineSeconds, {seconds} s"
    changes.condition(FAILED, True, "DeadlineExceeded", message)
    changes.say("TrainJobFailed", "DeadlineExceeded", message)
    if parts.job_set is not None:
        changes.delete(parts.job_set)
    _release(changes, parts)


def _release(changes: Changes, parts: Parts) -> None:
    """The gang of a job that has ended goes when nothing of it runs any more."""
    owned = parts.view.owned(parts.job_set.uid) if parts.job_set else []
    running = [item for item in owned if item.kind == BATCH_JOB and not finished_as(item)]
    if parts.group is not None and not running:
        changes.delete(parts.group)
        changes.say(
            "GroupDeleted", "TrainJobFinished", f"{changes.job.key} is finished; its group is not needed any more"
        )
