"""A Workload object as users of Kueue read it: what it asks for, what it was given, and in which state it is."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kube import Key, Manifest, Object, api_version_of, rfc3339
from kube.pods import has_condition
from kube.words import counted, verb
from queue_manager.domain.quotas.cluster_queue import WORK_PRIORITY
from queue_manager.domain.quotas.grant import Admission, SetGrant
from queue_manager.domain.workloads.account import SOURCE, WORKLOAD, condition_of
from queue_manager.domain.workloads.workload import PRIORITY_CLASS, Workload
from resources.amounts import format_amount

MOST_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label of a job that says how long it may run."""

Part = tuple[str, int, int, Manifest]
"""Name, count, least count and pod spec of a pod set."""


class Facts(NamedTuple):
    """What is known of one workload: ``parts`` are its pod sets, ``ready`` of its pods are ready, ``checks`` have to agree."""

    workload: Workload
    item: Object
    admission: Admission | None
    parts: Sequence[Part]
    ready: int
    checks: Sequence[str]


def view_name(key: Key, uid: str) -> str:
    """The name of the Workload that stands for the object: as Kueue's, kind, name and five letters."""
    letters = hashlib.sha1(f"{key.kind}/{key.name}/{uid}".encode()).hexdigest()[:5]
    return f"{key.kind.partition('.')[0].lower()}-{key.name}"[:57] + f"-{letters}"


def view_manifest(facts: Facts, owner: Manifest, named: Key) -> Manifest:
    """The Workload for ``facts``; ``owner`` is the reference to its job, which is ``named``."""
    item, workload = facts.item, facts.workload
    spec: Manifest = {
        "active": True,
        "queueName": workload.local_queue,
        "priority": workload.shape.priority,
        "podSets": [_pod_set(*part) for part in facts.parts],
    }
    if PRIORITY_CLASS in item.labels:
        group, kind = WORK_PRIORITY.partition(".")[2], WORK_PRIORITY.partition(".")[0]
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": item.labels[PRIORITY_CLASS]}
    seconds = str(item.labels.get(MOST_SECONDS, ""))
    if seconds.isdigit():
        spec["maximumExecutionTimeSeconds"] = int(seconds)
    metadata = {
        "name": view_name(named, str(owner["uid"])),
        "namespace": item.namespace,
        "annotations": {SOURCE: f"{item.kind}/{item.name}"},
        "labels": {"kueue.x-k8s.io/job-uid": str(owner["uid"])},
        "ownerReferences": [owner],
    }
    return {"apiVersion": api_version_of(WORKLOAD), "kind": "Workload", "metadata": metadata, "spec": spec}


def owner_of(item: Object) -> tuple[Manifest, Key]:
    """The reference to the job that the workload ``item`` is of, and its key: its controller, if that is a job."""
    controller = item.controller if item.kind.startswith("PodGroup.") else None
    if controller is not None:
        group = str(controller.get("apiVersion") or "").rpartition("/")[0]
        kind = f"{controller['kind']}.{group}" if group else str(controller["kind"])
        return {**controller, "controller": True}, Key(kind, item.namespace, str(controller["name"]))
    kind = item.kind.partition(".")[0]
    reference = {"apiVersion": api_version_of(item.kind), "kind": kind, "name": item.name, "uid": item.uid}
    return {**reference, "controller": True}, item.key


def status_patch(facts: Facts, before: Manifest, now: int) -> Manifest:
    """The merge patch after which a status that was ``before`` tells how things are; empty where it does."""
    patch: Manifest = {}
    given = facts.admission
    admission = _admission(given.cluster_queue, given.sets or (_whole(facts, given),)) if given is not None else None
    if before.get("admission") != admission:
        patch["admission"] = admission
    conditions = [item for item in _conditions(facts, before) if not _says(before, item)]
    if conditions:
        patch["conditions"] = [item | {"lastTransitionTime": _since(before, item, now)} for item in conditions]
    checks = _checks(facts, before, now)
    if checks and before.get("admissionChecks") != checks:
        patch["admissionChecks"] = checks
    return patch


def _pod_set(name: str, count: int, least: int, spec: Manifest) -> Manifest:
    content: Manifest = {"name": name, "count": count, "template": {"spec": spec}}
    return content | ({"minCount": least} if least != count else {})


