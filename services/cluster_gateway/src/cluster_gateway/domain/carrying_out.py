"""Carrying out a decision: whole, or not at all with the reason."""

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter

from cluster_gateway.domain.budgets import MAY_BREAK, budget_refusal
from cluster_gateway.domain.cluster import Cluster
from cluster_gateway.domain.ownership import field_refusal, refusal
from cluster_gateway.domain.reports import amplify
from cluster_gateway.domain.writing import first_status
from kube import Decision, Key, Manifest, Mutation, Object, Outcome, Verb, merge, rfc3339
from kube.amplification import RATIOS
from kube.devices import annotations_of
from kube.lent_resources import current, is_lent
from kube.objects import body_of
from kube.pods import sound_pod_request


def carry_out(cluster: Cluster, service: str, decision_id: str, decision: Decision, decided_on: int) -> Outcome:
    """Apply ``decision`` if all that it touches is as it was at ``decided_on``; what came of it."""
    cluster.actor = service
    try:
        reasons = objections(cluster, service, decision, decided_on)
        if not reasons:
            with cluster.whole():
                for verb, mutations in groupby(decision.mutations, _VERB):
                    if verb is Verb.BIND:
                        _bind_all(cluster, mutations)
                        continue
                    for mutation in mutations:
                        _APPLY[verb](cluster, mutation, decision)
    except Exception as error:  # whatever a decision holds, it comes to its outcome, and those beside it to theirs
        reasons = {"": f"cannot be carried out: {type(error).__name__}: {error}"}
    return Outcome(decision_id, decision.name, decision.subject, not reasons, reasons)


def objections(cluster: Cluster, service: str, decision: Decision, decided_on: int) -> dict[str, str]:
    """Why a decision of ``service`` does not hold any more, by object; empty when it does."""
    reasons: dict[str, str] = {}
    if decision.subject_uid:
        subject = cluster.store.get(decision.subject)
        if subject is None or subject.uid != decision.subject_uid:
            return {str(decision.subject): "is gone"}
        if subject.spec_revision > decided_on:
            return {str(decision.subject): f"changed at revision {subject.spec_revision}, decided on {decided_on}"}
    refused: dict[tuple[Verb, str], str] = {}
    nodes: dict[str, str] = {}
    for mutation in decision.mutations:
        verb, kind = place = mutation.verb, mutation.key[0]
        if place not in refused:
            refused[place] = refusal(service, verb, kind)
        reason = (
            refused[place]
            or (field_refusal(service, verb, kind, mutation.patch) if verb in _BY_FIELD else "")
            or _CHECK[verb](cluster, mutation, decided_on)
        )
        if verb is Verb.EVICT and not reason and service not in MAY_BREAK:
            pod = _present(cluster, mutation)
            reason = budget_refusal(cluster.store, pod) if pod is not None else ""
        if verb is Verb.BIND and not reason:
            if mutation.node not in nodes:
                nodes[mutation.node] = _check_node(cluster, mutation.node, decided_on)
            reason = nodes[mutation.node] or _check_lent(cluster, mutation, decided_on)
        if reason:
            reasons[str(mutation.key)] = reason
    return reasons


def is_begun(cluster: Cluster, decision: Decision) -> bool:
    """Whether some of the pods that a decision binds are bound so: a predecessor began it, and it is to be completed."""
    bindings = (mutation for mutation in decision.mutations if mutation.verb is Verb.BIND)
    pods = ((mutation, _present(cluster, mutation)) for mutation in bindings)
    return any(pod is not None and pod.spec.get("nodeName") == mutation.node for mutation, pod in pods)


_VERB = attrgetter("verb")
_BY_FIELD = (Verb.PATCH, Verb.STATUS)


def _present(cluster: Cluster, mutation: Mutation) -> Object | None:
    found = cluster.store.get(mutation.key)
    return found if found is not None and (not mutation.uid or found.uid == mutation.uid) else None


