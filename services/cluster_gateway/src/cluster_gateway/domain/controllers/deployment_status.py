"""What a Deployment says of itself: its numbers, whether enough is available, whether its update gets on."""

from cluster_gateway.domain.controllers.work import Work, condition_of, whole, with_conditions
from kube import Manifest, Object, parse_time, rfc3339

_DEADLINE_SECONDS = 600
_DONE = "NewReplicaSetAvailable"
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def report(
    item: Object, newest: Object | None, older: list[Object], replicas: int, max_unavailable: int, work: Work
) -> None:
    """Write the status. ``newest`` and ``older`` are its ReplicaSets, ``replicas`` what is asked for."""
    sets = [*older, newest] if newest else older
    total, ready, available = (_sum(sets, name) for name in ("replicas", "readyReplicas", "availableReplicas"))
    updated = _sum([newest] if newest else [], "replicas")
    counts = dict(zip(_COUNTS, (total, updated, ready, available), strict=True))
    enough = available >= replicas - max_unavailable
    conditions = with_conditions(
        item.status, _availability(enough, work.now), _progress(item, newest, counts, replicas, work)
    )
    work.status(
        item,
        {
            **counts,
            "unavailableReplicas": max(0, total - available),
            "observedGeneration": whole(item.metadata.get("generation"), 1),
            "conditions": conditions,
        },
    )


def _sum(sets: list[Object], name: str) -> int:
    return sum(whole(found.status.get(name), 0) for found in sets)


def _availability(enough: bool, now: int) -> Manifest:
    return {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        "lastTransitionTime": rfc3339(now),
    }


def _progress(item: Object, newest: Object | None, counts: Manifest, replicas: int, work: Work) -> Manifest:
    name = newest.name if newest else item.name
    before = condition_of(item.status, "Progressing")
    if newest is not None and all(counts[count] == replicas for count in _COUNTS):
        if before is not None and before.get("reason") == _DONE:
            return before
        return _progressing("True", _DONE, f'ReplicaSet "{name}" has successfully progressed.', work)
    is_new = item.status.get("observedGeneration") != whole(item.metadata.get("generation"), 1)
    moved = is_new or any(item.status.get(count) != counts[count] for count in _COUNTS)
    if moved or before is None or not before.get("lastUpdateTime"):
        return _progressing("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', work)
    return _unless_overdue(item, before, name, work)


def _unless_overdue(item: Object, before: Manifest, name: str, work: Work) -> Manifest:
    """The condition as it was, until nothing has moved for the progress deadline."""
    deadline = whole(item.spec.get("progressDeadlineSeconds"), _DEADLINE_SECONDS)
    at = parse_time(str(before["lastUpdateTime"])) + deadline * 1000
    if before.get("reason") in (_DONE, "ProgressDeadlineExceeded") or item.spec.get("paused"):
        return before
    if at > work.now:
        work.look_again(at)
        return before
    message = f'ReplicaSet "{name}" has timed out progressing: nothing moved for {deadline} s.'
    return _progressing("False", "ProgressDeadlineExceeded", message, work)


def _progressing(status: str, reason: str, message: str, work: Work) -> Manifest:
    at = rfc3339(work.now)
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
        "lastUpdateTime": at,
    }
