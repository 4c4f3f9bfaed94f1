"""The order in which manifests go in: what others name goes before them."""

from collections.abc import Sequence

from kube import Manifest, kind_id
from tidegate_cli.documents import Document

_FIRST = (
    ("Namespace",),
    ("PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io"),
    ("WorkloadPriorityClass.kueue.x-k8s.io", "StorageClass.storage.k8s.io"),
    ("DeviceClass.resource.k8s.io", "ResourceFlavor.kueue.x-k8s.io", "Topology.kueue.x-k8s.io", "Node", "HyperNode.topology.volcano.sh"),
    ("Cohort.kueue.x-k8s.io", "AdmissionCheck.kueue.x-k8s.io"),
    ("Queue.scheduling.volcano.sh", "ClusterQueue.kueue.x-k8s.io", "ElasticQuota.scheduling.sigs.k8s.io"),
    ("LocalQueue.kueue.x-k8s.io", "ClusterColocationProfile.config.koordinator.sh"),
    ("ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota"),
    (
        "TrainingRuntime.trainer.kubeflow.org",
        "ClusterTrainingRuntime.trainer.kubeflow.org",
        "ServingRuntime.serving.kserve.io",
        "ClusterServingRuntime.serving.kserve.io",
        "JobTemplate.flow.volcano.sh",
        "PodGroup.scheduling.volcano.sh",
        "Service",
    ),
)  # fmt: skip
_RANKS = {kind: rank for rank, kinds in enumerate(_FIRST) for kind in kinds}
_PARENT_LABEL = "quota.scheduling.koordinator.sh/parent"


def in_order(documents: Sequence[Document]) -> list[Document]:
    """``documents`` so that queues come before jobs and parents before children; else as they were."""
    parents = {_id(one.manifest): _parent(one.manifest) for one in documents}
    return sorted(documents, key=lambda one: (_rank(one.manifest), _depth(one.manifest, parents)))


def _rank(manifest: Manifest) -> int:
    return _RANKS.get(_kind(manifest), len(_FIRST))


def _depth(manifest: Manifest, parents: dict[tuple[str, str], str]) -> int:
    """How many of the queues above this one are among the documents."""
    kind, name = _id(manifest)
    seen: set[str] = set()
    while name and name not in seen and (kind, name) in parents:
        seen.add(name)
        name = parents[kind, name]
    return len(seen)


def _parent(manifest: Manifest) -> str:
    spec, labels = manifest.get("spec"), _metadata(manifest).get("labels")
    named = spec.get("parent") or spec.get("parentName") if isinstance(spec, dict) else None
    return str(named or (labels.get(_PARENT_LABEL) if isinstance(labels, dict) else None) or "")


def _id(manifest: Manifest) -> tuple[str, str]:
    return _kind(manifest), str(_metadata(manifest).get("name", ""))


def _kind(manifest: Manifest) -> str:
    return kind_id(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))


def _metadata(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
