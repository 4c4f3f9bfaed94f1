"""Suspend, resume and scale: what they mean for each kind, as a change that a user could have applied."""

import uuid
from collections.abc import Callable

from kube import Key, Manifest, Object, api_version_of, find_kind, merge

VOLCANO_JOB = "Job.batch.volcano.sh"
JOB_SET = "JobSet.jobset.x-k8s.io"
_RUN_POLICY = tuple(
    f"{kind}.kubeflow.org" for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
)
_SUSPEND = (
    "Job.batch",
    "CronJob.batch",
    "CronJob.batch.volcano.sh",
    JOB_SET,
    "TrainJob.trainer.kubeflow.org",
)
# Kind → the part of its spec that says how many there are.
_COUNTS: dict[str, Callable[[int], Manifest]] = {
    **dict.fromkeys(("Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps"), lambda count: {"replicas": count}),
    "Job.batch": lambda count: {"parallelism": count},
    "TrainJob.trainer.kubeflow.org": lambda count: {"trainer": {"numNodes": count}},
}
_REPLICA_SPECS = {
    "TFJob.kubeflow.org": "tfReplicaSpecs",
    "PyTorchJob.kubeflow.org": "pytorchReplicaSpecs",
    "XGBoostJob.kubeflow.org": "xgbReplicaSpecs",
    "PaddleJob.kubeflow.org": "paddleReplicaSpecs",
    "JAXJob.kubeflow.org": "jaxReplicaSpecs",
    "MPIJob.kubeflow.org": "mpiReplicaSpecs",
}
_LEADERS = ("Master", "Chief", "Launcher")
"""Replica types of which there is one."""
_ENDS = ("Completed", "Complete", "Succeeded", "Failed", "Terminated")


class NotPossible(ValueError):
    """The kind has no such operation, or the object no such task; the text says what there is."""


def suspend(item: Object, *, suspended: bool) -> Manifest:
    """The manifest to apply so that ``item`` is suspended or resumed. Raises NotPossible."""
    if item.kind == VOLCANO_JOB:
        return _command(item, "AbortJob" if suspended else "ResumeJob")
    if item.kind in _RUN_POLICY:
        return _patched(item, {"runPolicy": {"suspend": suspended}})
    if item.kind in _SUSPEND:
        return _patched(item, {"suspend": suspended})
    raise NotPossible(f"{item.key}: objects of this kind cannot be suspended or resumed; jobs can")


def scale(item: Object, task: str, replicas: int) -> Manifest:
    """The manifest to apply so that ``task`` of ``item`` has so many replicas. Raises NotPossible."""
    if ended := _ended_as(item):
        raise NotPossible(f"{item.key} has ended ({ended}): there is nothing to scale; delete it and create it anew")
    if item.kind == VOLCANO_JOB:
        return _scaled_job(item, task, replicas)
    if item.kind == JOB_SET:
        jobs = item.spec.get("replicatedJobs") or []
        chosen = _chosen(item, task, [one["name"] for one in jobs])
        scaled = [{**one, "replicas": replicas} if one["name"] == chosen else one for one in jobs]
        return _patched(item, {"replicatedJobs": scaled})
    if item.kind in _REPLICA_SPECS:
        field = _REPLICA_SPECS[item.kind]
        names = list(item.spec.get(field) or {})
        workers = [name for name in names if name not in _LEADERS]
        chosen = workers[0] if not task and len(workers) == 1 else _chosen(item, task, names)
        return _patched(item, {field: {chosen: {"replicas": replicas}}})
    if item.kind in _COUNTS:
        if task:
            raise NotPossible(f"{item.key} has no tasks; leave {task!r} out")
        return _patched(item, _COUNTS[item.kind](replicas))
    known = (VOLCANO_JOB, JOB_SET, *_REPLICA_SPECS, *_COUNTS)
    kinds = ", ".join(dict.fromkeys(kind.partition(".")[0] for kind in known))
    raise NotPossible(f"{item.key}: objects of this kind have no replicas to scale; {kinds} have")


def _ended_as(item: Object) -> str:
    """The phase or condition that says that the job is over; "" while it is not."""
    phase = str((item.status.get("state") or {}).get("phase") or "")
    held = [str(one.get("type")) for one in item.status.get("conditions") or () if one.get("status") == "True"]
    return next((word for word in (phase, *held) if word in _ENDS), "")


def _scaled_job(item: Object, task: str, replicas: int) -> Manifest:
    tasks = item.spec.get("tasks") or []
    chosen = _chosen(item, task, [one["name"] for one in tasks])
    scaled = [_scaled_task(one, replicas) if one["name"] == chosen else one for one in tasks]
    before, after = (sum(int(one.get("minAvailable", 0)) for one in some) for some in (tasks, scaled))
    least = max(1, int(item.spec.get("minAvailable", 0)) + after - before)
    least = min(least, sum(int(one["replicas"]) for one in scaled))
    return _patched(item, {"tasks": scaled, "minAvailable": least})


def _scaled_task(task: Manifest, replicas: int) -> Manifest:
    """A task whose minimum was all of its pods keeps it so; another minimum only gives way."""
    least, before = int(task.get("minAvailable", 0)), int(task.get("replicas", 1))
    return {**task, "replicas": replicas, "minAvailable": replicas if least == before else min(least, replicas)}


def _chosen(item: Object, task: str, names: list[str]) -> str:
    found = [name for name in names if name.lower() == task.lower()] if task else names
    if len(found) != 1:
        what = f"no task {task!r}" if task else "more than one task"
        raise NotPossible(f"{item.key} has {what}; name one of {', '.join(names)}")
    return found[0]


def _patched(item: Object, spec: Manifest) -> Manifest:
    manifest = item.manifest()
    manifest.pop("status", None)
    return {**manifest, "spec": merge(item.spec, spec)}


def _command(item: Object, action: str) -> Manifest:
    name = f"{item.name}-{action.lower()}-{uuid.uuid4().hex[:5]}"
    kind, _, _ = item.kind.partition(".")
    target = {"apiVersion": api_version_of(item.kind), "kind": kind, "name": item.name, "uid": item.uid}
    return {
        "apiVersion": api_version_of("Command.bus.volcano.sh"),
        "kind": "Command",
        "metadata": {"name": name, "namespace": item.namespace},
        "action": action,
        "target": target,
    }


def key_of_name(kind: str, namespace: str, name: str) -> Key:
    """The key that a user's words mean; raises kube.UnknownKind."""
    info = find_kind(kind)
    return Key(info.id, (namespace or "default") if info.namespaced else "", name)
