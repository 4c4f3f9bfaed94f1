"""The answer about a Reservation: where it stands and who has it, or why it waits."""

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.reasons.explain import node_report
from gang_scheduler.domain.reasons.statuses import condition_of
from gang_scheduler.domain.reservations.reservation import AVAILABLE, WAITING, Reservation
from gang_scheduler.domain.reserving.reservation_desk import why_waiting
from gang_scheduler.domain.terms.pod_requests import PODS
from kube import Manifest
from resources import format_amounts


def reservation(cluster: Cluster, found: Reservation) -> Manifest:
    """The verdict on a reservation: Waiting, Placed or Finished."""
    answer: Manifest = {"kind": "Reservation", "name": found.name, "rule": "", "phase": found.phase}
    owners = [f"{key.namespace}/{key.name}" for key in sorted(found.owners)]
    if found.waits:
        filters = dict(node_report(cluster.room, found.record).filters)
        answer |= {"verdict": "Waiting", "rule": "Unschedulable", "nodeFilters": filters}
        return answer | {"message": why_waiting(cluster.room, found), "need": format_amounts(found.amounts)}
    if found.ahead:
        message = f"reservation {found.name} waits on {found.node} for the room of {', '.join(owners)}"
        return answer | {"verdict": "Waiting", "rule": WAITING, "nodes": [found.node], "message": message}
    if found.phase != AVAILABLE:
        told = condition_of(found.item.status, "Ready")
        message = str(told.get("message") or f"reservation {found.name} is {found.phase}")
        return answer | {"verdict": "Finished", "rule": str(told.get("reason") or ""), "message": message}
    left = ", ".join(f"{name} {amount}" for name, amount in format_amounts(found.left()).items() if name != PODS)
    used = f"used by {', '.join(owners)}" if owners else "used by nobody"
    return answer | {
        "verdict": "Placed",
        "nodes": [found.node],
        "message": f"reservation {found.name} holds room on {found.node}, {used}; left: {left or 'nothing'}",
    }
