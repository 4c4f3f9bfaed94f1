"""Placing members together: all of them, or as many as there is room for.

The plain rule is one pod after the other, each on the best node that passes every rule and has room. Copies of one shape
that do not care about each other are placed node by node instead, which comes to the same when packing: the node that
took one copy stays the best until it is full. Of several shapes the one that fits the fewest nodes goes first.
"""

from collections.abc import Sequence

from gang_scheduler.domain.gangs.role_start import RoleStart
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.rearrangement import place_coupled, ranked
from gang_scheduler.domain.room.reservation_use import place_owners
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.shape_view import NO_NODE
from gang_scheduler.domain.room.trial import Trial
from gang_scheduler.domain.score.scoring import Placement

Batch = list[PodRecord]
"""Pods of one gang and one class."""


def place_all(trial: Trial, records: Sequence[PodRecord]) -> PodRecord | None:
    """Place every one of ``records``; returns the first for which there is no room (others may be placed then)."""
    mark = trial.checkpoint()
    rest = _placed_by_role(trial, records)
    if len(rest) < len(records):
        if not rest or _place_plainly(trial, rest) is None:
            return None
        trial.rollback(mark)
    return _place_plainly(trial, records)


def _placed_by_role(trial: Trial, records: Sequence[PodRecord]) -> Sequence[PodRecord]:
    """Place those whose gang says which roles belong together; returns the others, or all where it does not work out."""
    kept: dict[int, Batch] = {}
    for record in records:
        terms = record.group.terms
        if terms is not None and terms.task_topology is not None and record.role in terms.task_topology.roles:
            kept.setdefault(id(record.group), []).append(record)
    if not kept:
        return records
    mark = trial.checkpoint()
    for batch in kept.values():
        terms = batch[0].group.terms
        assert terms is not None and terms.task_topology is not None, "looked at above"
        if not RoleStart(trial, terms.task_topology).place(batch):
            trial.rollback(mark)
            return records
    return [record for record in records if record.slot < 0]


def _place_plainly(trial: Trial, records: Sequence[PodRecord]) -> PodRecord | None:
    batches = [list(records)] if len(records) == 1 else by_scarcity(trial.room, records)
    for batch in batches:
        if trial.room.view(batch[0]).total < len(batch) and not trial.room.reserved.concerns(batch[0]):
            return batch[0]
    for batch in batches:
        if place_batch(trial, batch) < len(batch):
            return _first_unplaced(batch)
    return None


def place_some(trial: Trial, records: Sequence[PodRecord], enough: int) -> int:
    """Place up to ``enough`` of ``records``, the most abundant shapes last; returns how many."""
    placed = 0
    for batch in by_scarcity(trial.room, records):
        placed += place_batch(trial, batch[: enough - placed])
        if placed >= enough:
            break
    return placed


def by_scarcity(room: Room, records: Sequence[PodRecord]) -> list[Batch]:
    """The records in batches; the shape that fits the fewest nodes first, of such the one with the fewest places."""
    batches: dict[object, Batch] = {}
    group, kind, batch = None, None, Batch()
    for record, its_kind in zip(records, room.classes_of(records), strict=True):
        if record.group is not group or its_kind != kind:
            group, kind = record.group, its_kind
            batch = batches.setdefault((group, kind), [])
        batch.append(record)
    found = list(batches.values())
    if len(found) > 1:
        views = {id(batch): room.view(batch[0]) for batch in found}
        found.sort(key=lambda batch: (views[id(batch)].fitting_nodes(), views[id(batch)].total, batch[0].order))
    return found


def place_batch(trial: Trial, batch: Batch) -> int:
    """Place as many copies as there is room for; returns how many. Those with a nominated node come first."""
    if not batch:
        return 0
    if trial.room.reserved.concerns(batch[0]):
        return place_owners(trial, batch)
    rest = _at_nominated(trial, batch)
    return len(batch) - len(rest) + _place_rest(trial, rest) if rest else len(batch)


def _at_nominated(trial: Trial, batch: Batch) -> Batch:
    """Put those for which a node was nominated there if they fit, as kube-scheduler does; returns the others."""
    if not any(record.nominated for record in batch):
        return batch
    rest = []
    for record in batch:
        slot = trial.room.table.slots.get(record.nominated, NO_NODE)
        if slot != NO_NODE and ranked(trial.room, record, 1)[slot] >= 0:
            trial.place([record], slot)
        else:
            rest.append(record)
    return rest


def _place_rest(trial: Trial, batch: Batch) -> int:
    if trial.room.coupled(batch[0]):
        return place_coupled(trial, batch)
    # Where a share of a card goes best changes with every one that is placed; under spreading, and where use counts, all does.
    room, shape = trial.room, batch[0].shape
    if room.placement_of(batch[0]) is Placement.SPREAD or shape.devices.shares or room.table.load.ranks(shape):
        return _one_by_one(trial, batch)
    return _fill(trial, batch)


def _fill(trial: Trial, batch: Batch) -> int:
    view = trial.room.view(batch[0])
    done = 0
    while done < len(batch):
        slot = view.best()
        if slot == NO_NODE:
            break
        count = min(int(view.copies[slot]), len(batch) - done)
        trial.place(batch[done : done + count], slot)
        view.close(slot)
        done += count
    return done


def _one_by_one(trial: Trial, batch: Batch) -> int:
    for done, record in enumerate(batch):
        slot = trial.room.view(record).best()
        if slot == NO_NODE:
            return done
        trial.place([record], slot)
    return len(batch)


def _first_unplaced(batch: Batch) -> PodRecord:
    return next(record for record in batch if record.slot < 0)