def _conditions(facts: Facts, before: Manifest) -> list[Manifest]:
    workload, admission = facts.workload, facts.admission
    found = []
    if workload.over:
        found.append(_finished(facts))
        return found
    if admission is None:
        reason, message = workload.told or ("Pending", "it was not looked at yet")
        found.append(_condition("QuotaReserved", False, reason, message))
        if condition_of(before, "Admitted"):
            found.append(_condition("Admitted", False, "NoReservation", "it holds no quota"))
        return found
    where = f"in ClusterQueue {admission.cluster_queue}"
    found.append(_condition("QuotaReserved", True, "QuotaReserved", f"Quota reserved {where}"))
    if workload.let_in:
        found.append(_condition("Admitted", True, "Admitted", f"The workload is admitted {where}"))
        found += _pods_ready(facts, before)
        if not workload.revoked:
            found += _back_again(before)
    else:
        waits = workload.told or ("UnsatisfiedAdmissionChecks", "the admission checks have not agreed yet")
        found.append(_condition("Admitted", False, *waits))
    return found


def _back_again(before: Manifest) -> list[Manifest]:
    """An eviction is over when the work is admitted again."""
    over = [word for word in ("Evicted", "Preempted") if condition_of(before, word).get("status") == "True"]
    if condition_of(before, "Admitted").get("status") == "True":
        return []
    return [_condition(word, False, "QuotaReserved", "it holds quota again") for word in over]


def _pods_ready(facts: Facts, before: Manifest) -> list[Manifest]:
    expected = facts.workload.expected
    if not expected:
        return []
    if facts.ready >= expected:
        return [_condition("PodsReady", True, "Started", "All pods are ready")]
    said = condition_of(before, "PodsReady")
    recovers = said.get("status") == "True" or said.get("reason") == "WaitForRecovery"
    reason = "WaitForRecovery" if recovers else "WaitForStart"
    return [
        _condition("PodsReady", False, reason, f"{facts.ready} of {counted(expected, 'pod')} {verb(facts.ready)} ready")
    ]


def _finished(facts: Facts) -> Manifest:
    status = facts.item.status
    failed = status.get("phase") == "Failed" or has_condition(status, "Failed")
    name = facts.item.name
    if failed:
        return _condition("Finished", True, "Failed", f"{name} has failed")
    return _condition("Finished", True, "Succeeded", f"{name} has finished")


def _condition(kind: str, holds: bool, reason: str, message: str) -> Manifest:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def _says(before: Manifest, wanted: Manifest) -> bool:
    said = condition_of(before, str(wanted["type"]))
    return {**said, **wanted} == said


def _since(before: Manifest, wanted: Manifest, now: int) -> str:
    said = condition_of(before, str(wanted["type"]))
    kept = said.get("status") == wanted["status"] and said.get("lastTransitionTime")
    return str(kept or rfc3339(now))


@lru_cache(maxsize=4096)
def _admission(queue: str, sets: tuple[SetGrant, ...]) -> Manifest:
    """Equal admissions share one manifest: never change it."""
    return {"clusterQueue": queue, "podSetAssignments": [_assignment(item) for item in sets]}


def _whole(facts: Facts, admission: Admission) -> SetGrant:
    """One assignment for work that got its quota as a whole."""
    name = facts.parts[0][0] if len(facts.parts) == 1 else "main"
    amounts = tuple(sorted(admission.amounts.items()))
    return SetGrant(name, facts.workload.size, tuple(sorted(admission.flavors.items())), amounts)


def _assignment(item: SetGrant) -> Manifest:
    usage = {name: format_amount(name, amount) for name, amount in item.amounts}
    return {"name": item.name, "count": item.size, "flavors": dict(item.flavors), "resourceUsage": usage}


def _checks(facts: Facts, before: Manifest, now: int) -> list[Manifest]:
    """What each check says; the time changes with the state."""
    known = {str(item.get("name")): item for item in before.get("admissionChecks") or ()}
    found = []
    for name in facts.checks:
        answer = facts.workload.account.answer(name)
        said = known.get(name, {})
        kept = said.get("state") == answer.state and said.get("lastTransitionTime")
        times = {"lastTransitionTime": str(kept or rfc3339(now))}
        found.append({**said, "name": name, "state": answer.state, "message": answer.message, **times})
    return found
