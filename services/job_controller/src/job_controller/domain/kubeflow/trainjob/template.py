"""The JobSet of a TrainJob: the runtime's template with the job's own values, its environment and its gang laid in."""

from typing import Any

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.gang import carried_annotations, carried_labels, gang_annotations
from job_controller.domain.kubeflow.rendezvous.variables import variable, with_variables
from job_controller.domain.kubeflow.trainjob.environment import training_env
from job_controller.domain.kubeflow.trainjob.mpi import with_mpi, worker_nodes
from job_controller.domain.kubeflow.trainjob.patches import patched
from job_controller.domain.kubeflow.trainjob.runtime import (
    LAUNCHER,
    NODE,
    PORT,
    Training,
    is_trainer,
    job_spec,
    pod_spec,
    step_of,
)
from kube import Manifest
from kube.last_applied import without_last_applied

INITIALIZERS = {"dataset-initializer": "dataset", "model-initializer": "model"}


def job_set_manifest(training: Training, *, suspend: bool) -> Manifest:
    """The JobSet named as the TrainJob, which owns it; ``with_gang`` makes a gang of its pods."""
    job = training.job
    template = patched(_filled(training), job.spec.get("runtimePatches") or [])
    metadata = template.get("metadata") or {}
    annotations = without_last_applied(job.annotations)
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": owned_metadata(
            job,
            job.name,
            {**job.labels, **(metadata.get("labels") or {})},
            {**annotations, **(metadata.get("annotations") or {})},
        ),
        "spec": {**(template.get("spec") or {}), "suspend": suspend},
    }


def with_gang(manifest: Manifest, group: str, members: set[str]) -> Manifest:
    """The JobSet whose replicated jobs named in ``members`` make pods of the gang ``group``."""
    jobs = [
        _with_annotations(job, gang_annotations(group, job.get("name") or "")) if job.get("name") in members else job
        for job in manifest["spec"].get("replicatedJobs") or []
    ]
    return {**manifest, "spec": {**manifest["spec"], "replicatedJobs": jobs}}


def _filled(training: Training) -> Manifest:
    template = training.runtime.get("template") or {}
    jobs = [_filled_job(training, job) for job in training.replicated_jobs]
    return {**template, "spec": {**(template.get("spec") or {}), "replicatedJobs": jobs}}


def _filled_job(training: Training, replicated: Manifest) -> Manifest:
    """One replicated job with its number of pods and the values for its step."""
    name, step = replicated.get("name") or "", step_of(replicated)
    spec = pod_spec(replicated)
    containers = [_filled_container(training, replicated, container) for container in spec.get("containers") or []]
    spec = {**spec, "containers": containers}
    if "mpi" in training.policy:
        spec = with_mpi(training, name, spec)
    whole = job_spec(replicated)
    pods = _pods(training, name, step)
    if pods is not None:
        whole = {**whole, "parallelism": pods, "completions": pods}
        replicated = {**replicated, "replicas": 1}
    pod_template = {**(whole.get("template") or {}), "spec": spec}
    template = {**(replicated.get("template") or {}), "spec": {**whole, "template": pod_template}}
    filled = {**replicated, "template": template}
    return _with_labels(_with_annotations(filled, carried_annotations(training.job)), carried_labels(training.job))


def _pods(training: Training, name: str, step: str) -> int | None:
    """How many pods the replicated job has; None where the template's own number stands."""
    if "mpi" in training.policy:
        return worker_nodes(training) if name == NODE else 1 if step == "trainer" else None
    return training.nodes if step == "trainer" else None


def _filled_container(training: Training, replicated: Manifest, container: Manifest) -> Manifest:
    step, name = step_of(replicated), container.get("name")
    if step in INITIALIZERS and name == step:
        return _initializer(container, (training.job.spec.get("initializer") or {}).get(INITIALIZERS[step]) or {})
    if name not in (NODE, LAUNCHER) or (name == LAUNCHER and not training.launcher_is_node):
        return container
    if is_trainer(replicated):
        return _trainer(training, container)
    # Workers of an MPI runtime run what their template says, in the image and with the resources of the job.
    return {**container, **_given(training.trainer, image="image", resourcesPerNode="resources")}


def _trainer(training: Training, container: Manifest) -> Manifest:
    values = _given(training.trainer, image="image", command="command", args="args", resourcesPerNode="resources")
    filled = with_variables({**container, **values}, training.trainer.get("env") or [])
    filled = with_variables(filled, training_env(training))
    ports: list[Any] = filled.get("ports") or []
    if any(port.get("containerPort") == PORT for port in ports) or not training.policy.keys() & {
        "torch",
        "jax",
        "xgboost",
    }:
        return filled
    return {**filled, "ports": [*ports, {"containerPort": PORT}]}


def _initializer(container: Manifest, given: Manifest) -> Manifest:
    env = [variable("STORAGE_URI", given["storageUri"])] if given.get("storageUri") else []
    filled = with_variables(with_variables(container, env), given.get("env") or [])
    secret = (given.get("secretRef") or {}).get("name")
    if not secret:
        return filled
    return {**filled, "envFrom": [*(filled.get("envFrom") or []), {"secretRef": {"name": secret}}]}


def _given(trainer: Manifest, **fields: str) -> Manifest:
    """The fields that the trainer gives, under their names in a container."""
    return {target: trainer[source] for source, target in fields.items() if trainer.get(source) is not None}


def _with_annotations(replicated: Manifest, annotations: dict[str, str]) -> Manifest:
    return _with_pod_metadata(replicated, "annotations", annotations)


def _with_labels(replicated: Manifest, labels: dict[str, str]) -> Manifest:
    return _with_pod_metadata(replicated, "labels", labels)


def _with_pod_metadata(replicated: Manifest, part: str, entries: dict[str, str]) -> Manifest:
    """The replicated job with ``entries`` in the ``part`` of its pod template's metadata."""
    if not entries:
        return replicated
    template, spec = replicated["template"], job_spec(replicated)
    pods = spec.get("template") or {}
    metadata = pods.get("metadata") or {}
    metadata = {**metadata, part: {**(metadata.get(part) or {}), **entries}}
    return {**replicated, "template": {**template, "spec": {**spec, "template": {**pods, "metadata": metadata}}}}
