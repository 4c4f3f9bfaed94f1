"""The columns of Kubernetes' own kinds, as kubectl has them."""

from kube import Manifest
from tidegate_cli.cells import (
    NONE,
    UNKNOWN,
    dig,
    node_roles,
    node_status,
    pod_ready,
    pod_restarts,
    pod_status,
    since,
    text,
)
from tidegate_cli.column import AGE, Column, ago, at, count, names, newest, number, of, ready_of, selector, wide


def _ports(service: Manifest, now: int) -> str:
    ports = dig(service, "spec.ports") or ()
    return ",".join(f"{one.get('port')}/{one.get('protocol', 'TCP')}" for one in ports) or NONE


def _targets(autoscaler: Manifest, now: int) -> str:
    current = dig(autoscaler, "status.currentMetrics") or []
    wanted = dig(autoscaler, "spec.metrics") or []
    cells = [_target(one, current[n] if n < len(current) else {}) for n, one in enumerate(wanted)]
    return ", ".join(cells) or NONE


def _target(metric: Manifest, current: Manifest) -> str:
    source = str(metric.get("type", ""))
    part = source[:1].lower() + source[1:]
    target, found = dig(metric, f"{part}.target") or {}, dig(current, f"{part}.current") or {}
    for key, unit in (("averageUtilization", "%"), ("averageValue", ""), ("value", "")):
        if key in target:
            name = f"{dig(metric, f'{part}.name')}: " if part == "resource" else ""
            return f"{name}{text(found.get(key), UNKNOWN)}{unit if key in found else ''}/{target[key]}{unit}"
    return UNKNOWN


def _last_seen(event: Manifest, now: int) -> str:
    moments = [event.get("lastTimestamp"), event.get("eventTime"), dig(event, "metadata.creationTimestamp")]
    return since(next((moment for moment in moments if moment), None), now)


def _about(event: Manifest, now: int) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _claim(volume: Manifest, now: int) -> str:
    owner = (volume.get("spec") or {}).get("claimRef") or {}
    return f"{owner.get('namespace', '')}/{owner.get('name', '')}" if owner else ""


_CONTAINERS = (
    wide("CONTAINERS", names("spec.template.spec.containers", "name")),
    wide("IMAGES", names("spec.template.spec.containers", "image")),
)
_REPLICAS = (wide("SELECTOR", selector("spec.selector.matchLabels")),)

