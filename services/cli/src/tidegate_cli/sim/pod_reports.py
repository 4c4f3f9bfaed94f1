"""The statuses that a scenario's nodes give of their pods."""

from cluster_gateway.domain.simulated_nodes import ended_status, running_status
from kube import Manifest, Object, rfc3339
from kube.pods import asked_probes
from testing.scenarios.target import PodReport


def reported_status(pod: Object, report: PodReport, now: int) -> Manifest:
    """The status that a node gives when it says this of a pod."""
    if report.phase in ("Succeeded", "Failed"):
        code = report.exit_code if report.exit_code is not None else (0 if report.phase == "Succeeded" else 1)
        reason = report.reason or ("Completed" if report.phase == "Succeeded" else "Error")
        status = ended_status(pod, report.phase, code, reason, now)
        return {**status, "reason": report.reason} if report.reason else status
    names = [container.get("name", "") for container in pod.spec.get("containers") or ()]
    before = pod.status.get("containerStatuses") or [{}]
    ready = bool(before[0].get("ready")) if report.ready is None else report.ready
    restarts = before[0].get("restartCount", 0) if report.restarts is None else report.restarts
    since = str(pod.status.get("startTime") or rfc3339(now))
    status = running_status(names, ready, since, restarts, asked_probes(pod.annotations))
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = rfc3339(now)
    if report.phase is None:
        status["phase"] = pod.status.get("phase", "Pending")
    return status
