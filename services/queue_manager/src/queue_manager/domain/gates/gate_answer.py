"""What people are told who ask about a group at the gate: why it waits, where in the line, and how its queues stand."""

from collections.abc import Iterable, Mapping
from typing import Any

from kube import Manifest
from queue_manager.domain.gates.gate import Hold, HoldReason
from queue_manager.domain.members.demand import QueueTotals
from queue_manager.domain.members.groups import Group
from queue_manager.domain.members.quota import Quota
from queue_manager.domain.quotas.queue_tree import QueueTree
from resources import Amounts, format_amounts

_WAYS = {
    HoldReason.QUEUE_MISSING: "create queue {queue}, or name one that exists",
    HoldReason.QUEUE_CLOSED: "open queue {queue} (its administrator can), or move the work to an open one",
    HoldReason.QUEUE_NOT_LEAF: "name one of the queues below {queue}",
    HoldReason.NEVER_FITS: "waiting does not help: lower the group's minimum, or raise the capability that is named",
    HoldReason.QUOTA_EXCEEDED: "wait until work in namespace {namespace} ends, or have the quota raised",
    HoldReason.CLUSTER_FULL: "wait until work ends: the gate lets in no more than the cluster can hold",
}


def gate_answer(group: Group, hold: Hold | None, line: list[Group], need: Amounts) -> Manifest:
    """The verdict on ``group``; ``line`` are those that wait at the gate for its queue, the first one first."""
    answer: Manifest = {
        "kind": "PodGroup",
        "name": group.key.name,
        "queue": group.queue,
        "minimum": format_amounts(need),
    }
    if group not in line:
        return answer | {"verdict": "LetIn", "rule": "", "message": f"queue {group.queue} has let it in"}
    position = line.index(group) + 1
    ahead = [f"{item.key.namespace}/{item.key.name}" for item in line[: position - 1][:3]]
    answer |= {"verdict": "NotLetIn", "position": position, "waitingAtGate": len(line), "ahead": ahead}
    if hold is None:
        return answer | {"rule": "", "message": "nothing keeps it out: it is let in next", "waysOut": []}
    way = _WAYS[hold.reason].format(queue=group.queue, namespace=group.key.namespace)
    return answer | {"rule": str(hold.reason), "message": hold.message, "waysOut": [way]}


def queue_lines(
    tree: QueueTree, queue: str, totals: Mapping[str, QueueTotals], shares: Mapping[str, Mapping[str, Any]]
) -> list[Manifest]:
    """The queue and those above it, from below: state, what it asks for and has, and what it may have."""
    found = []
    for name in tree.line_of(queue) if queue in tree.queues else ():
        item, sums, entry = tree.queues[name], totals.get(name), shares.get(name) or {}
        parts = {
            "request": sums.request if sums else {},
            "allocated": sums.allocated if sums else {},
            "deserved": entry.get("deserved") or {},
            "guarantee": item.guarantee,
            "capability": item.capability,
        }
        shown = {part: format_amounts(amounts) for part, amounts in parts.items() if amounts}
        found.append({"queue": name, "state": item.state or "Open", **shown})
    return found


def quota_lines(quotas: Iterable[Quota]) -> list[Manifest]:
    """The ResourceQuotas of a namespace."""
    return [{"quota": quota.name, "hard": format_amounts(quota.hard)} for quota in quotas]


def unknown(name: str) -> Manifest:
    """There is no such group."""
    return {"name": name, "verdict": "Unknown", "rule": "", "message": f"group {name} is not known here"}
