"""Every field has one decider: which service may do what to which kinds, and to which of their fields.

Anything else is refused. What a service makes or deletes it decides as a whole, so only changes are looked at by field.
"""

from collections.abc import Iterator

from kube import Manifest, Verb

_POD = "Pod"
_GROUP = "PodGroup.scheduling.volcano.sh"
_KUBERNETES_GROUP = "PodGroup.scheduling.k8s.io"
_QUEUE = "Queue.scheduling.volcano.sh"
_COMMAND = "Command.bus.volcano.sh"
_KUEUE = ("ClusterQueue.kueue.x-k8s.io", "LocalQueue.kueue.x-k8s.io", "Cohort.kueue.x-k8s.io")
_WORKLOAD = "Workload.kueue.x-k8s.io"
_JOB = "Job.batch"
_QUOTA = "ElasticQuota.scheduling.sigs.k8s.io"
_CLAIM = "PersistentVolumeClaim"
_RESERVATION = "Reservation.scheduling.koordinator.sh"
_DEVICES = "ResourceClaim.resource.k8s.io"
_MIGRATION = "PodMigrationJob.scheduling.koordinator.sh"
_NODE = "Node"
_SLO = "NodeSLO.slo.koordinator.sh"
_RECOMMENDATION = "Recommendation.analysis.koordinator.sh"
_TOPOLOGY = "NodeResourceTopology.topology.node.k8s.io"
_CONFIG = "ConfigMap"
_AUTOSCALER = "HorizontalPodAutoscaler.autoscaling"
_SCALED = "ScaledObject.keda.sh"
_INFERENCE = "InferenceService.serving.kserve.io"
_GRAPH = "InferenceGraph.serving.kserve.io"
_DEPLOYMENT = "Deployment.apps"
_SERVICE = "Service"
_READING = "MetricReading.tidegate.dev"
_ROUTES = ("HTTPRoute.gateway.networking.k8s.io", "Ingress.networking.k8s.io")
_SCALABLE = (_DEPLOYMENT, "ReplicaSet.apps", "StatefulSet.apps")
_ANY = "*"

_MAY: dict[str, dict[Verb, tuple[str, ...]]] = {
    "job_controller": {
        Verb.CREATE: (_ANY,),
        Verb.PATCH: (_ANY,),
        Verb.STATUS: (_ANY,),
        Verb.DELETE: (_ANY,),
    },
    "queue_manager": {
        Verb.CREATE: (_WORKLOAD,),
        Verb.STATUS: (_GROUP, _QUEUE, _POD, _JOB, _QUOTA, _WORKLOAD, *_KUEUE),
        Verb.PATCH: (_GROUP, _QUEUE, _POD, _JOB, _WORKLOAD),
        Verb.DELETE: (_COMMAND, _WORKLOAD),
    },
    "gang_scheduler": {
        Verb.BIND: (_POD,),
        Verb.EVICT: (_POD,),
        Verb.STATUS: (_POD, _GROUP, _KUBERNETES_GROUP, _RESERVATION, _DEVICES),
        Verb.PATCH: (_CLAIM, _POD),
        Verb.DELETE: (_RESERVATION,),
    },
    "descheduler": {
        Verb.CREATE: (_MIGRATION, _RESERVATION),
        Verb.STATUS: (_MIGRATION,),
        Verb.PATCH: (_MIGRATION, _POD),
        Verb.DELETE: (_MIGRATION, _RESERVATION, _POD),
        Verb.EVICT: (_POD,),
    },
    "slo_controller": {
        Verb.EVICT: (_POD,),
        Verb.CREATE: (_SLO,),
        Verb.PATCH: (_SLO, _NODE, _TOPOLOGY, _CONFIG),
        Verb.STATUS: (_NODE, _RECOMMENDATION),
    },
    "inference_autoscaler": {
        Verb.CREATE: (_AUTOSCALER, _SCALED, _DEPLOYMENT, _SERVICE, _READING, *_ROUTES),
        Verb.PATCH: (*_SCALABLE, _AUTOSCALER, _SCALED, _SERVICE, _READING, *_ROUTES),
        Verb.STATUS: (_AUTOSCALER, _SCALED, _INFERENCE, _GRAPH),
        Verb.DELETE: (_AUTOSCALER, _SCALED, _DEPLOYMENT, _SERVICE, _READING, *_ROUTES),
    },
}

