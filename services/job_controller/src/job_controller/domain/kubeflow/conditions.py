"""Conditions of a job: what is so, since when, and why."""

from typing import Any

from kube import Manifest, rfc3339


def find_condition(status: Manifest, kind: str) -> Manifest | None:
    """The condition of that type, if it was ever set."""
    conditions: list[Manifest] = status.get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def holds(status: Manifest, kind: str) -> bool:
    """Whether the condition of that type is "True"."""
    found = find_condition(status, kind)
    return found is not None and found.get("status") == "True"


def first_holding(status: Manifest, kinds: tuple[str, ...]) -> Manifest | None:
    """The first condition of ``kinds`` that is "True"."""
    return next((find_condition(status, kind) for kind in kinds if holds(status, kind)), None)


def with_condition(before: list[Any], kind: str, true: bool, reason: str, message: str, now: int) -> list[Any]:
    """``before`` with the condition set; the very same list when it says so already.

    A condition that stays true with another reason keeps its transition time, as in Kubernetes. A condition that never
    was set is not set to "False": absence says that already.
    """
    old = next((condition for condition in before if condition.get("type") == kind), None)
    status = "True" if true else "False"
    if old is None and not true:
        return before
    if old is not None and old.get("status") == status and old.get("reason") == reason:
        return before
    moment = rfc3339(now)
    since = old["lastTransitionTime"] if old and old.get("status") == status and "lastTransitionTime" in old else moment
    new = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": moment,
        "lastTransitionTime": since,
    }
    kept = [new if condition is old else condition for condition in before]
    return kept if old is not None else [*kept, new]


def newest_state(status: Manifest) -> Manifest:
    """Phase, reason and message of a job that tells its state by conditions: the newest of those that hold."""
    held = [one for one in status.get("conditions") or () if isinstance(one, dict) and one.get("status") == "True"]
    if not held:
        return {"phase": "Active"}
    newest = max(reversed(held), key=lambda one: str(one.get("lastTransitionTime") or ""))
    told = str(newest.get("message") or "") if newest.get("type") not in ("Created", "Running") else ""
    return {"phase": newest.get("type"), "reason": newest.get("reason"), "message": told}


def status_words(status: Manifest) -> str:
    """``Running: Master 1 active, Worker 1 active and 1 failed``."""
    listed = status.get("replicatedJobsStatus") or status.get("jobsStatus") or ()
    counts = dict(status.get("replicaStatuses") or {}) | {str(one.get("name")): one for one in listed}
    parts = []
    for name, numbers in counts.items():
        told = [f"{number} {what}" for what, number in numbers.items() if isinstance(number, int) and number]
        parts += [f"{name} {' and '.join(told)}"] if told else []
    phase = str(newest_state(status)["phase"])
    return phase + (f": {', '.join(parts)}" if parts else "")
