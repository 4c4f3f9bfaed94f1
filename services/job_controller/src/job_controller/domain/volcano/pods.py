"""The pods of a Volcano Job. What all pods of a task have in common is made once and shared by their manifests."""

from job_controller.domain.volcano.census import INDEX, PARTITION, RETRY, TASK, VERSION
from job_controller.domain.volcano.plugins import for_pod, for_task
from job_controller.domain.volcano.plugins.injection import Injection, inject
from job_controller.domain.volcano.pods_labels import JOB_NAME, JOB_NAMESPACE
from job_controller.domain.volcano.spec import JobSpec, Task
from job_controller.domain.volcano.volumes import pod_volumes
from kube import Manifest, Object
from kube.owners import owner_reference

GROUP_NAME = "scheduling.k8s.io/group-name"

INHERITED = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
"""Annotations of the job that its pods carry, too."""


class PodForm:
    """The form that the pods of one task are made from."""

    def __init__(self, job: Object, spec: JobSpec, task: Task, version: int, retries: int) -> None:
        self.job, self.spec, self.task = job, spec, task
        self._owners = [owner_reference(job)]
        self._labels, self._annotations = self._common(version, retries)
        self._spec = inject(self._base(), for_task(job, spec, task))

    def pod(self, index: int) -> Manifest:
        """The manifest of the pod ``<job>-<task>-<index>``."""
        name = pod_name(self.job, self.task, index)
        own = for_pod(self.job, self.spec, self.task, index)
        labels = {**self._labels, INDEX: str(index)}
        if self.task.partition:
            labels[PARTITION] = str(index // self.task.partition.size)
        metadata: Manifest = {
            "name": name,
            "namespace": self.job.namespace,
            "labels": labels,
            "annotations": {**self._annotations, INDEX: str(index), **own.annotations},
            "ownerReferences": self._owners,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": inject(self._spec, own)}

    def _base(self) -> Manifest:
        """The template's pod spec with what the job says for all its pods."""
        base = dict(self.task.pod_spec)
        if self.spec.scheduler:
            base.setdefault("schedulerName", self.spec.scheduler)
        if self.spec.priority_class:
            base.setdefault("priorityClassName", self.spec.priority_class)
        volumes, mounts = pod_volumes(self.job, self.spec.volumes)
        return inject(base, Injection(volumes=tuple(volumes), mounts=tuple(mounts)))

    def _common(self, version: int, retries: int) -> tuple[dict[str, str], dict[str, str]]:
        job, task = self.job, self.task
        template = task.template.get("metadata") or {}
        marks = {
            JOB_NAME: job.name,
            TASK: task.name,
            VERSION: str(version),
            RETRY: str(retries),
            "volcano.sh/queue-name": self.spec.queue,
        }
        labels = {**(template.get("labels") or {}), **marks, JOB_NAMESPACE: job.namespace}
        annotations = {name: job.annotations[name] for name in INHERITED if name in job.annotations}
        annotations |= {**(template.get("annotations") or {}), **marks}
        annotations[GROUP_NAME] = f"{job.name}-{job.uid}"
        annotations["volcano.sh/template-uid"] = f"{job.name}-{task.name}"
        if task.topology_policy != "none":
            annotations["volcano.sh/numa-topology-policy"] = task.topology_policy
        return labels, annotations


def pod_name(job: Object, task: Task, index: int) -> str:
    """``<job>-<task>-<index>``."""
    return f"{job.name}-{task.name}-{index}"
