"""Which pods of a target count for a metric, which are not ready for it, and of which nothing is known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inference_autoscaler.domain.metrics.reading import Reading
from kube import Manifest, Object, parse_time
from kube.pods import has_condition

CPU = "cpu"
CPU_INITIALIZATION_MS = 300_000
INITIAL_READINESS_MS = 30_000


@dataclass(frozen=True, slots=True)
class PodClasses:
    """Names of pods. ``ready`` have a sample that counts, ``missing`` have none; who is gone or has failed is in neither."""

    ready: tuple[str, ...]
    unready: tuple[str, ...]
    missing: tuple[str, ...]


def classes(pods: Iterable[Object], samples: Mapping[str, Reading], metric: str, now: int) -> PodClasses:
    """Sort the ``pods``: readiness matters for cpu only, since starting uses it and says nothing of the load."""
    ready, unready, missing = [], [], []
    for pod in pods:
        phase = pod.status.get("phase")
        if pod.deleting or phase == "Failed":
            continue
        sample = samples.get(pod.name)
        if phase in (None, "Pending"):
            unready.append(pod.name)
        elif sample is None:
            missing.append(pod.name)
        elif metric == CPU and _is_unready(pod.status, sample, now):
            unready.append(pod.name)
        else:
            ready.append(pod.name)
    return PodClasses(tuple(ready), tuple(unready), tuple(missing))


def has_started(pod: Object, now: int) -> bool:
    """Whether the time is over in which it matters that the pod started."""
    started = pod.status.get("startTime")
    return bool(started) and parse_time(str(started)) + CPU_INITIALIZATION_MS <= now


def serving(pods: Iterable[Object]) -> int:
    """How many of the ``pods`` run and are ready."""
    return sum(pod.status.get("phase") == "Running" and has_condition(pod.status, "Ready") for pod in pods)


def _is_unready(status: Manifest, sample: Reading, now: int) -> bool:
    """Whether the pod is still starting. One that was ready and is not any more counts: its load is there."""
    listed: Iterable[Manifest] = status.get("conditions") or ()
    condition = next((one for one in listed if one.get("type") == "Ready"), None)
    started = status.get("startTime")
    if condition is None or not started:
        return True
    start, turned = parse_time(str(started)), parse_time(str(condition.get("lastTransitionTime") or started))
    is_false = condition.get("status") == "False"
    if start + CPU_INITIALIZATION_MS > now:
        return is_false or sample.at < turned + sample.window_ms
    return is_false and start + INITIAL_READINESS_MS > turned
