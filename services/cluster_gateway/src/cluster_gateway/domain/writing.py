"""What users write: objects that admission has checked, stored if they are still what the writer saw."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_gateway.domain.cluster import Cluster
from kube import Key, Manifest, Object
from kube.kinds import STATED
from kube.merge import replacement

KEPT = frozenset(("creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"))
"""Metadata that the cluster keeps, whatever a user writes."""


class Conflict(Exception):
    """The object is not what the writer saw. ``revision`` is that of its last change, or the present one if it is gone."""

    def __init__(self, key: Key, revision: int, text: str) -> None:
        super().__init__(f"{key} {text}")
        self.revision = revision


@dataclass(frozen=True, slots=True)
class Parts:
    """An object as it is written: metadata without its identity, body, status. Objects of one template share them."""

    metadata: Manifest
    body: Manifest
    status: Manifest


@dataclass(frozen=True, slots=True)
class Write:
    """Objects of one kind and namespace to be stored, all with the same ``parts``, or to be deleted (None).

    ``expected`` is the revision that the writer saw, 0 for an object that must not exist, None for whatever is there. To be
    deleted is the object of ``uid`` ("" for whatever is there): a request that is sent again finds a later one of the name.
    """

    keys: Sequence[Key]
    parts: Parts | None
    expected: int | None = None
    grace_seconds: int | None = None
    uid: str = ""


def check(cluster: Cluster, write: Write) -> None:
    """Raise Conflict when an object is not as the writer saw it."""
    if write.expected is None:
        return
    for key in write.keys:
        there = cluster.store.get(key)
        if there is None and write.expected:
            raise Conflict(key, cluster.revision - 1, "was deleted meanwhile")
        if there is not None and there.spec_revision > write.expected:
            text = "exists already" if not write.expected else "was changed meanwhile"
            raise Conflict(key, there.spec_revision, text)


def store(cluster: Cluster, write: Write, actor: str) -> None:
    """Do what was checked."""
    cluster.actor = actor
    get, parts = cluster.store.get, write.parts
    if parts is not None and not any(map(get, write.keys)) and len(set(write.keys)) == len(write.keys):
        _create(cluster, write.keys, parts)
        return
    for key in write.keys:
        there = get(key)
        if parts is None:
            if there is not None and write.uid in ("", there.uid):
                cluster.delete(there, write.grace_seconds)
        elif there is None:
            _create(cluster, (key,), parts)
        else:
            kept = {name: there.metadata[name] for name in sorted(KEPT) if name in there.metadata}
            new = cluster.replace(there, {**_own(parts.metadata), **kept}, _with_binding(there, parts.body))
            if new.kind in STATED:
                cluster.set_status(new, replacement(new.status, parts.status))


def _create(cluster: Cluster, keys: Sequence[Key], parts: Parts) -> None:
    metadata = parts.metadata if KEPT.isdisjoint(parts.metadata) else _own(parts.metadata)
    cluster.create_all(keys, metadata, parts.body, parts.status or first_status(keys[0].kind, parts.body))


def _own(metadata: Manifest) -> Manifest:
    """What of the metadata a user decides."""
    return {name: part for name, part in metadata.items() if name not in KEPT}


_GIVEN: dict[str, tuple[str, ...]] = {
    "Pod": ("nodeName",),
    "PersistentVolumeClaim": ("volumeName", "storageClassName"),
    "PersistentVolume": ("claimRef",),
}
"""The fields of a spec that others than the user fill in."""


def _with_binding(there: Object, body: Manifest) -> Manifest:
    """A user's version of what is bound keeps what it is bound to: those fields are the scheduler's and the cluster's."""
    spec = body.get("spec") or {}
    kept = {name: there.spec[name] for name in _GIVEN.get(there.kind, ()) if there.spec.get(name)}
    if there.kind != "Pod":
        kept = {name: part for name, part in kept.items() if name not in spec}
    if all(spec.get(name) == part for name, part in kept.items()):
        return body
    return {**body, "spec": {**spec, **kept}}


_PENDING: Manifest = {"phase": "Pending"}
_ACTIVE: Manifest = {"phase": "Active"}


_GATED: Manifest = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ],
}


def first_status(kind: str, body: Manifest) -> Manifest:
    """The status that an object begins with."""
    if kind == "Pod":
        return _GATED if (body.get("spec") or {}).get("schedulingGates") else _PENDING
    return _ACTIVE if kind == "Namespace" else {}
