"""What belongs to an object: what it owns, the pods that work for it, and what runs on a node or in a queue."""

from typing import TYPE_CHECKING

from kube import Manifest, kind_id

if TYPE_CHECKING:
    from tidegate.client import SyncClient

_VOLCANO_JOB = "Job.batch.volcano.sh"
_POD_GROUP = "PodGroup.scheduling.volcano.sh"
_GROUP_NAME = "scheduling.k8s.io/group-name"
_CHILDREN: dict[str, tuple[str, ...]] = {
    _VOLCANO_JOB: (_POD_GROUP, "Service"),
    "CronJob.batch.volcano.sh": (_VOLCANO_JOB,),
    "MPIJob.kubeflow.org": (_POD_GROUP, "Service", "ConfigMap", "Job.batch"),
    "JobFlow.flow.volcano.sh": (_VOLCANO_JOB,),
    "CronJob.batch": ("Job.batch",),
    "Deployment.apps": ("ReplicaSet.apps",),
    "TrainJob.trainer.kubeflow.org": ("JobSet.jobset.x-k8s.io", _POD_GROUP),
    "JobSet.jobset.x-k8s.io": ("Job.batch", "Service"),
    "InferenceGraph.serving.kserve.io": ("Deployment.apps", "HorizontalPodAutoscaler.autoscaling", "Service"),
    "InferenceService.serving.kserve.io": (
        "Deployment.apps",
        "HorizontalPodAutoscaler.autoscaling",
        "ScaledObject.keda.sh",
        "Service",
        "HTTPRoute.gateway.networking.k8s.io",
        "Ingress.networking.k8s.io",
    ),
}
_KUBEFLOW = (_POD_GROUP, "Service", "ConfigMap")
_QUEUED: dict[str, tuple[str, str]] = {
    "Queue.scheduling.volcano.sh": (_POD_GROUP, "spec.queue"),
    "LocalQueue.kueue.x-k8s.io": ("Workload.kueue.x-k8s.io", "spec.queueName"),
    "ClusterQueue.kueue.x-k8s.io": ("LocalQueue.kueue.x-k8s.io", "spec.clusterQueue"),
}
"""What is in a queue, and the field that names the queue."""
_CHILDLESS = (
    "Pod",
    "ConfigMap",
    "Secret",
    "Service",
    "Namespace",
    "PriorityClass.scheduling.k8s.io",
    "Event",
)


def belonging_to(client: "SyncClient", manifest: Manifest) -> list[Manifest]:
    """The objects to list beside one: its children, the pods that a node still has, what is in a queue."""
    kind, name = kind_of(manifest), manifest["metadata"]["name"]
    if kind == "Node":
        return client.list("Pod", field_selector=f"spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed")
    if kind in _QUEUED:
        member, field = _QUEUED[kind]
        return client.list(member, manifest["metadata"].get("namespace", ""), field_selector=f"{field}={name}")
    if kind == _POD_GROUP:
        return _members(client, manifest)
    if kind in _CHILDLESS or not manifest["metadata"].get("namespace"):
        return []
    return _owned(client, [manifest], (*_children(kind), "Pod"))


def pods_of(client: "SyncClient", manifest: Manifest) -> list[Manifest]:
    """The pods that work for an object, through whatever stands between them."""
    kind = kind_of(manifest)
    if kind == "Pod":
        return [manifest]
    if kind in (_POD_GROUP, "Node"):
        return belonging_to(client, manifest)
    pods: list[Manifest] = []
    level = [manifest]
    while level:
        kinds = tuple(dict.fromkeys(child for one in level for child in _children(kind_of(one))))
        found = _owned(client, level, (*kinds, "Pod"))
        pods += [one for one in found if kind_of(one) == "Pod"]
        level = [one for one in found if kind_of(one) in _CHILDREN or kind_of(one) in _OWNS_PODS]
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


_OWNS_PODS = ("Job.batch", "ReplicaSet.apps")


def _children(kind: str) -> tuple[str, ...]:
    return _CHILDREN.get(kind) or (_KUBEFLOW if kind.endswith("Job.kubeflow.org") else ())


def _members(client: "SyncClient", group: Manifest) -> list[Manifest]:
    name, namespace = group["metadata"]["name"], group["metadata"].get("namespace", "")
    pods = client.list("Pod", namespace)
    return [pod for pod in pods if (pod["metadata"].get("annotations") or {}).get(_GROUP_NAME) == name]


def _owned(client: "SyncClient", owners: list[Manifest], kinds: tuple[str, ...]) -> list[Manifest]:
    uids = {owner["metadata"].get("uid") for owner in owners}
    namespace = owners[0]["metadata"].get("namespace", "")
    candidates = [one for kind in kinds for one in client.list(kind, namespace)]
    return [
        one
        for one in candidates
        if uids & {reference.get("uid") for reference in one["metadata"].get("ownerReferences") or ()}
    ]


def kind_of(manifest: Manifest) -> str:
    """The kind with its group."""
    return kind_id(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
