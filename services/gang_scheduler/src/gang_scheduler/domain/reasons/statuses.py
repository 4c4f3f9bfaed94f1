"""What the status of a PodGroup and of a waiting pod should say."""

from typing import Any

from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import NOMINATED, PodRecord, Standing
from gang_scheduler.domain.reasons.explain import Explanation, Reason, signature
from gang_scheduler.domain.reasons.upstream_words import in_gang
from gang_scheduler.domain.terms.gang_terms import KUBERNETES_GROUP, VOLCANO_GROUP
from kube import Manifest, rfc3339

_NAMES = ("Pending", "Gated", "Bound", "Running", "Succeeded", "Failed", "Releasing")
"""What Volcano calls the standings of a member, in their order."""

INQUEUE, RUNNING, COMPLETED, UNKNOWN = "Inqueue", "Running", "Completed", "Unknown"


def phase_of(group: Group, placed: int, *, waits: bool) -> str:
    """The phase of a group that was let in, with ``placed`` more members about to be bound.

    ``waits`` says that pending members have no place. A group below its minimum stays what it was while members live.
    """
    assert group.terms is not None, "a PodGroup has terms"
    counts = group.counts
    active = counts[Standing.BOUND] + counts[Standing.RUNNING] + placed
    scheduled = active + counts[Standing.SUCCEEDED] + counts[Standing.FAILED]
    if scheduled and scheduled >= group.terms.min_member:
        return RUNNING if active else COMPLETED
    if counts[Standing.RUNNING] and waits:
        return UNKNOWN
    if not group.members and group.phase == COMPLETED:
        return COMPLETED
    if not active and not counts[Standing.LEAVING]:
        return INQUEUE
    return group.phase if group.phase in (RUNNING, UNKNOWN) else INQUEUE


def group_patch(group: Group, now: int, *, placed: int = 0, explanation: Explanation | None = None) -> Manifest:
    """What has to change in the PodGroup's status; empty when it says what it should."""
    if group.pod_group is None or not group.let_in:
        return {}
    if group.pod_group.kind == KUBERNETES_GROUP:
        return _scheduled(group, now, placed, explanation)
    if group.pod_group.kind != VOLCANO_GROUP:
        return {}
    status = group.pod_group.status
    wanted = {
        "phase": phase_of(group, placed, waits=explanation is not None),
        "running": group.counts[Standing.RUNNING],
        "succeeded": group.counts[Standing.SUCCEEDED],
        "failed": group.counts[Standing.FAILED],
    }
    patch: Manifest = {name: value for name, value in wanted.items() if status.get(name, 0) != value}
    started = placed > 0 or group.started
    conditions = _conditions(group, now, explanation if not started else None, started)
    if conditions:
        patch["conditions"] = conditions
    return patch


def _scheduled(group: Group, now: int, placed: int, explanation: Explanation | None) -> Manifest:
    """The condition of Kubernetes' own PodGroup: whether its policy is satisfied, and why not."""
    assert group.pod_group is not None
    found = condition_of(group.pod_group.status, "PodGroupScheduled")
    if placed > 0 or group.started:
        wanted = ("True", "Scheduled", f"the minimum of {group.name} is bound")
    elif explanation is not None:
        wanted = ("False", "Unschedulable", explanation.message)
    else:
        return {}
    status, reason, message = wanted
    if found.get("status") == status and signature(str(found.get("message") or "")) == signature(message):
        return {}
    return {"conditions": [_condition("PodGroupScheduled", status, reason, message, now)]}


def pod_patch(record: PodRecord, explanation: Explanation, condition: Manifest) -> Manifest:
    """``condition``, shared by all pods of a gang, if the pod does not say the same already."""
    found = condition_of(record.pod.status, "PodScheduled")
    # Who waits for nothing that is being freed has no node in view any more.
    stale = explanation.reason is not Reason.ROOM_BEING_FREED and record.nominated
    patch: Manifest = {NOMINATED: None} if stale else {}
    if found and found.get("status") == "False" and signature(str(found.get("message") or "")) == explanation.signature:
        return patch
    return patch | {"conditions": [condition]}


def waiting_condition(explanation: Explanation, now: int) -> Manifest:
    """The condition of a pod that waits."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": explanation.message,
        "lastTransitionTime": rfc3339(now),
    }


def condition_of(status: Manifest, kind: str) -> dict[str, Any]:
    """The condition of type ``kind``; empty when there is none."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            found: dict[str, Any] = condition
            return found
    return {}


def _conditions(group: Group, now: int, explanation: Explanation | None, started: bool) -> list[Manifest]:
    assert group.pod_group is not None
    waits, runs = (
        condition_of(group.pod_group.status, "Unschedulable"),
        condition_of(group.pod_group.status, "Scheduled"),
    )
    if explanation is not None:
        message = f"{_gang_words(group, explanation)}. {explanation.message}"
        same = waits.get("status") == "True" and signature(str(waits.get("message") or "")) == signature(message)
        return [] if same else [_condition("Unschedulable", "True", _word(explanation.reason), message, now)]
    if not started:
        return []
    changed = []
    if waits.get("status") == "True":
        changed.append(_condition("Unschedulable", "False", "Scheduled", "", now))
    if runs.get("status") != "True":
        changed.append(_condition("Scheduled", "True", "MinimumPlaced", f"the minimum of {group.name} is bound", now))
    return changed


def _word(reason: Reason) -> str:
    """Volcano has one word for a gang that finds no room, be it now or ever; the message says which."""
    return Reason.NOT_ENOUGH_RESOURCES if reason in (Reason.NEVER_FITS, Reason.NO_NODE_MATCHES) else reason


def _gang_words(group: Group, explanation: Explanation) -> str:
    """What Volcano says of a gang that waits."""
    assert group.terms is not None
    standings = [(_NAMES[standing], count) for standing, count in enumerate(group.counts)]
    least = group.terms.min_member
    fitting = int(explanation.detail.get("placed") or 0)
    return in_gang(max(0, least - group.live), len(group.members), standings, least, fitting)


def _condition(kind: str, status: str, reason: str, message: str, now: int) -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": str(reason),
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
