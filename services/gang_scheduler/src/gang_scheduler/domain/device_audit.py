"""The invariants of the books of devices, for tests: nothing is given twice, and rebuilding the books gives the same."""

from collections.abc import Iterator

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.pods.pod_record import PodRecord


def misgiven(cluster: Cluster) -> Iterator[str]:
    """Pods of decisions on their way that get too little, or something that another pod has too."""
    devices = cluster.room.table.devices
    for record in cluster.pods.values():
        if record.assumed and record.slot >= 0 and record.shape.devices.special:
            yield from _lacking(record)
            yield from _overcommitted(record, devices.room(record.slot))
    yield from cluster.room.claim_book.pools.overdrawn()


def differences(cluster: Cluster, other: Cluster) -> Iterator[str]:
    """Nodes whose devices are counted otherwise in a cluster that was rebuilt."""
    for name, slot in sorted(cluster.room.table.slots.items()):
        mine = cluster.room.table.devices.room(slot)
        theirs = other.room.table.devices.room(other.room.table.slots[name])
        if mine != theirs:
            yield f"devices of node {name}: {mine} is free, rebuilt it is {theirs}"
        yield from _unpublished(cluster, name, slot, mine)
    pools = [one.room.claim_book.pools for one in (cluster, other)]
    taken, anew = ((one.users, one.sharers, one.drawn) for one in pools)
    if taken != anew:
        yield f"devices of claims: {taken} are taken, rebuilt they are {anew}"


def _lacking(record: PodRecord) -> Iterator[str]:
    need, given = record.shape.devices, record.given
    if need.cards and len(given.cards) != need.cards.count:
        yield f"pod {record.key.name} gets the cards {given.cards}, it needs {need.cards.count}"
    if given.slices and len(given.slices) != sum(one.count for one in need.slices):
        yield f"pod {record.key.name} gets the MIG instances {given.slices}, it needs {need.slices}"
    if len(given.cpus) < need.cpus:
        yield f"pod {record.key.name} gets the CPUs {given.cpus}, it needs {need.cpus}"


def _overcommitted(record: PodRecord, room: NodeRoom) -> Iterator[str]:
    given = record.given
    for at, card in enumerate(room.cards):
        if card.index in given.cards and min(room.core[at], room.memory[at], room.slots[at]) < 0:
            yield f"card {card.index} of node {record.node} is given twice, to pod {record.key.name} too"
    if room.mig.overlaps(given.slices):
        yield f"MIG instances {given.slices} of node {record.node} overlap with another pod's, and are of {record.key.name}"
    shared = [cpu for cpu in given.cpus if room.owned.get(cpu) != 1]
    if shared:
        yield f"CPUs {shared} of node {record.node} belong to more pods than {record.key.name}"
    for at, cell in enumerate(room.layout.cells):
        if (
            any(share.cell == cell.number for share in given.shares)
            and min(room.cell_cpu[at], room.cell_memory[at]) < 0
        ):
            yield f"NUMA node {cell.number} of node {record.node} is overfull with pod {record.key.name}"


def _unpublished(cluster: Cluster, name: str, slot: int, room: NodeRoom) -> Iterator[str]:
    free = cluster.room.table.devices.free
    columns = (free.core, free.memory, free.slots), (free.cell_cpu, free.cell_memory)
    shown = [matrix[: len(room.cards), slot].tolist() for matrix in columns[0]]
    shown += [matrix[: len(room.cell_cpu), slot].tolist() for matrix in columns[1]]
    if shown != [room.core, room.memory, room.slots, room.cell_cpu, room.cell_memory]:
        yield f"devices of node {name}: the vectors show {shown}"
