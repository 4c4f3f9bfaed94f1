"""Placing the owners of reservations: into reserved room first, then where everybody may go."""

from collections.abc import Iterator

from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.reservations.reservation import Reservation
from gang_scheduler.domain.reservations.reservation_terms import wish_of
from gang_scheduler.domain.room.rearrangement import ranked
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.shape_view import NO_NODE
from gang_scheduler.domain.room.trial import Trial
from kube.words import counted
from resources.amounts import format_amount

NAMED = 4
"""So many reservations are named in a message."""


def place_owners(trial: Trial, batch: list[PodRecord]) -> int:
    """Place as many copies as there is room for, one after the other; returns how many. They are the first of the batch.

    Who has a nominated node goes there if it can, be it into a reservation or beside: others may have left it for that.
    """
    for done, record in enumerate(batch):
        nominated = trial.room.table.slots.get(record.nominated, NO_NODE)
        places = [None] if nominated == NO_NODE else [nominated, None]
        copies = len(batch) - done
        if not any(_inside(trial, record, only) or _beside(trial, record, copies, only) for only in places):
            return done
    return len(batch)


def used_by(room: Room, record: PodRecord) -> str:
    """What became of each reservation that the pod might have used, in words; "" when there is none."""
    reserved, wish = room.reserved, wish_of(record.pod)
    if not reserved.by_name and not wish.required:
        return ""
    known = list(_worth_telling(room, record))
    told = [f"reservation {found.name}: {_why_not(room, found, record)}" for found in known[:NAMED]]
    if len(known) > NAMED:
        told.append(counted(len(known) - NAMED, "more reservation"))
    if wish.required:
        none = f"reservation {wish.name} is not there" if wish.name else "none is there"
        return f"the pod goes only into a reservation, {'and ' + none if not told else '; '.join(told)}"
    return "; ".join(told)


def _inside(trial: Trial, record: PodRecord, only: int | None) -> bool:
    """Put one pod into the best reservation that it may use and that has room, of those at ``only`` (None: of all)."""
    for found in trial.room.reserved.candidates(record):
        if only in (None, found.slot) and _fits(trial.room, found, record):
            trial.place([record], found.slot, found.name)
            return True
    return False


def _beside(trial: Trial, record: PodRecord, copies: int, only: int | None) -> bool:
    """Put one pod where everybody may go, at ``only`` (None: anywhere).

    Who ignores reservations takes what they hold as if it were free.
    """
    wish, reserved = wish_of(record.pod), trial.room.reserved
    if wish.required:
        return False
    standing = list(reserved.standing.values()) if wish.ignores else []
    for found in standing:
        reserved.lift(found, up=True)
    keys = ranked(trial.room, record, copies)
    slot = int(keys.argmax()) if only is None else only
    if keys[slot] >= 0:
        trial.place([record], slot)
    for found in standing:
        reserved.lift(found, up=False)
    return bool(keys[slot] >= 0)


def _fits(room: Room, found: Reservation, record: PodRecord) -> bool:
    """Whether the node has room for the pod when the reservation lets go of what it holds."""
    room.reserved.lift(found, up=True)
    fits = room.view(record).copies[found.slot] > 0
    fits = fits and all(mask[found.slot] for _, mask in room.coupling_masks(record))
    room.reserved.lift(found, up=False)
    return bool(fits)


def _worth_telling(room: Room, record: PodRecord) -> Iterator[Reservation]:
    """Those that the pod owns; where it names one, only that, whether the pod owns it or not."""
    wish = wish_of(record.pod)
    for name, found in sorted(room.reserved.by_name.items()):
        if wish.name == name if wish.name else any(owner.owns(record.pod) for owner in found.terms.owners):
            yield found


def _why_not(room: Room, found: Reservation, record: PodRecord) -> str:
    if found.slot < 0:
        return f"it is {found.phase}" if not found.node else f"its node {found.node} is not there"
    objection = room.reserved.objection(found, record)
    if objection:
        return objection
    if found.used_up:
        return f"it was for one pod, and {min(found.owners).name} has it"
    lacks = found.lacks(record)
    left = found.left()
    if lacks:
        words = [
            f"{name} (needs {format_amount(name, record.shape.requests[name])}, {format_amount(name, left[name])} left)"
            for name in lacks
        ]
        return f"it has too little {' and '.join(words)} and gives no more than is reserved"
    if not _fits(room, found, record):
        return f"with it, {found.node} still has too little room, or may not take the pod"
    return f"it has room on {found.node}"
