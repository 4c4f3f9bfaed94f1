"""The invariants of the scheduler's state, for tests: the books balance, and rebuilding them gives the same."""

from collections.abc import Iterator

import numpy as np

from gang_scheduler.domain import device_audit
from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import Standing, standing_of
from gang_scheduler.domain.queues.queue_ledger import QueueLedger
from kube import Event


def audit(cluster: Cluster) -> list[str]:
    """What does not hold, in words; empty when all is well."""
    excess, anew = _excess(cluster), rebuilt(cluster)
    problems = [*excess, *_overfull_nodes(cluster), *_wrong_standings(cluster), *_differences(cluster, anew)]
    return [*problems, *device_audit.misgiven(cluster), *device_audit.differences(cluster, anew)]


def rebuilt(cluster: Cluster) -> Cluster:
    """A cluster folded anew from the newest versions of all objects, with the same assumptions."""
    copy = Cluster(cluster.schedulers, cluster.placement)
    copy.room.ledger.queues, copy.quotas = {}, cluster.quotas
    if cluster.room.ledger.queues is not None:
        copy.hear(cluster.room.ledger.queues)
    copy.classes.update(cluster.classes)
    copy.room.ledger.created.update(cluster.room.ledger.created)
    copy.room.neighbours.namespaces.update(cluster.room.neighbours.namespaces)
    copy.forms.runtime_classes.by_name.update(cluster.forms.runtime_classes.by_name)
    copy.namespace_annotations.update(cluster.namespace_annotations)
    objects = [
        *cluster.descriptions.values(),
        *cluster.nodes.values(),
        *cluster.room.volumes.objects(),
        *(found.item for found in cluster.room.reserved.by_name.values()),
        *(g.pod_group for g in cluster.groups.values() if g.pod_group),
    ]
    copy.fold(Event(None, item) for item in objects)
    copy.room.volumes.decided.update(cluster.room.volumes.decided)
    cluster.room.claim_book.rebuild(copy.room.claim_book)
    copy.fold(Event(None, record.pod) for record in cluster.pods.values())
    for found in cluster.room.reserved.by_name.values():
        if found.assumed:
            over = [copy.pods[key] for key in found.owners] if found.ahead else []
            copy.room.reserved.assume(found.name, found.node, over)
    for record in cluster.pods.values():
        if record.assumed:
            copy.pods[record.key].given = record.given
            copy.pods[record.key].reservation = record.reservation
            copy.assume([copy.pods[record.key]], record.node)
    return copy


def _overfull_nodes(cluster: Cluster) -> Iterator[str]:
    """Nodes that decisions on their way would overfill. What is bound already may exceed a node that shrank."""
    table = cluster.room.table
    assumed = {record.slot for record in cluster.pods.values() if record.assumed and record.slot >= 0}
    for name, slot in sorted(table.slots.items()):
        # Who ignores reservations may take what they hold: then they hold less than they should, and no pod has too much.
        held = _held(cluster, slot)
        for resource, amount in cluster.room.reserved.held_at(slot).items():
            held[table.resources.rows[resource]] += amount
        over = table.used[:, slot] - held > table.allocatable[:, slot]
        asked = {row for r in cluster.pods.values() if r.slot == slot and r.assumed for row in r.shape.rows}
        for resource, row in table.resources.rows.items():
            if slot in assumed and row in asked and over[row]:
                yield f"node {name}: {table.used[row, slot]} of {table.allocatable[row, slot]} {resource} used"


def _excess(cluster: Cluster) -> list[str]:
    """Queues that decisions on their way carry over their capability; what was bound by others may be above it."""
    if not any(record.assumed for record in cluster.pods.values()):
        return []
    return cluster.room.ledger.excess()


def _wrong_standings(cluster: Cluster) -> Iterator[str]:
    for group in cluster.groups.values():
        counts = [0] * len(Standing)
        for record in group.members.values():
            counts[standing_of(record)] += 1
        if counts != group.counts:
            yield f"{group.name}: members stand {counts}, counted are {group.counts}"
        waiting = {record.key for record in group.members.values() if record.standing is Standing.PENDING}
        if waiting != group.pending.keys():
            yield f"{group.name}: {sorted(waiting)} wait, noted are {sorted(group.pending)}"
        yield from _half_started(group)


def _half_started(group: Group) -> Iterator[str]:
    """A gang all of whose placed members are only assumed is being started: it needs its whole minimum."""
    live = [record for record in group.members.values() if record.node or record.standing is Standing.SUCCEEDED]
    if not live or group.terms is None or any(not record.assumed for record in live):
        return
    if len(live) < group.terms.min_member:
        yield f"{group.name}: {len(live)} members are placed, {group.terms.min_member} are needed at once"


def _differences(cluster: Cluster, other: Cluster) -> Iterator[str]:
    for name in sorted(cluster.room.table.slots.keys() | other.room.table.slots.keys()):
        mine, theirs = _used(cluster, name), _used(other, name)
        if mine != theirs:
            yield f"node {name}: {mine} is counted, rebuilt it is {theirs}"
    ledger, anew = cluster.room.ledger, other.room.ledger
    for queue in sorted(ledger.used.keys() | anew.used.keys()):
        mine, theirs = _charged(ledger, queue), _charged(anew, queue)
        if mine != theirs:
            yield f"queue {queue}: {mine} is charged, rebuilt it is {theirs}"
    for term, census in cluster.room.neighbours.sets.items():
        twin = other.room.neighbours.sets.get(term)
        if twin is None or int(census.counts.sum()) != int(twin.counts.sum()) or census.users != twin.users:
            yield f"pods with {term}: {census.counts.sum()} are counted, rebuilt it is another number"
    for group in cluster.groups.values():
        twin_group = other.groups.get(group.id)
        if twin_group is None or twin_group.queue != group.queue or twin_group.counts != group.counts:
            yield f"{group.name}: rebuilt it is another group"


def _used(cluster: Cluster, node: str) -> dict[str, int]:
    table = cluster.room.table
    slot = table.slots.get(node)
    if slot is None:
        return {}
    used = table.used[:, slot] - _held(cluster, slot)
    return _nonzero({name: int(used[row]) for name, row in table.resources.rows.items() if row < len(used)})


def _held(cluster: Cluster, slot: int) -> Ints:
    """What is kept on a node for somebody, by row."""
    table = cluster.room.table
    held = np.zeros(len(table.used), np.int64)
    for row, amount in table.held.get(slot, {}).items():
        held[row] = amount
    return held


def _charged(ledger: QueueLedger, queue: str) -> dict[str, int]:
    held = ledger.held.get(queue, {})
    return _nonzero({name: amount - held.get(name, 0) for name, amount in ledger.used.get(queue, {}).items()})


def _nonzero(amounts: dict[str, int]) -> dict[str, int]:
    return {name: int(np.int64(amount)) for name, amount in amounts.items() if amount}
