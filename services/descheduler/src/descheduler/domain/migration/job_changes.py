"""What is decided about a migration, as changes of its status and of what it touches. Words as in Koordinator's API."""

import json
from collections.abc import Iterable

from descheduler.domain.cluster.pod_traits import DELETION_COST, node_of
from descheduler.domain.migration.job import (
    ABORTED,
    CREATED,
    EVICTION,
    EVIDENCE,
    FAILED,
    MIGRATION,
    ORIGIN,
    PASSED,
    PENDING,
    RUNNING,
    STRATEGY,
    SUCCEEDED,
    TARGET,
    Migration,
)
from descheduler.domain.move import Move
from descheduler.domain.policy.migration_args import EVICT_DIRECTLY, MigrationArgs
from kube import Decision, Key, Manifest, Mutation, Object, Verb, api_version_of, rfc3339
from resources.amounts import format_amounts

SOFT_EVICTION = "scheduling.koordinator.sh/soft-eviction"
EVICTOR = "koordinator.sh/evict-policy"


def proposed(move: Move, message: str, name: str, mode: str, ttl_ms: int) -> Decision:
    """A plan wants the pod moved: the job says by what strategy, where to, why, and what the pod used."""
    pod = move.pod
    evidence = {"why": message, **({"uses": format_amounts(move.uses)} if move.uses else {})}
    notes = {STRATEGY: move.strategy, EVIDENCE: json.dumps(evidence, sort_keys=True, ensure_ascii=False)}
    if move.target and mode != EVICT_DIRECTLY:
        notes[TARGET] = move.target
    key = Key(MIGRATION, "", name)
    manifest: Manifest = {
        "apiVersion": api_version_of(key.kind),
        "kind": "PodMigrationJob",
        "metadata": {"name": name, "annotations": notes},
        "spec": {
            "mode": mode,
            "ttl": f"{ttl_ms // 1000}s",
            "podRef": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        },
    }
    mutation = Mutation(Verb.CREATE, key, manifest=manifest)
    return Decision("MoveProposed", pod.key, pod.uid, move.strategy, message, (mutation,))


def valued(pod: Object, cost: int) -> Decision:
    """What it costs to delete the pod: a workload that shrinks gives up the cheapest first."""
    patch = {"metadata": {"annotations": {DELETION_COST: str(cost)}}}
    mutation = Mutation(Verb.PATCH, pod.key, pod.uid, patch=patch)
    message = f"pod {pod.namespace}/{pod.name} costs {cost} to delete"
    return Decision("DeletionCostSet", pod.key, pod.uid, "ScaleDownBinPack", message, (mutation,))


def held(job: Migration, why: str) -> Decision | None:
    """It waits for its turn; None when it was told so."""
    if job.item.status.get("phase") == PENDING and job.item.status.get("message") == why:
        return None
    patch = {"phase": PENDING, "status": "Waiting", "message": why}
    message = f"{job.pod.name} is not moved yet: {why}"
    return Decision("MigrationHeld", job.key, job.item.uid, "WaitingForTurn", message, (_status(job, patch),))


def started(job: Migration, pod: Object, workload: str, reservation: Manifest | None, now: int) -> Decision:
    """It passed arbitration; where a reservation comes first, that is made."""
    origin = {"at": rfc3339(now), "node": node_of(pod), "workload": workload}
    notes = {PASSED: "true", ORIGIN: json.dumps(origin, sort_keys=True)}
    patch: Manifest = {"metadata": {"annotations": notes}, "spec": {"podRef": {"uid": pod.uid}}}
    changes = [Mutation(Verb.PATCH, job.key, job.item.uid, patch=patch)]
    status: Manifest = {"phase": RUNNING, "status": "Running", "reason": None, "message": None}
    if reservation is not None:
        name = str(reservation["metadata"]["name"])
        changes.append(Mutation(Verb.CREATE, job.reservation, manifest=reservation))
        status["conditions"] = [condition(CREATED, "True", "", f"reservation {name} is made", now)]
    message = f"pod {pod.namespace}/{pod.name} is to leave {node_of(pod)}"
    changes.append(_status(job, status))
    return Decision("MigrationStarted", job.key, job.item.uid, "PassedArbitration", message, tuple(changes))


