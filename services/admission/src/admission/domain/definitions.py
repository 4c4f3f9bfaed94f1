"""CustomResourceDefinitions of the kinds that Tidegate takes, made from the shapes by which it reads them.

Structural schemas (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/): where a
shape knows all of its fields, `kubectl apply` tells of a field that it does not know; where it does not, all are kept. Rules that
need more than one field are admission's, which knows the defaults too.
"""

from typing import Any

from admission.domain.rules import RULES
from admission.domain.shapes import Fields, Idle, ListOf, MapOf, Scalar, Shape
from kube import KINDS, Manifest
from kube.kinds import KindInfo

_ANYTHING: Manifest = {"x-kubernetes-preserve-unknown-fields": True}
_ANY_MAPPING: Manifest = {"type": "object", **_ANYTHING}
_SCALARS: dict[Scalar, Manifest] = {
    Scalar.TEXT: {"type": "string"},
    Scalar.WHOLE: {"type": "integer", "format": "int64"},
    Scalar.TRUTH: {"type": "boolean"},
    Scalar.NUMBER: {"type": "number"},
    Scalar.AMOUNT: {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    Scalar.EITHER: {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    Scalar.ANYTHING: _ANYTHING,
}

UNRULED = (
    "NodeMetric.slo.koordinator.sh",
    "NodeSLO.slo.koordinator.sh",
    "Numatopology.nodeinfo.volcano.sh",
    "NodeResourceTopology.topology.node.k8s.io",
)
"""Kinds that are read or written by services and that no user writes by hand: their shape is not ours to say."""

DEFINED = (*(kind for kind in RULES if "." in kind and not KINDS[kind].is_builtin), *UNRULED)
"""The kinds that a cluster does not have by itself."""

Column = tuple[str, str, str]
"""Its name, its type, and the path of its field."""

_STATE: Column = ("State", "string", ".status.conditions[-1:].type")
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Job.batch.volcano.sh": (
        ("Status", "string", ".status.state.phase"),
        ("MinAvailable", "integer", ".spec.minAvailable"),
        ("Runnings", "integer", ".status.running"),
        ("Queue", "string", ".spec.queue"),
    ),
    "CronJob.batch.volcano.sh": (
        ("Schedule", "string", ".spec.schedule"),
        ("Suspend", "boolean", ".spec.suspend"),
        ("LastScheduleTime", "date", ".status.lastScheduleTime"),
    ),
    "PodGroup.scheduling.volcano.sh": (
        ("Status", "string", ".status.phase"),
        ("MinMember", "integer", ".spec.minMember"),
        ("Runnings", "integer", ".status.running"),
        ("Queue", "string", ".spec.queue"),
        ("Why", "string", ".status.conditions[?(@.type=='Unschedulable')].message"),
    ),
    "Queue.scheduling.volcano.sh": (
        ("Parent", "string", ".spec.parent"),
        ("Weight", "integer", ".spec.weight"),
        ("State", "string", ".status.state"),
        ("Pending", "integer", ".status.pending"),
        ("Running", "integer", ".status.running"),
    ),
    "JobFlow.flow.volcano.sh": (("Status", "string", ".status.state.phase"),),
    "HyperNode.topology.volcano.sh": (("Tier", "integer", ".spec.tier"),),
    "ClusterQueue.kueue.x-k8s.io": (
        ("Cohort", "string", ".spec.cohortName"),
        ("Pending Workloads", "integer", ".status.pendingWorkloads"),
        ("Admitted Workloads", "integer", ".status.admittedWorkloads"),
    ),
    "LocalQueue.kueue.x-k8s.io": (
        ("ClusterQueue", "string", ".spec.clusterQueue"),
        ("Pending Workloads", "integer", ".status.pendingWorkloads"),
        ("Admitted Workloads", "integer", ".status.admittedWorkloads"),
    ),
    "Workload.kueue.x-k8s.io": (
        ("Queue", "string", ".spec.queueName"),
        ("Reserved in", "string", ".status.admission.clusterQueue"),
        ("Admitted", "string", ".status.conditions[?(@.type=='Admitted')].status"),
        ("Finished", "string", ".status.conditions[?(@.type=='Finished')].status"),
    ),
    "PodMigrationJob.scheduling.koordinator.sh": (
        ("Phase", "string", ".status.phase"),
        ("Status", "string", ".status.status"),
        ("Node", "string", ".status.nodeName"),
        ("Pod", "string", ".spec.podRef.name"),
        ("Why", "string", ".status.message"),
    ),
    "Reservation.scheduling.koordinator.sh": (
        ("Phase", "string", ".status.phase"),
        ("Node", "string", ".status.nodeName"),
        ("TTL", "string", ".spec.ttl"),
    ),
    "Recommendation.analysis.koordinator.sh": (
        ("Containers", "string", ".status.podStatus.containerStatuses[*].containerName"),
        ("Updated", "date", ".status.updateTime"),
    ),
    "JobSet.jobset.x-k8s.io": (("TerminalState", "string", ".status.terminalState"),),
    **{
        f"{kind}.kubeflow.org": (_STATE,)
        for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
    },
    "TrainJob.trainer.kubeflow.org": (_STATE,),
}
_AGE: Column = ("Age", "date", ".metadata.creationTimestamp")
_SCALED = {
    "PyTorchJob.kubeflow.org": (".spec.pytorchReplicaSpecs.Worker.replicas", ".status.replicaStatuses.Worker.active"),
}
"""By kind, where its number of replicas is said and told: what `kubectl scale` changes."""


