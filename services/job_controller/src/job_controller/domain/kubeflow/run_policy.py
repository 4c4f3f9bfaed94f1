"""``spec.runPolicy`` of a Kubeflow job: how long it may run, how often it is tried again, what is left of it."""

from dataclasses import dataclass

from kube import Manifest

OWN_CONTROLLERS = ("", "kubeflow.org/training-operator", "kubeflow.org/mpi-operator")


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How the job's group is scheduled; fields left out are None or ""."""

    min_available: int | None = None
    queue: str = ""
    min_resources: Manifest | None = None
    priority_class: str = ""
    timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Times in seconds, None where there is no limit."""

    clean_pods: str = "None"
    """What is deleted when the job is finished: All, Running (what has not ended) or None."""
    ttl_seconds: int | None = None
    deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_elsewhere: bool = False
    scheduling: SchedulingPolicy = SchedulingPolicy()


def read_run_policy(spec: Manifest) -> RunPolicy:
    """The run policy of a job's spec."""
    policy = spec.get("runPolicy") or {}
    return RunPolicy(
        clean_pods=policy.get("cleanPodPolicy") or "None",
        ttl_seconds=_number(policy.get("ttlSecondsAfterFinished")),
        deadline_seconds=_number(policy.get("activeDeadlineSeconds")),
        backoff_limit=_number(policy.get("backoffLimit")),
        suspend=bool(policy.get("suspend")),
        managed_elsewhere=(policy.get("managedBy") or "") not in OWN_CONTROLLERS,
        scheduling=_read_scheduling(policy.get("schedulingPolicy") or {}),
    )


def _read_scheduling(policy: Manifest) -> SchedulingPolicy:
    return SchedulingPolicy(
        min_available=_number(policy.get("minAvailable")),
        queue=policy.get("queue") or "",
        min_resources=policy.get("minResources"),
        priority_class=policy.get("priorityClass") or "",
        timeout_seconds=_number(policy.get("scheduleTimeoutSeconds")),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