def observed(job: Migration, told: Manifest, now: int, **fields: str) -> Decision | None:
    """Where it stands, in a condition; None when it says so already."""
    before = job.condition(str(told["type"]))
    same = all(before.get(name) == told.get(name) for name in ("status", "reason", "message"))
    if same and all(job.item.status.get(name) == value for name, value in fields.items()):
        return None
    patch: Manifest = {**fields, "reason": told["reason"], "message": told["message"], "conditions": [told]}
    return Decision(
        "MigrationObserved", job.key, job.item.uid, str(told["reason"]), str(told["message"]), (_status(job, patch),)
    )


def evicted(job: Migration, pod: Object, args: MigrationArgs, why: str, now: int) -> Decision:
    """The pod goes now; who takes it away is the pod's to say."""
    told = condition(
        EVICTION, "False", "Evicting", f"pod {pod.namespace}/{pod.name} is evicted from {node_of(pod)}", now
    )
    status = _status(job, {"status": "Evicting", "reason": "Evicting", "message": why, "conditions": [told]})
    mutation = _taken_away(job, pod, args, why, now)
    return Decision("PodMigrated", job.key, job.item.uid, job.strategy or "Migration", why, (mutation, status))


def _taken_away(job: Migration, pod: Object, args: MigrationArgs, why: str, now: int) -> Mutation:
    evictor = pod.labels.get(EVICTOR) or args.evictor
    grace = (job.item.spec.get("deleteOptions") or {}).get("gracePeriodSeconds", args.grace_seconds)
    if evictor == "Delete":
        return Mutation(Verb.DELETE, pod.key, pod.uid, grace_seconds=grace)
    if evictor == "SoftEviction":
        options = {"deleteOptions": {"gracePeriodSeconds": grace}} if grace is not None else {}
        note = {"timestamp": rfc3339(now), "initiator": "descheduler", "reason": why, **options}
        patch = {"metadata": {"annotations": {SOFT_EVICTION: json.dumps(note, sort_keys=True)}}}
        return Mutation(Verb.PATCH, pod.key, pod.uid, patch=patch)
    return Mutation(Verb.EVICT, pod.key, pod.uid, grace_seconds=grace)


def succeeded(job: Migration, told: Iterable[Manifest], message: str, successor: Object | None) -> Decision:
    """The pod has moved."""
    patch: Manifest = {"phase": SUCCEEDED, "status": "Complete", "reason": "Complete", "message": message}
    patch["conditions"] = list(told)
    if successor is not None:
        patch["podRef"] = {"namespace": successor.namespace, "name": successor.name, "uid": successor.uid}
    return Decision("MigrationSucceeded", job.key, job.item.uid, "Complete", message, (_status(job, patch),))


def failed(job: Migration, reason: str, message: str, now: int, *, aborted: bool = False) -> Decision:
    """It is given up; what was reserved for it goes, unless its pod has left already: then the next one still finds its place."""
    told = condition("Failed", "True", reason, message, now)
    patch: Manifest = {
        "phase": ABORTED if aborted else FAILED,
        "status": "Aborted" if aborted else "Failed",
        "reason": reason,
        "message": message,
        "conditions": [told],
    }
    changes = [_status(job, patch)]
    if job.begun and not job.direct and not job.brings_reservation and job.evicted_at is None:
        changes.append(Mutation(Verb.DELETE, job.reservation))
    return Decision("MigrationFailed", job.key, job.item.uid, reason, message, tuple(changes))


def cleared(job: Migration) -> Decision:
    """It has been over for long."""
    mutation = Mutation(Verb.DELETE, job.key, job.item.uid)
    message = f"migration {job.name} has been over for an hour"
    return Decision("MigrationCleared", job.key, job.item.uid, "Cleared", message, (mutation,))


def condition(kind: str, status: str, reason: str, message: str, now: int) -> Manifest:
    """A condition of a job's status."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": rfc3339(now)}


def _status(job: Migration, patch: Manifest) -> Mutation:
    return Mutation(Verb.STATUS, job.key, job.item.uid, patch=patch)
