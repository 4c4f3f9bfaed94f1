"""What the pods of a v1 job say about it: how many run, whether it has succeeded, and what a failed pod means."""

from collections.abc import Mapping
from dataclasses import dataclass

from job_controller.domain.kubeflow.frameworks import TENSORFLOW
from job_controller.domain.kubeflow.replica_specs import ReplicaSpec, ReplicatedJob
from kube import Manifest, Object
from kube.words import counted

# (type, index) → its pod.
Members = Mapping[tuple[str, int], Object]

# Above this a container was ended by a signal, which is often the machine and not the program.
LAST_PERMANENT_EXIT_CODE = 127


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pods of one type are in which phase; pods being deleted count nowhere."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed pods ask for: ``retry`` them, or, with a ``reason`` in words, fail the job."""

    retry: tuple[Object, ...] = ()
    reason: str = ""


def tally(members: Members, replica: ReplicaSpec) -> Tally:
    """The pods of ``replica`` by phase."""
    phases = [phase(pod) for (kind, _), pod in members.items() if kind == replica.type and not pod.deleting]
    return Tally(phases.count("Running"), phases.count("Succeeded"), phases.count("Failed"))


def phase(pod: Object) -> str:
    return str(pod.status.get("phase") or "Pending")


def has_succeeded(job: ReplicatedJob, members: Members) -> bool:
    """Whether the pods that decide have all succeeded; of some kinds of jobs one is enough."""
    deciding = job.deciding
    if deciding is None or deciding.count == 0:
        return False
    done = [index for index in range(deciding.count) if _succeeded(members.get((deciding.type, index)))]
    if len(done) == deciding.count:
        return True
    if job.leader is not None:
        return False
    if job.framework is TENSORFLOW:
        return 0 in done and job.spec.get("successPolicy") != "AllWorkers"
    return job.elastic is not None and bool(done)


def judge_failures(job: ReplicatedJob, members: Members) -> Failure:
    """What the failed pods of ``job`` mean, the leader's first."""
    retry: list[Object] = []
    for replica, index in job.members():
        pod = members.get((replica.type, index))
        if pod is None or pod.deleting or phase(pod) != "Failed":
            continue
        final = _final_reason(replica, pod, job.framework.container)
        if final:
            return Failure(reason=f"pod {pod.name} ({replica.type}) {final}")
        retry.append(pod)
    return Failure(tuple(retry), _spent_reason(job, members, retry))


def container_restarts(job: ReplicatedJob, members: Members) -> int:
    """How often nodes have restarted containers of pods that are there and may be restarted."""
    policies = {replica.type: replica.restart_policy for replica in job.replicas}
    return sum(
        restart_count(pod)
        for (kind, _), pod in members.items()
        if not pod.deleting and policies.get(kind, "Never") != "Never"
    )


def restart_count(pod: Object) -> int:
    """How often the node has restarted containers of the pod, init containers included."""
    statuses = [*(pod.status.get("initContainerStatuses") or []), *(pod.status.get("containerStatuses") or [])]
    return sum(int(status.get("restartCount") or 0) for status in statuses)


def exit_code(pod: Object, container: str) -> int | None:
    """The exit code of that container, if it has ended."""
    statuses: list[Manifest] = pod.status.get("containerStatuses") or []
    for status in statuses:
        ended = (status.get("state") or {}).get("terminated") or {}
        if status.get("name") == container and "exitCode" in ended:
            return int(ended["exitCode"])
    return None


def _final_reason(replica: ReplicaSpec, pod: Object, container: str) -> str:
    """Why the failure of ``pod`` is final, or ""."""
    code = exit_code(pod, container)
    ended = "failed" if code is None else f"ended with exit code {code}"
    if replica.restart_policy == "Never":
        return f"{ended} and its restart policy is Never"
    # A pod that says no code was lost rather than wrong, so it is tried again.
    if replica.restart_policy == "ExitCode" and code is not None and code <= LAST_PERMANENT_EXIT_CODE:
        return f"{ended}, which is not tried again (only codes from {LAST_PERMANENT_EXIT_CODE + 1} on are)"
    return ""


def _spent_reason(job: ReplicatedJob, members: Members, retry: list[Object]) -> str:
    """Why nothing may be tried again, or "": the limit allows so many restarts in all, by whomever."""
    limit = job.policy.backoff_limit
    if limit is None:
        return ""
    used = int(job.source.status.get("restarts") or 0) + container_restarts(job, members)
    if used + len(retry) <= limit:
        return ""
    failed = f"; failed again: {', '.join(pod.name for pod in retry)}" if retry else ""
    return f"it has been restarted {counted(used, 'time')} and its backoffLimit is {limit}{failed}"


def _succeeded(pod: Object | None) -> bool:
    return pod is not None and phase(pod) == "Succeeded"
