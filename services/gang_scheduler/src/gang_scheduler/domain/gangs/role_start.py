"""Placing the members of a gang by role: bucket by bucket, each on the node that takes most of it.

The plain rule for one bucket: of the nodes that the first of its members may go to take one where fewest of the gang are that
it wants to be apart from; of those the one with most that it wants to be with and most room for the rest of the bucket; of
those the one with fewest of its own role; of those the best by score and name. Members are put there as long as they fit;
then the rest looks again. These are wishes, so whoever calls places the gang without them where this fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints
from gang_scheduler.domain.gangs.role_buckets import buckets_of
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.rearrangement import ranked
from gang_scheduler.domain.room.shape_view import NO_NODE
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.terms.task_topology import TaskTopology

FAR = 64
"""So many members of a bucket are looked at to see how many fit on a node: more than that on one node make no difference."""


@dataclass(slots=True)
class RoleStart:
    """Places members of one gang. ``seated`` says for each role how many of the gang are on each node."""

    trial: Trial
    topology: TaskTopology
    seated: dict[str, Ints] = field(default_factory=dict)

    def place(self, records: Sequence[PodRecord]) -> bool:
        """Place all of ``records``, which are of roles that something is said about; some may be placed where it fails."""
        for record in records[0].group.members.values():
            if record.slot >= 0:
                self._seat(record.role, record.slot, 1)
        return all(self._place_bucket(bucket.records) for bucket in buckets_of(self.topology, records))

    def _place_bucket(self, rest: list[PodRecord]) -> bool:
        while rest:
            slot = self._best(rest)
            done = 0 if slot == NO_NODE else self._fill(slot, rest)
            if not done:
                return False
            rest = rest[done:]
        return True

    def _best(self, rest: Sequence[PodRecord]) -> int:
        """The node for the first of ``rest``, with as many of the others as possible; NO_NODE where there is none."""
        first = rest[0]
        keys = self._keys(first)
        push, pull = self._pulls(first.role)
        nodes = np.flatnonzero(keys >= 0)
        if not len(nodes):
            return NO_NODE
        nodes = nodes[push[nodes] == push[nodes].min()]
        score = pull[nodes] + self._fitting(rest[:FAR], nodes)
        nodes = nodes[score == score.max()]
        if first.role in self.seated and (first.role, first.role) not in self.topology.near:
            own = self.seated[first.role][nodes]
            nodes = nodes[own == own.min()]
        return int(nodes[keys[nodes].argmax()])

    def _keys(self, record: PodRecord) -> Ints:
        room = self.trial.room
        return ranked(room, record, 1) if room.coupled(record) else room.view(record).keys

    def _pulls(self, role: str) -> tuple[Ints, Ints]:
        """For each node, how many of the gang there a pod of ``role`` wants to be apart from, and how many to be with."""
        push = np.zeros(self.trial.room.table.size, np.int64)
        pull = np.zeros_like(push)
        for other, counts in self.seated.items():
            if (role, other) in self.topology.apart:
                push += counts
            if (role, other) in self.topology.near:
                pull += counts
        return push, pull

    def _fitting(self, rest: Sequence[PodRecord], nodes: Ints) -> Ints:
        """How many of ``rest``, one after the other, there is room for on each of ``nodes``."""
        table = self.trial.room.table
        asked = sorted({row for record in rest for row in table.rows_for(record.shape)})
        free = (table.allocatable[asked] - table.used[asked])[:, nodes]
        places = {row: place for place, row in enumerate(asked)}
        fitting = np.zeros(len(nodes), np.int64)
        for record in rest:
            free[[places[row] for row in record.shape.rows]] -= record.shape.needs_vector
            fitting += (free >= 0).all(axis=0) & self.trial.room.view(record).mask[nodes]
        return fitting

    def _fill(self, slot: int, rest: Sequence[PodRecord]) -> int:
        """Put the first of ``rest`` on the node as long as they fit, and are not better off apart; returns how many."""
        done = 0
        for record in rest:
            if self._keys(record)[slot] < 0 or (done and self._better_elsewhere(record, slot)):
                break
            self.trial.place([record], slot)
            self._seat(record.role, slot, 1)
            done += 1
        return done

    def _better_elsewhere(self, record: PodRecord, slot: int) -> bool:
        push, _ = self._pulls(record.role)
        return bool(push[slot] and (push[self._keys(record) >= 0] < push[slot]).any())

    def _seat(self, role: str, slot: int, count: int) -> None:
        if role not in self.seated:
            self.seated[role] = np.zeros(self.trial.room.table.size, np.int64)
        self.seated[role][slot] += count
