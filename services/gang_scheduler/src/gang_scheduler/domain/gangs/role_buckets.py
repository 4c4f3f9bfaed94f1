"""Buckets of a gang's members that belong on one node: each member joins the bucket that pulls it most, or opens a new one."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.terms.task_topology import TaskTopology

_MIB = 1 << 20


@dataclass(slots=True)
class Bucket:
    """``weight`` is what its members ask for together, in milli-cores and MiB: of buckets that pull alike the lightest gets more."""

    number: int
    records: list[PodRecord] = field(default_factory=list)
    roles: dict[str, int] = field(default_factory=dict)
    weight: int = 0

    @property
    def composition(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(self.roles.items()))

    def add(self, record: PodRecord) -> None:
        self.records.append(record)
        self.roles[record.role] = self.roles.get(record.role, 0) + 1
        self.weight += weight_of(record)


def buckets_of(topology: TaskTopology, records: Sequence[PodRecord]) -> list[Bucket]:
    """The buckets, those with most members first. Buckets that hold the same roles are looked at as one."""
    buckets: list[Bucket] = []
    alike: dict[tuple[tuple[str, int], ...], list[tuple[int, int]]] = {}
    for record in in_order(topology, records):
        bucket = _joined(topology, record, buckets, alike)
        if bucket is None:
            bucket = Bucket(len(buckets))
            buckets.append(bucket)
        bucket.add(record)
        heapq.heappush(alike.setdefault(bucket.composition, []), (bucket.weight, bucket.number))
    return sorted(buckets, key=lambda bucket: (-len(bucket.records), -bucket.weight, bucket.number))


def in_order(topology: TaskTopology, records: Sequence[PodRecord]) -> list[PodRecord]:
    """The records by the order that is asked for; then roles whose replicas keep apart, as they found buckets; small roles first."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.role] = counts.get(record.role, 0) + 1
    places = {role: place for place, role in enumerate(topology.order)}

    def place(role: str) -> tuple[int, bool, int, str]:
        return places.get(role, len(places)), (role, role) not in topology.apart, counts[role], role

    return sorted(records, key=lambda record: (place(record.role), record.order))


def weight_of(record: PodRecord) -> int:
    """What a pod asks for, in milli-cores and MiB added up."""
    requests = record.shape.requests
    return requests.get("cpu", 0) + requests.get("memory", 0) // _MIB


def _joined(
    topology: TaskTopology,
    record: PodRecord,
    buckets: Sequence[Bucket],
    alike: dict[tuple[tuple[str, int], ...], list[tuple[int, int]]],
) -> Bucket | None:
    """The bucket that the record joins, taken out of those alike; None where every one would rather not have it."""
    best: tuple[int, int, int] | None = None
    chosen: tuple[tuple[str, int], ...] = ()
    for composition, heap in alike.items():
        pull = topology.pull(record.role, dict(composition))
        rank = (-pull, *heap[0])
        if pull >= 0 and (best is None or rank < best):
            best, chosen = rank, composition
    if best is None:
        return None
    heapq.heappop(alike[chosen])
    if not alike[chosen]:
        del alike[chosen]
    return buckets[best[2]]