CORE_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        Column("READY", of(pod_ready)),
        Column("STATUS", of(pod_status)),
        Column("RESTARTS", of(pod_restarts)),
        AGE,
        wide("IP", at("status.podIP", NONE)),
        wide("NODE", at("spec.nodeName", NONE)),
        wide("NOMINATED NODE", at("status.nominatedNodeName", NONE)),
    ),
    "Node": (
        Column("STATUS", of(node_status)),
        Column("ROLES", of(node_roles)),
        AGE,
        Column("VERSION", at("status.nodeInfo.kubeletVersion")),
        wide("CPU", at("status.allocatable.cpu")),
        wide("MEMORY", at("status.allocatable.memory")),
    ),
    "Namespace": (Column("STATUS", at("status.phase", "Active")), AGE),
    "ConfigMap": (Column("DATA", count("data")), AGE),
    "Secret": (Column("TYPE", at("type", "Opaque")), Column("DATA", count("data")), AGE),
    "Service": (
        Column("TYPE", at("spec.type", "ClusterIP")),
        Column("CLUSTER-IP", at("spec.clusterIP", NONE)),
        Column("EXTERNAL-IP", at("spec.externalIPs", NONE)),
        Column("PORT(S)", _ports),
        AGE,
        wide("SELECTOR", selector("spec.selector")),
    ),
    "Event": (
        Column("LAST SEEN", _last_seen),
        Column("TYPE", at("type", "Normal")),
        Column("REASON", at("reason")),
        Column("OBJECT", _about),
        Column("MESSAGE", at("message")),
    ),
    "PersistentVolumeClaim": (
        Column("STATUS", at("status.phase")),
        Column("VOLUME", at("spec.volumeName")),
        Column("CAPACITY", at("status.capacity.storage")),
        Column("ACCESS MODES", at("spec.accessModes")),
        Column("STORAGECLASS", at("spec.storageClassName")),
        AGE,
    ),
    "PersistentVolume": (
        Column("CAPACITY", at("spec.capacity.storage")),
        Column("ACCESS MODES", at("spec.accessModes")),
        Column("RECLAIM POLICY", at("spec.persistentVolumeReclaimPolicy")),
        Column("STATUS", at("status.phase")),
        Column("CLAIM", _claim),
        Column("STORAGECLASS", at("spec.storageClassName")),
        AGE,
    ),
    "StorageClass.storage.k8s.io": (
        Column("PROVISIONER", at("provisioner")),
        Column("RECLAIMPOLICY", at("reclaimPolicy")),
        Column("VOLUMEBINDINGMODE", at("volumeBindingMode")),
        AGE,
    ),
    "ResourceQuota": (AGE, Column("HARD", selector("spec.hard")), Column("USED", selector("status.used"))),
    "Deployment.apps": (
        Column("READY", ready_of("status.readyReplicas", "spec.replicas")),
        Column("UP-TO-DATE", number("status.updatedReplicas")),
        Column("AVAILABLE", number("status.availableReplicas")),
        AGE,
        *_CONTAINERS,
        *_REPLICAS,
    ),
    "ReplicaSet.apps": (
        Column("DESIRED", at("spec.replicas", "1")),
        Column("CURRENT", number("status.replicas")),
        Column("READY", number("status.readyReplicas")),
        AGE,
        *_CONTAINERS,
        *_REPLICAS,
    ),
    "StatefulSet.apps": (Column("READY", ready_of("status.readyReplicas", "spec.replicas")), AGE, *_CONTAINERS),
    "DaemonSet.apps": (
        Column("DESIRED", number("status.desiredNumberScheduled")),
        Column("CURRENT", number("status.currentNumberScheduled")),
        Column("READY", number("status.numberReady")),
        Column("UP-TO-DATE", number("status.updatedNumberScheduled")),
        Column("AVAILABLE", number("status.numberAvailable")),
        Column("NODE SELECTOR", selector("spec.template.spec.nodeSelector")),
        AGE,
        *_CONTAINERS,
    ),
    "Job.batch": (
        Column("STATUS", newest("Running")),
        Column("COMPLETIONS", ready_of("status.succeeded", "spec.completions")),
        AGE,
        *_CONTAINERS,
    ),
    "CronJob.batch": (
        Column("SCHEDULE", at("spec.schedule")),
        Column("TIMEZONE", at("spec.timeZone", NONE)),
        Column("SUSPEND", at("spec.suspend", "False")),
        Column("ACTIVE", count("status.active")),
        Column("LAST SCHEDULE", ago("status.lastScheduleTime")),
        AGE,
    ),
    "PodDisruptionBudget.policy": (
        Column("MIN AVAILABLE", at("spec.minAvailable", "N/A")),
        Column("MAX UNAVAILABLE", at("spec.maxUnavailable", "N/A")),
        Column("ALLOWED DISRUPTIONS", number("status.disruptionsAllowed")),
        AGE,
    ),
    "PriorityClass.scheduling.k8s.io": (
        Column("VALUE", number("value")),
        Column("GLOBAL-DEFAULT", at("globalDefault", "false")),
        AGE,
        Column("PREEMPTIONPOLICY", at("preemptionPolicy", "PreemptLowerPriority")),
    ),
    "HorizontalPodAutoscaler.autoscaling": (
        Column(
            "REFERENCE",
            lambda one, now: f"{dig(one, 'spec.scaleTargetRef.kind')}/{dig(one, 'spec.scaleTargetRef.name')}",
        ),
        Column("TARGETS", _targets),
        Column("MINPODS", at("spec.minReplicas", "1")),
        Column("MAXPODS", at("spec.maxReplicas")),
        Column("REPLICAS", number("status.currentReplicas")),
        AGE,
    ),
}
