"""Answers to people who ask where something is placed, or why it is not."""

from collections.abc import Mapping

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.explain import Explanation, node_report
from gang_scheduler.domain.gang_terms import GroupId
from gang_scheduler.domain.groups import Group
from gang_scheduler.domain.pod_record import PodRecord, Standing
from gang_scheduler.domain.queue_ledger import total_of
from gang_scheduler.domain.statuses import condition_of
from gang_scheduler.domain.waiting_line import Unit
from kube import Key, Manifest
from resources import format_amounts


def explain(cluster: Cluster, explanations: Mapping[Unit, Explanation], arguments: Manifest) -> Manifest:
    """The verdict on a pod or a group: Placed, Waiting, Gated, NotLetIn, Finished or Unknown, with its reasons."""
    kind = str(arguments.get("kind") or "Pod").partition(".")[0]
    namespace, name = str(arguments.get("namespace") or "default"), str(arguments.get("name") or "")
    if kind == "Pod":
        record = cluster.pods.get(Key("Pod", namespace, name))
        return _pod(cluster, explanations, record) if record else _unknown(kind, name)
    group = cluster.groups.get(GroupId("gang", namespace, name)) or _group_owned_by(cluster, kind, namespace, name)
    return _group(cluster, explanations, group) if group else _unknown(kind, name)


def _pod(cluster: Cluster, explanations: Mapping[Unit, Explanation], record: PodRecord) -> Manifest:
    answer: Manifest = {"kind": "Pod", "name": record.key.name, "queue": record.group.queue}
    match record.standing:
        case Standing.SUCCEEDED | Standing.FAILED:
            return answer | {"verdict": "Finished", "rule": "", "message": f"pod {record.key.name} has finished"}
        case Standing.HELD:
            gates = ", ".join(record.form.gates) or "another scheduler"
            return answer | {"verdict": "Gated", "rule": "SchedulingGates", "message": f"held back by {gates}"}
        case Standing.PENDING:
            return answer | _waiting(cluster, explanations, record.group, record)
    if not record.node:
        return answer | {"verdict": "Finished", "rule": "", "message": f"pod {record.key.name} is being deleted"}
    return answer | _placed(cluster, record)


def _group(cluster: Cluster, explanations: Mapping[Unit, Explanation], group: Group) -> Manifest:
    answer: Manifest = {"kind": "PodGroup", "name": group.name, "queue": group.queue, "live": group.live}
    if group.pending:
        answer |= _waiting(cluster, explanations, group, group.waiting()[0])
        if group.started:
            answer["verdict"] = "Placed"
    elif any(record.node for record in group.members.values()):
        answer |= {"verdict": "Placed", "rule": "", "message": f"{group.live} pods of {group.name} are placed"}
    elif group.counts[Standing.HELD]:
        answer |= {
            "verdict": "Gated",
            "rule": "SchedulingGates",
            "message": f"all waiting pods of {group.name} are held back",
        }
    elif not group.let_in:
        answer |= _waiting(cluster, explanations, group, None)
    elif group.members:
        answer |= {"verdict": "Finished", "rule": "", "message": f"no pod of {group.name} runs or waits"}
    else:
        answer |= {"verdict": "Waiting", "rule": "NotEnoughTasks", "message": f"{group.name} has no pods yet"}
    answer["nodes"] = sorted({record.node for record in group.members.values() if record.node})
    return answer


def _waiting(
    cluster: Cluster, explanations: Mapping[Unit, Explanation], group: Group, record: PodRecord | None
) -> Manifest:
    if not group.let_in:
        rule, message = _told_at_gate(group, record)
        return {"verdict": "NotLetIn", "rule": rule, "message": message}
    told = explanations.get(group.bundle())
    answer: Manifest = {"verdict": "Waiting", "position": _position(cluster, group)}
    if told is not None:
        answer |= {"rule": str(told.reason), "message": told.message, **told.detail}
    else:
        answer |= {"rule": "", "message": "it has not been tried yet"}
    if record is None or cluster.room.ledger.queues is None:
        return answer
    report = node_report(cluster.room, record)
    need = total_of((item.shape.requests, 1) for item in group.pending.values())
    return answer | {
        "need": format_amounts(record.shape.requests),
        "needTogether": format_amounts(need),
        "have": _free(cluster, record),
        "nodeFilters": dict(report.filters),
        "nearestMiss": report.sentence(record.key.name),
    }


def _told_at_gate(group: Group, record: PodRecord | None) -> tuple[str, str]:
    """The reason and the sentence with which the queue manager holds a group or pod back."""
    item = group.pod_group or (record.pod if record is not None else None)
    for kind in ("Admitted", "QuotaReserved"):
        told = condition_of(item.status, kind) if item is not None else {}
        if told.get("status") == "False":
            return str(told.get("reason") or "QueueGate"), str(told.get("message") or "")
    return "QueueGate", f"{group.name} has not been let in by its queue ({group.queue})"


def _placed(cluster: Cluster, record: PodRecord) -> Manifest:
    answer: Manifest = {"verdict": "Placed", "rule": "", "nodes": [record.node]}
    answer["message"] = f"pod {record.key.name} is on {record.node}" + (" (being bound)" if record.assumed else "")
    slot, table = record.slot, cluster.room.table
    if slot >= 0:
        rows = zip(record.shape.requests, table.rows_for(record.shape), strict=True)
        filled = {name: f"{int(table.used[row, slot])}/{int(table.allocatable[row, slot])}" for name, row in rows}
        answer["why"] = {"placement": str(cluster.placement), "usedOfAllocatable": filled}
    return answer


def _free(cluster: Cluster, record: PodRecord) -> dict[str, str]:
    """For each resource the most that is free on one node that the pod may go to."""
    table, view = cluster.room.table, cluster.room.view(record)
    most: dict[str, int] = {}
    for name, row in zip(record.shape.requests, table.rows_for(record.shape), strict=True):
        free = (table.allocatable[row] - table.used[row])[view.mask]
        most[name] = max(0, int(free.max(initial=0)))
    return format_amounts(most)


def _position(cluster: Cluster, group: Group) -> int:
    """The place among those who wait in its queue, from 1."""
    waiting = [item for item in cluster.groups.values() if item.pending and item.let_in and item.queue == group.queue]
    order = sorted(waiting, key=lambda item: (-item.priority(cluster.classes), item.started, item.created, item.id))
    return order.index(group) + 1 if group in order else 0


def _group_owned_by(cluster: Cluster, kind: str, namespace: str, name: str) -> Group | None:
    """The group that a job of some kind owns."""
    for gang in sorted(cluster.groups):
        pod_group = cluster.groups[gang].pod_group
        owner = pod_group.controller if pod_group and gang.namespace == namespace else None
        if owner and owner.get("name") == name and str(owner.get("kind")) == kind:
            return cluster.groups[gang]
    return None


def _unknown(kind: str, name: str) -> Manifest:
    return {"kind": kind, "name": name, "verdict": "Unknown", "rule": "", "message": f"{kind} {name} is not known here"}
