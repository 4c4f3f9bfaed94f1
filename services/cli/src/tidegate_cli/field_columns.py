"""The columns of the kinds of Volcano, Kubeflow, Koordinator, Kueue, KServe, KEDA and Tidegate, as their printer columns."""

from kube import Manifest
from tidegate_cli.cells import dig, newest_true, pairs, text
from tidegate_cli.column import AGE, Column, Read, ago, at, count, names, newest, number, selector, state_of, wide


def _previous(service: Manifest, now: int) -> str:
    split = dig(service, "status.components.predictor.traffic") or ()
    return text(next((one.get("percent") for one in split if one.get("tag") == "prev"), None))


def _latest(service: Manifest, now: int) -> str:
    split = dig(service, "status.components.predictor.traffic") or ()
    return text(next((one.get("percent") for one in split if one.get("latestRevision")), None))


def _train_state(job: Manifest, now: int) -> str:
    """Its end or that it is suspended, which its conditions say; else whether any of its jobs has begun."""
    if state := newest_true(job):
        return state
    jobs = dig(job, "status.jobsStatus") or ()
    return "Running" if any(one.get("ready") or one.get("succeeded") for one in jobs) else "Created"


_KUBEFLOW = (Column("STATE", newest()), AGE)
_TUNING = (
    Column("TYPE", at("status.conditions[-1].type")),
    Column("STATUS", at("status.conditions[-1].status")),
    AGE,
)
_RUNTIME = (
    Column("DISABLED", at("spec.disabled")),
    Column("MODELTYPE", names("spec.supportedModelFormats", "name")),
    Column("CONTAINERS", names("spec.containers", "name")),
    AGE,
)
_SERVED = (Column("URL", at("status.url")), Column("READY", state_of("Ready")))
_FLOW = (Column("STATUS", at("status.state.phase")), AGE)
_LOCAL = (
    Column("PENDING WORKLOADS", number("status.pendingWorkloads")),
    Column("ADMITTED WORKLOADS", number("status.admittedWorkloads")),
)


def _target(item: Manifest, now: int) -> str:
    named = dig(item, "spec.target.workload") or {}
    if not named:
        return pairs(dig(item, "spec.target.podSelector.matchLabels"))
    return f"{str(named.get('kind', '')).lower()}/{named.get('name', '')}"


def _recommended(resource: str) -> Read:
    """What each container should ask for, with its name where there are several."""

    def cell(item: Manifest, now: int) -> str:
        listed = dig(item, "status.podStatus.containerStatuses") or ()
        told = [(str(one.get("containerName")), str((one.get("resources") or {}).get(resource, ""))) for one in listed]
        return ",".join(f"{name}={amount}" if len(told) > 1 else amount for name, amount in told)

    return cell


