"""When pods are expected to end, from what their owners say."""

from gang_scheduler.domain.pod_record import PodRecord, Standing
from kube import parse_duration, parse_time

ESTIMATE = "tidegate.dev/running-estimate"


def estimate(record: PodRecord) -> int | None:
    """How long the pod runs, in milliseconds; the pod's own word wins over that of its gang. None when nobody says."""
    group = record.group.pod_group
    text = record.pod.annotations.get(ESTIMATE) or (group.annotations.get(ESTIMATE) if group is not None else None)
    if not text:
        return None
    try:
        return parse_duration(str(text))
    except ValueError:
        return None


def expected_end(record: PodRecord, now: int) -> int | None:
    """When a pod on a node ends, in milliseconds since the epoch; None when that is unknown or it is late already."""
    length = estimate(record)
    if length is None:
        return None
    started = record.pod.status.get("startTime") if record.standing is Standing.RUNNING else None
    try:
        end = (parse_time(str(started)) if started else now) + length
    except ValueError:
        return None
    return end if end > now else None