def definition(kind: str) -> Manifest:
    """The CustomResourceDefinition of the kind with group ``kind``."""
    info = KINDS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{info.plural}.{info.group}",
            "annotations": _approval(info),
            "labels": {"app.kubernetes.io/part-of": "tidegate"},
        },
        "spec": {
            "group": info.group,
            "names": {
                "kind": info.kind,
                "listKind": f"{info.kind}List",
                "plural": info.plural,
                "singular": info.kind.lower(),
                "shortNames": list(info.short),
            },
            "scope": "Namespaced" if info.namespaced else "Cluster",
            "versions": [_version(info)],
        },
    }


def _version(info: KindInfo) -> Manifest:
    subresources: Manifest = {"status": {}}
    if scaled := _SCALED.get(info.id):
        subresources["scale"] = {"specReplicasPath": scaled[0], "statusReplicasPath": scaled[1]}
    return {
        "name": info.version,
        "served": True,
        "storage": True,
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in (*_COLUMNS.get(info.id, ()), _AGE)],
        "schema": {"openAPIV3Schema": _top(info)},
    }


def _column(column: Column) -> Manifest:
    name, kind, path = column
    return {"name": name, "type": kind, "jsonPath": path}


def _approval(info: KindInfo) -> Manifest:
    """Groups of Kubernetes itself are guarded: a definition in one has to say that its own project may have it."""
    guarded = info.group.endswith((".k8s.io", ".kubernetes.io"))
    return {"api-approved.kubernetes.io": "unapproved, upstream's definition under its own name"} if guarded else {}


def _top(info: KindInfo) -> Manifest:
    known = RULES[info.id].shape if info.id in RULES else Fields({"spec": Fields({})})
    properties = {name: _schema(shape) for name, shape in known.known.items() if name not in ("metadata", "status")}
    properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {
        "type": "object",
        "description": f"{info.kind} of {info.api_version}",
        "properties": {**properties, "status": _ANY_MAPPING},
        **({} if known.closed else _ANYTHING),
    }


def _schema(shape: Shape) -> Any:
    if isinstance(shape, Scalar):
        return _SCALARS[shape]
    if isinstance(shape, Idle):
        return {**_schema(shape.shape), "description": "It is kept, and nobody acts on it."}
    if isinstance(shape, ListOf):
        return {"type": "array", "items": _schema(shape.item)}
    if isinstance(shape, MapOf):
        return {"type": "object", "additionalProperties": _schema(shape.item)}
    properties = {name: _schema(part) for name, part in shape.known.items()}
    schema: Manifest = {"type": "object"}
    if properties:
        schema["properties"] = properties
    return schema if shape.closed else {**schema, **_ANYTHING}
