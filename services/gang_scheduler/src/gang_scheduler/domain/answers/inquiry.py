"""Answers to people who ask where something is placed, or why it is not."""

from gang_scheduler.domain.answers.knowledge import Knowledge
from gang_scheduler.domain.answers.placed_answer import placed
from gang_scheduler.domain.answers.reservation_answer import reservation
from gang_scheduler.domain.answers.waiting_answer import waiting
from gang_scheduler.domain.answers.ways_out import ways_out
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.reasons.statuses import condition_of
from gang_scheduler.domain.terms.gang_terms import GroupId
from kube import Key, Manifest
from kube.words import counted, verb


def explain(k: Knowledge, arguments: Manifest) -> Manifest:
    """The verdict on a pod or a group: Placed, Waiting, Gated, NotLetIn, Finished, Evicted or Unknown, with its reasons."""
    kind = str(arguments.get("kind") or "Pod").partition(".")[0]
    namespace, name = str(arguments.get("namespace") or "default"), str(arguments.get("name") or "")
    if kind == "Pod":
        key = Key("Pod", namespace, name)
        record = k.cluster.pods.get(key)
        answer = _pod(k, record) if record else _unknown(kind, name)
        return _with_eviction(k, key, record, answer)
    if kind == "Reservation":
        found = k.cluster.room.reserved.by_name.get(name)
        return reservation(k.cluster, found) if found else _unknown(kind, name)
    group = k.cluster.groups.get(GroupId("gang", namespace, name)) or _group_owned_by(k.cluster, kind, namespace, name)
    return _group(k, group) if group else _unknown(kind, name)


def _pod(k: Knowledge, record: PodRecord) -> Manifest:
    answer: Manifest = {"kind": "Pod", "name": record.key.name, "queue": record.group.queue}
    match record.standing:
        case Standing.SUCCEEDED | Standing.FAILED:
            return answer | {"verdict": "Finished", "rule": "", "message": f"pod {record.key.name} has finished"}
        case Standing.HELD:
            return answer | _gated(record)
        case Standing.PENDING:
            return answer | _waiting(k, record.group, record)
    if not record.node or record.standing is Standing.LEAVING:
        where = f", it leaves {record.node}" if record.node else ""
        return answer | {"verdict": "Finished", "rule": "", "message": f"pod {record.key.name} is being deleted{where}"}
    return answer | placed(k, record)


def _gated(record: PodRecord) -> Manifest:
    gates = ", ".join(record.form.gates)
    ways = ways_out("SchedulingGates", {}) if gates else [f"scheduler {record.form.scheduler} has to place it"]
    message = f"held back by {gates}" if gates else f"it belongs to another scheduler, {record.form.scheduler}"
    rule = "SchedulingGates" if gates else "OtherScheduler"
    return {"verdict": "Gated", "rule": rule, "message": message, "waysOut": ways}


def _with_eviction(k: Knowledge, key: Key, record: PodRecord | None, answer: Manifest) -> Manifest:
    """By whom the pod, or one of its name before it, was evicted, and why."""
    told = condition_of(record.pod.status, "DisruptionTarget") if record is not None else {}
    known = k.evictions.of.get(key)
    same = record is None or (known is not None and known["uid"] == record.pod.uid)
    if known is None and told.get("status") == "True":
        known, same = {"reason": told.get("reason"), "message": told.get("message")}, True
    if known is None:
        return answer
    if not same:
        return answer | {"evictedBefore": known}
    leaving = record is None or record.standing is Standing.LEAVING
    verdict = {"verdict": "Evicted", "rule": str(known["reason"]), "message": str(known["message"])} if leaving else {}
    return answer | verdict | {"evicted": known}


def _group(k: Knowledge, group: Group) -> Manifest:
    answer: Manifest = {"kind": "PodGroup", "name": group.name, "queue": group.queue, "live": group.live}
    if group.pending:
        answer |= _waiting(k, group, None)
        if group.started:
            answer["verdict"] = "Placed"
    elif any(record.node for record in group.members.values()):
        message = f"{counted(group.live, 'pod')} of {group.name} {verb(group.live)} placed"
        answer |= {"verdict": "Placed", "rule": "", "message": message}
    elif group.counts[Standing.HELD]:
        message = f"all waiting pods of {group.name} are held back"
        answer |= {"verdict": "Gated", "rule": "SchedulingGates", "message": message}
        answer["waysOut"] = ways_out("SchedulingGates", answer)
    elif not group.let_in:
        answer |= _waiting(k, group, None)
    elif group.members:
        answer |= {"verdict": "Finished", "rule": "", "message": f"no pod of {group.name} runs or waits"}
    else:
        answer |= {"verdict": "Waiting", "rule": "NotEnoughTasks", "message": f"{group.name} has no pods yet"}
        answer["waysOut"] = ways_out("NotEnoughTasks", answer)
    answer["nodes"] = sorted({record.node for record in group.members.values() if record.node})
    return answer


def _waiting(k: Knowledge, group: Group, record: PodRecord | None) -> Manifest:
    if group.let_in:
        return waiting(k, group, record)
    rule, message = _told_at_gate(group, record)
    ways = ways_out(rule, {"queue": group.queue})
    return {"verdict": "NotLetIn", "rule": rule, "message": message, "waysOut": ways}


def _told_at_gate(group: Group, record: PodRecord | None) -> tuple[str, str]:
    """The reason and the sentence with which the queue manager holds a group or pod back."""
    item = group.pod_group or (record.pod if record is not None else None)
    for kind in ("Admitted", "QuotaReserved"):
        told = condition_of(item.status, kind) if item is not None else {}
        if told.get("status") == "False":
            return str(told.get("reason") or "QueueGate"), str(told.get("message") or "")
    return "QueueGate", f"{group.name} has not been let in by its queue ({group.queue})"


def _group_owned_by(cluster: Cluster, kind: str, namespace: str, name: str) -> Group | None:
    """The group that a job of some kind owns, or that its pods say they are."""
    for gang in sorted(cluster.groups):
        if gang.namespace == namespace and gang.name.startswith(f"{kind}/{name}/"):
            return cluster.groups[gang]
        pod_group = cluster.groups[gang].pod_group
        owner = pod_group.controller if pod_group and gang.namespace == namespace else None
        if owner and owner.get("name") == name and str(owner.get("kind")) == kind:
            return cluster.groups[gang]
    return None


def _unknown(kind: str, name: str) -> Manifest:
    return {"kind": kind, "name": name, "verdict": "Unknown", "rule": "", "message": f"{kind} {name} is not known here"}
