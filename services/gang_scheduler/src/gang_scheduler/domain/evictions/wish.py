"""Somebody who needs room, and how much of it there is and is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.cluster import Cluster
from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.evictions.lot_table import Demand
from gang_scheduler.domain.gangs.gang import by_scarcity
from gang_scheduler.domain.pods.groups import Group
from gang_scheduler.domain.pods.pod_record import PodRecord, requests_of
from resources import Amounts


@dataclass(slots=True, eq=False)
class Wish:
    """Somebody who needs room: the members to place, and how to try it. ``attempt`` leaves them placed where it succeeds."""

    groups: list[Group]
    records: list[PodRecord]
    priority: int
    attempt: Callable[[], bool]
    ask: Amounts = field(init=False)
    """What all its members ask for together."""

    def __post_init__(self) -> None:
        self.ask = requests_of(self.records)

    @property
    def queue(self) -> str:
        return self.groups[0].queue


def demands(cluster: Cluster, records: Sequence[PodRecord]) -> list[Demand]:
    """What ``records`` need, shape by shape; the one that fits the fewest nodes first."""
    room, found = cluster.room, []
    for batch in by_scarcity(room, records):
        shape = batch[0].shape
        found.append(Demand(room.table.rows_for(shape), shape.needs_vector, room.view(batch[0]).mask, len(batch)))
    return found


def short_resources(cluster: Cluster, wish: Wish) -> list[str]:
    """The resources of which there is too little even if nothing else mattered; all of them if it is none alone."""
    free = free_room(cluster, wish.records)
    short: dict[str, None] = {}
    asked: dict[str, None] = {}
    for batch in by_scarcity(cluster.room, wish.records):
        shape, mask = batch[0].shape, cluster.room.view(batch[0]).mask
        for name, row, need in zip(shape.requests, cluster.room.table.rows_for(shape), shape.needs, strict=True):
            asked[name] = None
            alone = Demand([row], np.array([[need]], np.int64), mask, len(batch))
            if int(alone.copies(free).sum()) < len(batch):
                short[name] = None
    lack = cluster.room.ledger.lack(wish.queue, wish.ask)
    short |= dict.fromkeys(lack[1] if lack else ())
    return list(short or asked)


def free_room(cluster: Cluster, records: Sequence[PodRecord]) -> Ints:
    """What is free on every node as the books stand, negative where a node is overfull.

    What reservations hold for any of ``records`` counts as free; the attempt then sees to whose it is.
    """
    table, reserved = cluster.room.table, cluster.room.reserved
    free = table.allocatable - table.used
    for name in dict.fromkeys(name for record in records for name in reserved.matching(record)):
        found = reserved.standing[name]
        for resource, amount in found.held.items():
            free[table.resources.rows[resource], found.slot] += amount
    return free
