"""Pods of a batch/v1 Job: what they are made of, their index, and when the next one may follow those that failed."""

from collections.abc import Sequence

from cluster_gateway.domain.controllers.job_failure import Action, action_for
from cluster_gateway.domain.controllers.made_pods import pod_manifest
from cluster_gateway.domain.controllers.work import Work
from kube import Manifest, Object, parse_time
from kube.pods import is_finished
from kube.running_estimates import ESTIMATE

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
_FIRST_DELAY_MS = 10_000
_LONGEST_DELAY_MS = 360_000
_INDEX_VARIABLE: Manifest = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}},
}


def is_indexed(job: Object) -> bool:
    """Whether each pod of the Job works on a number of its own."""
    return bool(job.spec.get("completionMode") == "Indexed")


def index_of(pod: Object) -> int:
    """The number that the pod works on; -1 where it has none."""
    text = str(pod.annotations.get(INDEX, ""))
    return int(text) if text.isdigit() else -1


def failures_of(pod: Object) -> int:
    """How many pods of the same number had failed when this one was made."""
    text = str(pod.annotations.get(FAILURES, ""))
    return int(text) if text.isdigit() else 0


def make_pod(job: Object, work: Work, index: int | None = None, failures: int | None = None) -> None:
    """Make one pod of the Job, for the number ``index`` where it is an indexed one."""
    template = job.spec.get("template") or {}
    labels = {
        "batch.kubernetes.io/controller-uid": job.uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": job.uid,
        "job-name": job.name,
    }
    said = {ESTIMATE: job.annotations[ESTIMATE]} if ESTIMATE in job.annotations else {}
    if index is None:
        name = work.names.fresh("Pod", job, job.name, work.now)
        work.create(pod_manifest(job, template, name, labels=labels, annotations=said))
        return
    notes = said | {INDEX: str(index)} | ({} if failures is None else {FAILURES: str(failures)})
    spec = {**_with_index(template.get("spec") or {}), "hostname": f"{job.name}-{index}"}
    name = work.names.fresh("Pod", job, f"{job.name}-{index}", work.now)
    labels[INDEX] = str(index)
    work.create(pod_manifest(job, template, name, labels=labels, annotations=notes, spec=spec))


def _with_index(spec: Manifest) -> Manifest:
    """The containers with the variable JOB_COMPLETION_INDEX, where they do not define it themselves."""
    result: Manifest = {}
    for part in ("containers", "initContainers"):
        if spec.get(part):
            result[part] = [_with_variable(container) for container in spec[part]]
    return result


def _with_variable(container: Manifest) -> Manifest:
    env = container.get("env") or []
    if any(variable.get("name") == _INDEX_VARIABLE["name"] for variable in env):
        return container
    return {**container, "env": [*env, _INDEX_VARIABLE]}


def finished_at(pod: Object) -> int:
    """When (ms) the last container of the pod ended, as far as its status says; else when the pod was made."""
    times = [
        str(((status.get("state") or {}).get("terminated") or {}).get("finishedAt") or "")
        for status in pod.status.get("containerStatuses") or ()
    ]
    moments = [parse_time(time) for time in times if time]
    return max(moments) if moments else parse_time(pod.created) if pod.created else 0


def retry_at(job: Object, pods: Sequence[Object]) -> int:
    """When a pod may be made again: 10 s after a failure, twice as long after each further one without a success."""
    ended = sorted((pod for pod in pods if is_finished(pod)), key=lambda pod: (finished_at(pod), pod.key), reverse=True)
    failures, last = 0, 0
    for pod in ended:
        if pod.status.get("phase") == "Succeeded":
            break
        if action_for(job, pod).action is not Action.IGNORE:
            failures += 1
            last = last or finished_at(pod)
    return last + delay_after(failures) if failures else 0


def delay_after(failures: int) -> int:
    """How long (ms) to wait after so many failures in a row."""
    return min(_FIRST_DELAY_MS << min(failures - 1, 10), _LONGEST_DELAY_MS) if failures > 0 else 0