def _check_create(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    there = cluster.store.get(mutation.key)
    if there is None:
        namespace = cluster.store.get(Key("Namespace", "", mutation.key.namespace))
        return "its namespace is being deleted" if namespace is not None and namespace.deleting else ""
    if owner_uid((mutation.manifest or {}).get("metadata") or {}) == owner_uid(there.metadata):
        return "is still being deleted" if there.deleting else ""
    return "is there already and belongs to somebody else"


def owner_uid(metadata: Manifest) -> str:
    """The uid of the owner that controls an object, else of its first owner; empty when it has none."""
    owners = metadata.get("ownerReferences") or [{}]
    return str(next((owner for owner in owners if owner.get("controller")), owners[0]).get("uid", ""))


def _check_present(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    return "" if _present(cluster, mutation) is not None else "is gone"


def _check_patch(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    """A patch was made for the object as it was then: what somebody else wrote since must not be laid over unseen."""
    item = _present(cluster, mutation)
    if item is None:
        return "is gone"
    author = cluster.authors.get(mutation.key, "somebody")
    if item.spec_revision <= decided_on or author == cluster.actor or _is_so(item, mutation.patch or {}):
        return ""
    return f"was changed by {author} at revision {item.spec_revision}, decided on {decided_on}"


def _is_so(item: Object, patch: Manifest) -> bool:
    """Whether all that a patch wants is so already: somebody who was killed before he could tell may have done it."""
    metadata, body = patch.get("metadata") or {}, body_of(patch)
    return merge(item.metadata, metadata) == item.metadata and merge(item.body, body) == item.body


def _check_nothing(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    """To delete what is gone is done already."""
    return ""


def _check_bind(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    pod = _present(cluster, mutation)
    if pod is None or pod.deleting:
        return "is gone" if pod is None else "is being deleted"
    if node := pod.spec.get("nodeName"):
        return f"is bound to {node} already"
    return f"changed at revision {pod.spec_revision}, decided on {decided_on}" if pod.spec_revision > decided_on else ""


def _check_node(cluster: Cluster, name: str, decided_on: int) -> str:
    node = cluster.store.get(Key("Node", "", name))
    if node is None or node.deleting:
        return f"node {name} is gone"
    changed = cluster.node_revisions.get(name, node.revision)
    return f"node {name} changed at revision {changed}, decided on {decided_on}" if changed > decided_on else ""


def _check_lent(cluster: Cluster, mutation: Mutation, decided_on: int) -> str:
    """What a node lends changes with what others use on it: that matters to a pod that asks for such resources."""
    changed = cluster.lent_revisions.get(mutation.node, 0)
    pod = _present(cluster, mutation) if changed > decided_on else None
    if pod is None or not any(map(is_lent, current(sound_pod_request(pod.spec)))):
        return ""
    return f"what node {mutation.node} lends changed at revision {changed}, decided on {decided_on}"


_CHECK: dict[Verb, Callable[[Cluster, Mutation, int], str]] = {
    Verb.CREATE: _check_create,
    Verb.PATCH: _check_patch,
    Verb.STATUS: _check_present,
    Verb.DELETE: _check_nothing,
    Verb.BIND: _check_bind,
    Verb.EVICT: _check_nothing,
}


def perform(cluster: Cluster, mutation: Mutation, actor: str) -> None:
    """Do what a built-in controller of the cluster wants; what cannot be done any more is left."""
    cluster.actor = actor
    if not _CHECK[mutation.verb](cluster, mutation, cluster.revision):
        _APPLY[mutation.verb](cluster, mutation, Decision("", mutation.key))


def _create(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    if cluster.store.get(mutation.key) is not None:
        return
    manifest = mutation.manifest or {}
    body = body_of(manifest)
    metadata = {
        name: part
        for name, part in (manifest.get("metadata") or {}).items()
        if name not in ("name", "namespace", "uid", "resourceVersion")
    }
    status = manifest.get("status") or first_status(mutation.key.kind, body)
    cluster.create(mutation.key, metadata, body, status)


NOMINATED = "nominatedNodeName"


def _patch(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    item = _present(cluster, mutation)
    if item is None:
        return
    patch = body_of(mutation.patch or {})
    metadata = merge(item.metadata, (mutation.patch or {}).get("metadata") or {})
    item = cluster.replace(item, metadata, merge(item.body, patch))
    if RATIOS in ((mutation.patch or {}).get("metadata") or {}).get("annotations", {}):
        amplify(cluster, item, {})


def _status(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    item = _present(cluster, mutation)
    if item is not None and mutation.patch:
        cluster.set_status(item, mutation.patch)


def _delete(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    item = _present(cluster, mutation)
    if item is not None:
        cluster.delete(item, mutation.grace_seconds)


def _bind(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    _bind_all(cluster, (mutation,))


def _bind_all(cluster: Cluster, mutations: Iterable[Mutation]) -> None:
    bindings = [
        (pod, mutation.node, _with_devices(pod, mutation.devices) if mutation.devices else pod.metadata)
        for mutation in mutations
        if (pod := _present(cluster, mutation)) is not None
    ]
    for bound in cluster.bind(bindings) if bindings else ():
        if NOMINATED in bound.status:
            cluster.set_status(bound, {NOMINATED: None})


def _with_devices(pod: Object, devices: Manifest) -> Manifest:
    return {**pod.metadata, "annotations": {**pod.annotations, **annotations_of(devices)}}


def _evict(cluster: Cluster, mutation: Mutation, decision: Decision) -> None:
    pod = _present(cluster, mutation)
    if pod is None or pod.deleting:
        return
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": decision.reason,
        "message": decision.message,
        "lastTransitionTime": rfc3339(cluster.now),
    }
    cluster.delete(cluster.set_status(pod, {"conditions": [condition]}), mutation.grace_seconds)


_APPLY: dict[Verb, Callable[[Cluster, Mutation, Decision], None]] = {
    Verb.CREATE: _create,
    Verb.PATCH: _patch,
    Verb.STATUS: _status,
    Verb.DELETE: _delete,
    Verb.BIND: _bind,
    Verb.EVICT: _evict,
}