_NEVER_BY_JOBS = (_NODE, _QUEUE, _SLO)
_STATUS_OF_OTHERS = frozenset(
    [
        _POD,
        _GROUP,
        _KUBERNETES_GROUP,
        _QUOTA,
        _DEVICES,
        *_KUEUE,
        "Job.batch",
        "CronJob.batch",
        "NodeMetric.slo.koordinator.sh",
        _RECOMMENDATION,
        _AUTOSCALER,
        _SCALED,
        _INFERENCE,
        _GRAPH,
    ]
    + [f"{kind}.apps" for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")]
)
"""Of whatever job_controller makes, the status is another's."""

_QUOTA_MARKS = tuple(
    f"metadata.annotations.tidegate.dev/{name}" for name in ("admission", "reservation", "quota-since", "revoked")
)
_COUNTS = ("running", "succeeded", "failed")
_CONDITION, _PHASE = "conditions.", "phase."
_AMOUNTS = ("capacity", "allocatable")
_LENT = tuple(
    f"{part}.kubernetes.io/{band}-{name}"
    for part in _AMOUNTS
    for band in ("batch", "mid")
    for name in ("cpu", "memory")
)

_ONLY: dict[tuple[str, Verb, str], tuple[str, ...]] = {
    ("queue_manager", Verb.PATCH, _POD): _QUOTA_MARKS,
    ("queue_manager", Verb.PATCH, _GROUP): _QUOTA_MARKS,
    ("queue_manager", Verb.PATCH, _QUEUE): ("metadata.annotations.volcano.sh/closed-by-parent",),
    ("queue_manager", Verb.STATUS, _POD): ("conditions.QuotaReserved", "conditions.Admitted"),
    ("queue_manager", Verb.STATUS, _GROUP): ("phase.Pending", "phase.Inqueue", "conditions.Admitted"),
    ("slo_controller", Verb.STATUS, _NODE): (*_LENT, "conditions.ResourcesLent"),
    ("slo_controller", Verb.PATCH, _NODE): tuple(
        f"metadata.annotations.node.koordinator.sh/{name}"
        for name in ("cpu-normalization-ratio", "resource-amplification-ratio", "originExtendedAllocatable")
    ),
    ("slo_controller", Verb.PATCH, _TOPOLOGY): ("zones",),
    ("slo_controller", Verb.PATCH, _CONFIG): ("metadata.annotations.tidegate.dev/refused",),
    **dict.fromkeys((("inference_autoscaler", Verb.PATCH, kind) for kind in _SCALABLE), ("spec.replicas",)),
    ("inference_autoscaler", Verb.PATCH, _DEPLOYMENT): (
        "spec.replicas",
        "spec.template",
        "metadata.annotations.tidegate.dev/made-of",
    ),
    ("inference_autoscaler", Verb.PATCH, _SERVICE): ("spec.ports", "spec.selector", "spec.type"),
    ("gang_scheduler", Verb.STATUS, _POD): ("conditions.PodScheduled", "nominatedNodeName"),
    ("gang_scheduler", Verb.PATCH, _CLAIM): (
        "metadata.annotations.volume.kubernetes.io/selected-node",
        "spec.volumeName",
    ),
    ("gang_scheduler", Verb.PATCH, _POD): ("metadata.annotations.scheduling.koordinator.sh/reservation-allocated",),
    ("descheduler", Verb.PATCH, _MIGRATION): (
        "metadata.annotations.descheduler.koordinator.sh/passed-arbitration",
        "metadata.annotations.tidegate.dev/migrates",
        "spec.podRef",
    ),
    ("descheduler", Verb.PATCH, _POD): (
        "metadata.annotations.scheduling.koordinator.sh/soft-eviction",
        "metadata.annotations.controller.kubernetes.io/pod-deletion-cost",
    ),
    ("gang_scheduler", Verb.STATUS, _DEVICES): ("allocation", "reservedFor"),
    ("gang_scheduler", Verb.STATUS, _KUBERNETES_GROUP): ("conditions.PodGroupScheduled",),
    ("gang_scheduler", Verb.STATUS, _GROUP): (
        *(f"phase.{phase}" for phase in ("Inqueue", "Running", "Completed", "Unknown")),
        *("conditions.Unschedulable", "conditions.Scheduled"),
        *_COUNTS,
    ),
}
"""The fields that a service may change of objects of which others decide the rest; all where nothing is said here."""

_NOT: dict[tuple[str, Verb, str], tuple[str, ...]] = {
    ("job_controller", Verb.PATCH, _POD): ("spec.nodeName", *_QUOTA_MARKS),
    ("job_controller", Verb.PATCH, _GROUP): _QUOTA_MARKS,
}
"""The fields of objects that it decides otherwise, which a service may not change."""


def refusal(service: str, verb: Verb, kind: str) -> str:
    """Why ``service`` may not do this; empty when it may."""
    kinds = _MAY.get(service, {}).get(verb, ())
    if kind in kinds:
        return ""
    if _ANY in kinds and kind not in _NEVER_BY_JOBS and (verb is not Verb.STATUS or kind not in _STATUS_OF_OTHERS):
        return ""
    return f"{service} does not decide {verb.name} of {kind}"


def field_refusal(service: str, verb: Verb, kind: str, patch: Manifest | None) -> str:
    """Why ``service`` may not change the fields of ``patch``; empty when it may."""
    place = (service, verb, kind)
    only, never = _ONLY.get(place), _NOT.get(place)
    if (only is None and never is None) or not patch:
        return ""
    for path in _status_paths(patch) if verb is Verb.STATUS else _paths(patch):
        if (only is not None and path not in only) or (never is not None and path in never):
            return f"{service} does not decide {path} of {kind}"
    return ""


def _status_paths(patch: Manifest) -> Iterator[str]:
    """What of a status is changed: conditions by their type, the phase by its value, amounts singly, all else by its name."""
    for name, value in patch.items():
        if name == "conditions":
            yield from (_CONDITION + str(condition.get("type")) for condition in value or ())
        elif name in _AMOUNTS and isinstance(value, dict):
            yield from (f"{name}.{resource}" for resource in value)
        else:
            yield _PHASE + str(value) if name == "phase" else name


def _paths(patch: Manifest) -> Iterator[str]:
    """What of an object is changed: ``spec.minMember``, ``metadata.labels.app``."""
    for name, value in patch.items():
        for field, part in value.items() if isinstance(value, dict) else (("", None),):
            if name == "metadata" and isinstance(part, dict):
                yield from (f"{name}.{field}.{key}" for key in part)
            else:
                yield f"{name}.{field}" if field else name


def field_rows() -> list[tuple[str, str, str, str]]:
    """The tables of fields as (service, verb, kind, fields), for the document."""
    only = [(*place, ", ".join(map(_shown, fields))) for place, fields in _ONLY.items()]
    never = [(*place, f"all but {', '.join(map(_shown, fields))}") for place, fields in _NOT.items()]
    return [(service, verb.name, kind, fields) for service, verb, kind, fields in only + never]


def _shown(path: str) -> str:
    return f"`{path}`"


def rows() -> list[tuple[str, str, str]]:
    """The table as (service, verb, kinds), for the document."""
    return [
        (service, verb.name, ", ".join(kinds).replace(_ANY, _all_but(verb)))
        for service, verbs in _MAY.items()
        for verb, kinds in verbs.items()
    ]


def _all_but(verb: Verb) -> str:
    others = sorted(_STATUS_OF_OTHERS) if verb is Verb.STATUS else []
    return f"all but {', '.join([*_NEVER_BY_JOBS, *others])}"