FIELD_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Recommendation.analysis.koordinator.sh": (
        Column("TARGET", _target),
        Column("CPU", _recommended("cpu")),
        Column("MEMORY", _recommended("memory")),
        Column("CONFIDENCE", at("status.conditions[0].reason")),
        AGE,
    ),
    "Job.batch.volcano.sh": (
        Column("STATUS", at("status.state.phase")),
        Column("MINAVAILABLE", at("spec.minAvailable")),
        Column("RUNNINGS", at("status.running")),
        AGE,
        wide("QUEUE", at("spec.queue")),
    ),
    "CronJob.batch.volcano.sh": (
        Column("SCHEDULE", at("spec.schedule")),
        Column("SUSPEND", at("spec.suspend", "false")),
        Column("ACTIVE", count("status.active")),
        Column("LASTSCHEDULETIME", ago("status.lastScheduleTime", "")),
        AGE,
    ),
    "PodGroup.scheduling.volcano.sh": (
        Column("STATUS", at("status.phase", "Pending")),
        Column("MINMEMBER", at("spec.minMember")),
        Column("RUNNINGS", at("status.running")),
        AGE,
        wide("QUEUE", at("spec.queue")),
    ),
    "Queue.scheduling.volcano.sh": (
        Column("PARENT", at("spec.parent")),
        Column("WEIGHT", at("spec.weight")),
        Column("STATE", at("status.state")),
        Column("PENDING", number("status.pending")),
        Column("RUNNING", number("status.running")),
        AGE,
        wide("ALLOCATED", selector("status.allocated")),
        wide("DESERVED", selector("spec.deserved")),
        wide("CAPABILITY", selector("spec.capability")),
    ),
    "Command.bus.volcano.sh": (
        Column("ACTION", at("action")),
        Column("TARGET", lambda one, now: f"{dig(one, 'target.kind')}/{dig(one, 'target.name')}"),
        AGE,
    ),
    "JobFlow.flow.volcano.sh": _FLOW,
    "HyperNode.topology.volcano.sh": (
        Column("TIER", at("spec.tier")),
        Column("TIERNAME", at("spec.tierName")),
        Column("NODECOUNT", number("status.nodeCount")),
        AGE,
    ),
    **{
        f"{kind}.kubeflow.org": _KUBEFLOW
        for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
    },
    "TrainJob.trainer.kubeflow.org": (Column("STATE", _train_state), AGE),
    "JobSet.jobset.x-k8s.io": (
        Column("TERMINALSTATE", at("status.terminalState")),
        Column("RESTARTS", number("status.restarts")),
        Column("SUSPENDED", at("spec.suspend", "false")),
        AGE,
    ),
    "ElasticQuota.scheduling.sigs.k8s.io": (
        Column("MIN", selector("spec.min")),
        Column("MAX", selector("spec.max")),
        Column("USED", selector("status.used")),
        AGE,
    ),
    "Reservation.scheduling.koordinator.sh": (
        Column("PHASE", at("status.phase")),
        AGE,
        Column("NODE", at("status.nodeName")),
        Column("TTL", at("spec.ttl")),
        Column("EXPIRES", at("spec.expires")),
    ),
    "PodMigrationJob.scheduling.koordinator.sh": (
        Column("PHASE", at("status.phase")),
        Column("STATUS", at("status.status")),
        AGE,
        Column("POD", at("spec.podRef.name")),
        Column("NODE", at("status.nodeName")),
    ),
    "ClusterQueue.kueue.x-k8s.io": (Column("COHORT", at("spec.cohortName")), *_LOCAL, AGE),
    "LocalQueue.kueue.x-k8s.io": (Column("CLUSTERQUEUE", at("spec.clusterQueue")), *_LOCAL, AGE),
    "Workload.kueue.x-k8s.io": (
        Column("QUEUE", at("spec.queueName")),
        Column("RESERVED IN", at("status.admission.clusterQueue")),
        Column("ADMITTED", state_of("Admitted")),
        Column("FINISHED", state_of("Finished")),
        AGE,
    ),
    "InferenceService.serving.kserve.io": (
        *_SERVED,
        Column("PREV", _previous),
        Column("LATEST", _latest),
        Column("LATESTREADYREVISION", at("status.components.predictor.latestReadyRevision")),
        AGE,
    ),
    "InferenceGraph.serving.kserve.io": (*_SERVED, AGE),
    "ServingRuntime.serving.kserve.io": _RUNTIME,
    "ClusterServingRuntime.serving.kserve.io": _RUNTIME,
    "ScaledObject.keda.sh": (
        Column("SCALETARGETNAME", at("spec.scaleTargetRef.name")),
        Column("MIN", at("spec.minReplicaCount")),
        Column("MAX", at("spec.maxReplicaCount")),
        Column("READY", state_of("Ready")),
        Column("ACTIVE", state_of("Active")),
        AGE,
    ),
    "PipelineRun.tidegate.dev": (Column("STATE", at("status.state")), AGE),
    "Experiment.kubeflow.org": _TUNING,
    "Trial.kubeflow.org": _TUNING,
    "Suggestion.kubeflow.org": _TUNING,
}
