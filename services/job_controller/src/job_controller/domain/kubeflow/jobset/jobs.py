"""The Jobs of a JobSet as they should be, with the labels by which each of their pods knows its place."""

import hashlib

from job_controller.domain.kubeflow.changes import owned_metadata
from job_controller.domain.kubeflow.gang import carried_annotations, carried_labels, gang_annotations
from job_controller.domain.kubeflow.jobset.exclusive import exclusive_affinity
from job_controller.domain.kubeflow.jobset.group import gang_members, group_of
from job_controller.domain.kubeflow.jobset.spec import PREFIX, JobSetSpec, ReplicatedJobSpec
from job_controller.domain.kubeflow.members import headless_service_spec
from kube import Manifest, Object

ATTEMPT = f"{PREFIX}restart-attempt"
JOB_ATTEMPT = f"{PREFIX}job-restart-attempt"
REPLICATED_JOB = f"{PREFIX}replicatedjob-name"
JOB_INDEX = f"{PREFIX}job-index"
SET_NAME = f"{PREFIX}jobset-name"


def job_name(source: Object, replicated: ReplicatedJobSpec, index: int) -> str:
    return f"{source.name}-{replicated.name}-{index}"


def job_manifest(
    source: Object, spec: JobSetSpec, replicated: ReplicatedJobSpec, index: int, attempt: tuple[int, int], suspend: bool
) -> Manifest:
    """The Job ``index`` of ``replicated``. ``attempt``: restarts of the set, and of this Job alone."""
    name = job_name(source, replicated, index)
    place = _place(source, spec, replicated, index, attempt)
    given = replicated.template.get("metadata") or {}
    metadata = owned_metadata(
        source, name, {**(given.get("labels") or {}), **place}, {**(given.get("annotations") or {}), **place}
    )
    job_spec: Manifest = {"parallelism": 1, "completionMode": "Indexed", **replicated.job_spec, "suspend": suspend}
    job_spec.setdefault("completions", job_spec["parallelism"])
    job_spec["template"] = pod_template(source, spec, replicated, index, attempt)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec}


def pod_template(
    source: Object, spec: JobSetSpec, replicated: ReplicatedJobSpec, index: int, attempt: tuple[int, int]
) -> Manifest:
    """The template of the Job's pods: their place in the set, their name in its service, their gang."""
    template = replicated.job_spec.get("template") or {}
    given = template.get("metadata") or {}
    place = _place(source, spec, replicated, index, attempt)
    group = group_of(source)
    annotations = {**carried_annotations(source), **(given.get("annotations") or {}), **place}
    if group and replicated in gang_members(spec.jobs):
        annotations |= gang_annotations(group, replicated.name)
    pod_spec: Manifest = {"restartPolicy": "OnFailure", **(template.get("spec") or {})}
    if spec.subdomain:
        pod_spec["subdomain"] = spec.subdomain
    return {
        "metadata": {
            **given,
            "labels": {**carried_labels(source), **(given.get("labels") or {}), **place},
            "annotations": annotations,
        },
        "spec": exclusive_affinity(source, replicated, place[f"{PREFIX}job-key"], pod_spec),
    }


def service_manifest(source: Object, spec: JobSetSpec) -> Manifest:
    """The headless service in which every pod of the set has its name."""
    labels = {SET_NAME: source.name}
    service = headless_service_spec(labels, [])
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_metadata(source, spec.subdomain, labels, {}),
        "spec": {**service, "publishNotReadyAddresses": spec.publish_not_ready},
    }


def _place(
    source: Object, spec: JobSetSpec, replicated: ReplicatedJobSpec, index: int, attempt: tuple[int, int]
) -> dict[str, str]:
    """Labels, and annotations of the same names, of a Job and its pods."""
    before = spec.jobs[: spec.jobs.index(replicated)]
    fellows = [other for other in spec.jobs if other.group == replicated.group]
    ahead = [other for other in before if other.group == replicated.group]
    full_name = f"{source.namespace}/{job_name(source, replicated, index)}"
    place: dict[str, object] = {
        "jobset-name": source.name,
        "jobset-uid": source.uid,
        "replicatedjob-name": replicated.name,
        "replicatedjob-replicas": replicated.replicas,
        "global-replicas": sum(other.replicas for other in spec.jobs),
        "job-index": index,
        "job-global-index": sum(other.replicas for other in before) + index,
        "job-key": hashlib.sha1(full_name.encode(), usedforsecurity=False).hexdigest(),
        "group-name": replicated.group,
        "group-replicas": sum(other.replicas for other in fellows),
        "job-group-index": sum(other.replicas for other in ahead) + index,
        "restart-attempt": attempt[0],
    }
    if attempt[1]:
        place["job-restart-attempt"] = attempt[1]
    if spec.coordinator:
        place["coordinator"] = spec.coordinator
    return {PREFIX + name: str(value) for name, value in place.items()}
