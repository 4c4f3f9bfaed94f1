"""When a workload that holds quota is expected to end: from what its owner says, and from when it started."""

from kube import Object
from kube.running_estimates import stated_length
from queue_manager.domain.workloads.account import condition_of, moment
from queue_manager.domain.workloads.job_workload import JOB, wanted_parallelism
from queue_manager.domain.workloads.workload import Workload


def expected_end(workload: Workload, item: Object, now: int) -> int | None:
    """In milliseconds since the epoch; None where nobody says, or it is late already. ``item`` is the workload's object.

    What has not started is taken to start now. Who may run only for so long ends by then.
    """
    account = workload.account
    most = account.most_ms - account.spent_ms if account.most_ms else None
    lengths = [length for length in (_stated(item), most) if length is not None]
    if not lengths:
        return None
    end = (_started(workload, item) or now) + min(lengths)
    return end if end > now else None


def _stated(item: Object) -> int | None:
    """How long it runs. A Job with more pods than may run at a time runs that long for each round of them."""
    if item.kind != JOB:
        return stated_length(item.annotations)
    template = (item.spec.get("template") or {}).get("metadata") or {}
    length = stated_length(item.annotations, template.get("annotations") or {})
    completions, parallelism = item.spec.get("completions"), wanted_parallelism(item)
    if length is None or not isinstance(completions, int) or not parallelism:
        return length
    return length * -(-completions // parallelism)


def _started(workload: Workload, item: Object) -> int:
    """When its pods started, in milliseconds since the epoch; 0 while they have not."""
    if not workload.let_in:
        return 0
    if workload.is_group:
        bound = condition_of(item.status, "Scheduled")
        return moment(bound.get("lastTransitionTime")) if bound.get("status") == "True" else 0
    return moment(item.status.get("startTime") if item.kind in ("Pod", JOB) else workload.since)
