"""What cluster_gateway and the definitions' Job may do at an API server: the table behind the charts' `files/rules.yaml`.

A test runs the services under exactly these rights, and compares them with what they asked for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from admission.domain.definitions import DEFINED
from cluster_gateway.main import NOT_READ
from kube import KINDS

Rule = dict[str, list[str]]

READ = ("list", "watch")
VOLCANO, KUBEFLOW, KUEUE = "scheduling.volcano.sh", "kubeflow.org", "kueue.x-k8s.io"
TRAINING = tuple(
    f"{name}.{KUBEFLOW}" for name in ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
)
JOBS = ("Job.batch.volcano.sh", *TRAINING, "TrainJob.trainer.kubeflow.org", "JobSet.jobset.x-k8s.io")
FLOWS = ("CronJob.batch.volcano.sh", "JobFlow.flow.volcano.sh", "JobTemplate.flow.volcano.sh")
GATEWAYS = "gateway.networking.k8s.io"
SCALED = ("ReplicaSet.apps", "StatefulSet.apps")
SERVING = ("InferenceService.serving.kserve.io", "InferenceGraph.serving.kserve.io", "ScaledObject.keda.sh")

WRITES: dict[str, tuple[str, ...]] = {
    "Pod": ("create", "get", "patch", "delete"),
    "ConfigMap": ("create", "get", "patch"),
    "Service": ("create", "get", "patch", "delete"),
    "Deployment.apps": ("create", "get", "patch", "delete"),
    "PersistentVolumeClaim": ("create", "get", "patch"),
    "NetworkPolicy.networking.k8s.io": ("create", "get"),
    "HorizontalPodAutoscaler.autoscaling": ("create", "get", "patch", "delete"),
    "ScaledObject.keda.sh": ("create", "get", "patch", "delete"),
    f"HTTPRoute.{GATEWAYS}": ("create", "get", "patch", "delete"),
    "Ingress.networking.k8s.io": ("create", "get", "patch", "delete"),
    "Job.batch": ("create", "get", "patch", "delete"),
    "Event": ("create", "patch"),
    f"PodGroup.{VOLCANO}": ("create", "get", "patch", "delete"),
    f"Queue.{VOLCANO}": ("create", "get", "patch"),
    "Job.batch.volcano.sh": ("create", "get", "delete"),
    "JobSet.jobset.x-k8s.io": ("create", "get", "patch", "delete"),
    f"Workload.{KUEUE}": ("create", "get", "patch", "delete"),
    "Command.bus.volcano.sh": ("get", "delete"),
    # A volume that is there is kept for a claim; a claim of devices cannot be deleted while it has some.
    "PersistentVolume": ("get", "patch"),
    "ResourceClaim.resource.k8s.io": ("get", "patch"),
    "PodMigrationJob.scheduling.koordinator.sh": ("create", "get", "patch", "delete"),
    "Reservation.scheduling.koordinator.sh": ("create", "get", "delete"),
    "NodeMetric.slo.koordinator.sh": ("create", "patch"),
    "Device.scheduling.koordinator.sh": ("create", "patch"),
    "NodeSLO.slo.koordinator.sh": ("create", "get", "patch"),
    "MetricReading.tidegate.dev": ("create", "get", "patch", "update", "delete"),
    "Node": ("get", "patch"),
    "NodeResourceTopology.topology.node.k8s.io": ("get", "patch"),
    **dict.fromkeys(TRAINING, ("get", "delete")),
    # Their size goes by the subresource.
    **dict.fromkeys(SCALED, ("get",)),
}
"""What services make, change and delete, and are told of again when an answer was lost."""

STATUS = (
    "PodGroup.scheduling.k8s.io",
    *("Node", "Pod", "Job.batch", "ResourceClaim.resource.k8s.io", *JOBS, *FLOWS),
    *(f"PodGroup.{VOLCANO}", f"Queue.{VOLCANO}", "ElasticQuota.scheduling.sigs.k8s.io"),
    *("PodMigrationJob.scheduling.koordinator.sh", "Reservation.scheduling.koordinator.sh"),
    "NodeMetric.slo.koordinator.sh",
    "Recommendation.analysis.koordinator.sh",
    *(f"{name}.{KUEUE}" for name in ("Workload", "ClusterQueue", "LocalQueue", "Cohort")),
    *(*SERVING, "HorizontalPodAutoscaler.autoscaling"),
)
OWNERS = (*JOBS, *FLOWS, *SERVING)
"""Of what is made, these are the owners: where the cluster guards owners, `update` of their finalizers is asked for."""

SECRETS = ("create", "get", *READ)
ACTING: tuple[tuple[str, str], ...] = (
    *(("", name) for name in ("users", "groups", "serviceaccounts")),
    ("authentication.k8s.io", "uids"),
    *(
        ("authentication.k8s.io", f"userextras/authentication.kubernetes.io/{name}")
        for name in ("credential-id", "node-name", "node-uid", "pod-name", "pod-uid")
    ),
)
"""What is asked about when a user's write is carried to the API server in the user's name."""


def gateway_rules() -> dict[str, dict[str, list[Rule]]]:
    """The rules of cluster_gateway, by the part of its work that needs them."""
    rights: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind in frozenset(KINDS) - NOT_READ - {"Secret"}:
        rights[_place(kind)].update(READ)
    for kind, verbs in WRITES.items():
        rights[_place(kind)].update(verbs)
    for kind in STATUS:
        rights[_place(kind, "/status")].add("patch")
        # Where somebody wrote meanwhile, the change is laid over what is there now.
        rights[_place(kind)].add("get")
    for kind in OWNERS:
        rights[_place(kind, "/finalizers")].add("update")
    for kind in ("Deployment.apps", *SCALED):
        rights[_place(kind, "/scale")].add("patch")
    # No subresource: the API server asks about it where devices are allocated (since Kubernetes 1.36).
    rights["resource.k8s.io", "resourceclaims/binding"].add("patch")
    rights["", "pods/binding"].add("create")
    rights["", "pods/eviction"].add("create")
    return {
        "always": {"cluster": list(_gathered(rights.items()))},
        "secrets": {"cluster": list(_gathered([(("", "secrets"), set(SECRETS))]))},
        "agents": {"cluster": list(_gathered([(("authentication.k8s.io", "tokenreviews"), {"create"})]))},
        "writesForUsers": {"cluster": list(_gathered((place, {"impersonate"}) for place in ACTING))},
    }


def definition_rules() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The rules of the Job that defines kinds: it makes what is not there, and changes those of its own."""
    group, plural = "apiextensions.k8s.io", "customresourcedefinitions"
    names = sorted(f"{KINDS[kind].plural}.{KINDS[kind].group}" for kind in DEFINED)
    return {
        "definitions": {
            "cluster": [
                {"apiGroups": [group], "resources": [plural], "verbs": ["create"]},
                {"apiGroups": [group], "resources": [plural], "resourceNames": names, "verbs": ["get", "update"]},
            ]
        },
        "servingRuntimes": {
            "cluster": list(_gathered([(_place("ClusterServingRuntime.serving.kserve.io"), {"create"})])),
        },
    }


def _place(kind: str, part: str = "") -> tuple[str, str]:
    return KINDS[kind].group, KINDS[kind].plural + part


def _gathered(rights: Iterable[tuple[tuple[str, str], set[str]]]) -> Iterator[Rule]:
    """One rule for all resources of a group that have the same verbs."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), verbs in rights:
        alike[group, tuple(sorted(verbs))].append(resource)
    for (group, verbs), resources in sorted(alike.items()):
        yield {"apiGroups": [group], "resources": sorted(resources), "verbs": list(verbs)}
