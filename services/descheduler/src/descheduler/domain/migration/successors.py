"""Pods that come in the place of one that was moved: until a report tells of them they use what that one did."""

from dataclasses import dataclass, field

from descheduler.domain.migration.job import SUCCEEDED, Migration
from descheduler.domain.migration.migration_book import MigrationBook
from kube import Key, Manifest, Object, Store, from_manifest
from resources import Amounts


def successor(store: Store, job: Migration) -> Object | None:
    """The pod that has taken the reservation of a job."""
    item = store.get(job.reservation)
    for owner in (item.status.get("currentOwners") or ()) if item is not None else ():
        found = store.get(Key("Pod", str(owner.get("namespace") or ""), str(owner.get("name") or "")))
        if found is not None and found.uid == owner.get("uid") and found.uid != job.pod_uid:
            return found
    return None


@dataclass(slots=True)
class Successors:
    """``uses`` by the uid of a pod that has come; ``awaited`` are pods that will come to a node, as their reservations have them."""

    uses: dict[str, Amounts] = field(default_factory=dict)
    awaited: list[tuple[str, Object, Amounts]] = field(default_factory=list)


def successors(book: MigrationBook) -> Successors:
    """Of all moves of which the use is known."""
    made = Successors()
    for job in book.all():
        if not job.uses:
            continue
        if job.phase == SUCCEEDED:
            made.uses[job.successor_uid] = job.uses
        elif job.begun and job.evicted_at is not None and not job.direct:
            come = successor(book.store, job)
            node = book.destination(job)
            if come is not None:
                made.uses[come.uid] = job.uses
            elif node and book.store.get(job.pod) is None:
                made.awaited.append((node, as_reserved(book.store, job), job.uses))
    return made


def as_reserved(store: Store, job: Migration) -> Object:
    """The pod that its reservation waits for, by the name of the one that left."""
    item = store.get(job.reservation)
    template: Manifest = (item.spec.get("template") or {}) if item is not None else {}
    metadata = {**(template.get("metadata") or {}), "namespace": job.pod.namespace, "name": job.pod.name}
    return from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}})
