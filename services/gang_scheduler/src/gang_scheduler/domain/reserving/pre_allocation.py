"""Reservations that may be placed over pods that run: which node, and whose room they wait for.

The plain rule: where there is no free room, a reservation with ``preAllocation`` goes to a node on which it would fit if
some of the pods that it may wait for were gone: one, or, where it may wait for several, so many that none of them can be
spared. The node with the fewest such pods wins, then the one where these come first, then the first by name.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gang_scheduler.domain.pods.pod_record import FINISHED, PodRecord, Standing
from gang_scheduler.domain.reservations.reservation import Reservation
from gang_scheduler.domain.room.room import Room

FLAG = "pod.koordinator.sh/is-pre-allocatable"
PRIORITY = "pod.koordinator.sh/pre-allocatable-priority"


class Ahead(NamedTuple):
    """A place that is free when ``pods`` have gone."""

    node: str
    pods: tuple[PodRecord, ...]


def place_ahead(room: Room, found: Reservation, pods: Sequence[PodRecord]) -> Ahead | None:
    """The best place over ``pods``, those of the cluster; None where there is none."""
    by_slot: dict[int, list[PodRecord]] = {}
    for record in pods:
        if may_wait_for(found, record):
            by_slot.setdefault(record.slot, []).append(record)
    named = str(found.record.pod.spec.get("nodeName") or "")
    best: tuple[int, list[tuple[int, int, str]], str] | None = None
    chosen: Ahead | None = None
    for slot, candidates in by_slot.items():
        node = room.table.names[slot]
        if named and node != named:
            continue
        gone = _whose_room(room, found, slot, sorted(candidates, key=_rank))
        if gone:
            rank = len(gone), [_rank(record) for record in gone], node
            if best is None or rank < best:
                best, chosen = rank, Ahead(node, tuple(gone))
    return chosen


def may_wait_for(found: Reservation, record: PodRecord) -> bool:
    """Whether the reservation may wait for a pod: one that runs, is in no other, and is flagged or would be its owner."""
    if record.slot < 0 or record.assumed or record.reservation or record.standing in (*FINISHED, Standing.LEAVING):
        return False
    if found.terms.flagged:
        return record.pod.labels.get(FLAG) == "true"
    return any(owner.owns(record.pod) for owner in found.terms.owners)


def _whose_room(room: Room, found: Reservation, slot: int, candidates: list[PodRecord]) -> list[PodRecord]:
    """The pods of a node after which the reservation fits there; empty when it does not."""
    if not found.terms.several:
        return next(([record] for record in candidates if _fits(room, found, slot, [record])), [])
    if not _fits(room, found, slot, candidates):
        return []
    gone = list(candidates)
    for record in reversed(candidates):
        rest = [other for other in gone if other is not record]
        if rest and _fits(room, found, slot, rest):
            gone = rest
    return gone


def _fits(room: Room, found: Reservation, slot: int, gone: Sequence[PodRecord]) -> bool:
    """Whether the node would take the reservation without these pods. The books are as before afterwards."""
    queues = [record.charged for record in gone]
    for record in gone:
        room.vacate([record])
    fits = room.view(found.record).copies[slot] > 0
    fits = fits and all(mask[slot] for _, mask in room.coupling_masks(found.record))
    for record, queue in zip(gone, queues, strict=True):
        room.occupy([record], slot, queue)
    return bool(fits)


def _rank(record: PodRecord) -> tuple[int, int, str]:
    """Who is waited for first: those of the highest pre-allocatable priority, then the least important, then by name."""
    return (
        -_number(record.pod.annotations.get(PRIORITY)),
        record.form.priority,
        f"{record.key.namespace}/{record.key.name}",
    )


def _number(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0


def names_of(pods: Sequence[PodRecord]) -> Iterator[str]:
    """How pods are told of."""
    yield from (f"{record.key.namespace}/{record.key.name}" for record in pods)
