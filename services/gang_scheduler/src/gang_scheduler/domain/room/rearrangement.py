"""Placing copies of a pod that care which pods are around them: greedily, and where that fails by a small search.

Nodes that have the same values for all topology labels that the pod names are alike to its rules, so the search tries
only the best of each kind. It gives up after a fixed number of placements, so that a hopeless gang costs no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.shape_view import NO_NODE
from gang_scheduler.domain.room.trial import Trial

MOST_TRIES = 600
MOST_COPIES = 100


def place_coupled(trial: Trial, batch: list[PodRecord]) -> int:
    """Place as many copies as there is room for; returns how many."""
    mark = trial.checkpoint()
    done = _greedily(trial, batch)
    if done == len(batch) or len(batch) > MOST_COPIES or not _possible(trial, mark, batch):
        return done
    greedy = trial.since(mark)
    trial.rollback(mark)
    if _Search(trial, batch, MOST_TRIES).place(0):
        return len(batch)
    for step in greedy:
        trial.place(step.records, step.slot)
    return done


def ranked(room: Room, record: PodRecord, copies: int) -> Ints:
    """The order of the nodes for one pod with all rules applied, -1 where it may not go; ``copies`` are to follow it."""
    view = room.view(record)
    allowed = view.keys >= 0
    for _, mask in room.coupling_masks(record):
        allowed &= mask
    keys = np.where(allowed, view.with_bonus(room.coupling_bonus(record)), NO_NODE)
    return _only_large_domains(room, record, keys, copies) if record.shape.terms.near and copies > 1 else keys


def _greedily(trial: Trial, batch: list[PodRecord]) -> int:
    for done, record in enumerate(batch):
        keys = ranked(trial.room, record, len(batch) - done)
        slot = int(keys.argmax())
        if keys[slot] < 0:
            return done
        trial.place([record], slot)
    return len(batch)


def _only_large_domains(room: Room, record: PodRecord, keys: Ints, copies: int) -> Ints:
    """Leave out domains too small for all copies that must stay near each other, unless every one is."""
    fitting = np.where(keys >= 0, np.minimum(room.view(record).copies, copies), 0)
    for item in record.shape.terms.near:
        large = np.where(room.neighbours.in_domains(fitting, item.topology_key) >= copies, keys, NO_NODE)
        if (large >= 0).any():
            keys = large
    return keys


def _possible(trial: Trial, mark: int, batch: list[PodRecord]) -> bool:
    """Whether the copies that keep each other apart have enough domains at all."""
    placed = [step.slot for step in trial.since(mark)]
    room, record = trial.room, batch[0]
    fitting: Mask = ranked(room, record, 1) >= 0
    fitting[placed] = True
    matched = room.neighbours.matched(record)
    for item in record.shape.terms.apart:
        if room.neighbours.sets[item.term].number not in matched:
            continue
        domains = room.table.labels.column(item.topology_key)[room.view(record).mask]
        if 0 not in domains and len(np.unique(domains)) < len(batch):
            return False
    return bool(fitting.any())


@dataclass(slots=True)
class _Search:
    trial: Trial
    batch: list[PodRecord]
    tries: int

    def place(self, done: int) -> bool:
        """Place the copies from number ``done`` on; leaves nothing placed where it fails."""
        if done == len(self.batch):
            return True
        for slot in self._choices(done):
            if self.tries <= 0:
                return False
            self.tries -= 1
            mark = self.trial.checkpoint()
            self.trial.place([self.batch[done]], slot)
            if self.place(done + 1):
                return True
            self.trial.rollback(mark)
        return False

    def _choices(self, done: int) -> Iterator[int]:
        room, record = self.trial.room, self.batch[done]
        keys = ranked(room, record, len(self.batch) - done).copy()
        columns = [room.table.labels.column(key) for key in self._topology_keys(record)]
        while True:
            slot = int(keys.argmax())
            if keys[slot] < 0:
                return
            yield slot
            alike: Mask = np.ones(len(keys), np.bool_)
            for column in columns:
                alike &= column == column[slot]
            keys[alike] = NO_NODE

    def _topology_keys(self, record: PodRecord) -> list[str]:
        terms = record.shape.terms
        asked = [item.topology_key for item in (*terms.near, *terms.apart)]
        asked += [item.topology_key for item in terms.spread if item.hard]
        asked += [item.topology_key for item in self.trial.room.neighbours.repelled_by(record)]
        return sorted(set(asked))
