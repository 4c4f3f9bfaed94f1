"""What a decision about a Reservation says, and what it makes of the Reservation's status."""

from gang_scheduler.domain.reasons.explain import signature
from gang_scheduler.domain.reasons.statuses import condition_of
from gang_scheduler.domain.reservations.reservation import AVAILABLE, WAITING, Reservation
from gang_scheduler.domain.reserving.pre_allocation import Ahead, names_of
from gang_scheduler.domain.terms.pod_requests import PODS
from kube import Decision, Manifest, Mutation, Verb, rfc3339
from kube.devices import RESERVATION, annotations_of
from kube.words import counted
from resources import format_amounts


def available(found: Reservation, node: str, now: int) -> Decision:
    """It has its place."""
    reserved = {name: amount for name, amount in found.record.shape.requests.items() if name != PODS}
    patch: Manifest = {
        "phase": "Available",
        "nodeName": node,
        "allocatable": format_amounts(reserved),
        "conditions": [
            _condition("Scheduled", "True", "Scheduled", f"room is held on {node}", now),
            _condition("Ready", "True", "Available", "", now),
        ],
    }
    words = ", ".join(f"{name} {amount}" for name, amount in format_amounts(reserved).items()) or "one pod"
    message = f"{words} of {node} are held for the owners of {found.name}"
    key, uid = found.item.key, found.item.uid
    return Decision("ReservationPlaced", key, uid, "Scheduled", message, _status(found, patch))


def waiting(found: Reservation, ahead: Ahead, now: int) -> Decision:
    """It has its place over pods that run, which are its owners until they have gone."""
    reserved = {name: amount for name, amount in found.record.shape.requests.items() if name != PODS}
    message = f"room on {ahead.node} is held as soon as {', '.join(names_of(ahead.pods))} leave it"
    patch: Manifest = {
        "phase": WAITING,
        "nodeName": ahead.node,
        "allocatable": format_amounts(reserved),
        "conditions": [
            _condition("Scheduled", "True", "Scheduled", message, now),
            _condition("Ready", "False", WAITING, message, now),
        ],
    }
    key, uid = found.item.key, found.item.uid
    given = annotations_of({RESERVATION: {"name": found.name, "uid": uid}})
    changes = tuple(
        Mutation(Verb.PATCH, record.key, record.pod.uid, patch={"metadata": {"annotations": given}})
        for record in ahead.pods
    )
    told = f"{message}, for the owners of {found.name}"
    return Decision("ReservationPlaced", key, uid, "PreAllocated", told, (*changes, *_status(found, patch)))


def free_at_last(found: Reservation, now: int) -> Decision:
    """Those over whom it was placed have gone: it holds all that it reserves."""
    message = f"all that {found.name} reserves of {found.node} is free for its owners"
    patch = _use(found) | {"phase": AVAILABLE, "conditions": [_condition("Ready", "True", AVAILABLE, "", now)]}
    return Decision("ReservationPlaced", found.item.key, found.item.uid, "RoomFreed", message, _status(found, patch))


def unplaced(found: Reservation, message: str, now: int) -> Decision | None:
    """It waits, and why; None when it was told so."""
    told = condition_of(found.item.status, "Scheduled")
    if told.get("status") == "False" and signature(str(told.get("message") or "")) == signature(message):
        return None
    condition = _condition("Scheduled", "False", "Unschedulable", message, now)
    changes = _status(found, {"phase": "Pending", "conditions": [condition]})
    return Decision("ReservationObserved", found.item.key, found.item.uid, "Unschedulable", message, changes)


def succeeded(found: Reservation, now: int) -> Decision:
    """Its one owner has come: nothing is held any more, the owner has it."""
    owner = min(found.owners)
    message = f"pod {owner.namespace}/{owner.name} has taken it"
    patch = _use(found) | {
        "phase": "Succeeded",
        "conditions": [_condition("Ready", "False", "Succeeded", message, now)],
    }
    told = f"reservation {found.name}: {message}"
    return Decision("ReservationUsed", found.item.key, found.item.uid, "Succeeded", told, _status(found, patch))


def expired(found: Reservation, why: str, now: int) -> Decision:
    """What nobody has taken of it is free again; its owners stay."""
    patch = {"phase": "Failed", "conditions": [_condition("Ready", "False", "Expired", why, now)]}
    message = f"reservation {found.name}: {why}"
    return Decision("ReservationExpired", found.item.key, found.item.uid, "Expired", message, _status(found, patch))


def cleared(found: Reservation) -> Decision:
    """It has been over for long."""
    message = f"reservation {found.name} has been {found.phase} for a day"
    mutation = Mutation(Verb.DELETE, found.item.key, found.item.uid)
    return Decision("ReservationCleared", found.item.key, found.item.uid, "Cleared", message, (mutation,))


def observed(found: Reservation, may_grow: bool) -> Decision | None:
    """Who uses it, and how large it is; None when its status says so."""
    patch = _use(found)
    asked = {name: amount for name, amount in found.record.shape.requests.items() if name != PODS}
    has = {name: amount for name, amount in found.amounts.items() if name != PODS}
    grows = any(amount > has.get(name, 0) for name, amount in asked.items())
    if asked != has and (may_grow or not grows):
        patch["allocatable"] = {name: None for name in has if name not in asked} | format_amounts(asked)
    if not patch:
        return None
    count = len(found.owners)
    message = f"reservation {found.name} is used by {counted(count, 'pod')}"
    changes = _status(found, patch)
    return Decision("ReservationObserved", found.item.key, found.item.uid, "OwnersChanged", message, changes)


def _use(found: Reservation) -> Manifest:
    """The part of the status that follows the owners, as far as it is another one now."""
    owners = [
        {"kind": "Pod", "namespace": key.namespace, "name": key.name, "uid": record.pod.uid}
        for key, record in sorted(found.owners.items())
        if not record.assumed
    ]
    status, patch = found.item.status, dict[str, object]()
    if (status.get("currentOwners") or []) != owners:
        patch["currentOwners"] = owners
    counted = {name: amount for name, amount in found.allocated().items() if name != PODS}
    taken = format_amounts(counted) if owners else {}
    if not any(record.assumed for record in found.owners.values()) and (status.get("allocated") or {}) != taken:
        stale = dict.fromkeys(name for name in status.get("allocated") or {} if name not in taken)
        patch["allocated"] = (stale | taken) if taken else None
    return patch


def _status(found: Reservation, patch: Manifest) -> tuple[Mutation, ...]:
    return (Mutation(Verb.STATUS, found.item.key, found.item.uid, None, patch),)


def _condition(kind: str, status: str, reason: str, message: str, now: int) -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
