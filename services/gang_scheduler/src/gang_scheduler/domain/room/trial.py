"""Placements on trial: laid on the books to see what still fits, taken back to any checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gang_scheduler.domain.devices.allotments import Allotment
from gang_scheduler.domain.dra.claim_book import Grant
from gang_scheduler.domain.dra.requests import Share
from gang_scheduler.domain.dra.slices import DeviceId
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.storage.volume_claims import Choice


class Step(NamedTuple):
    """Pods of one class that were put on one node."""

    records: tuple[PodRecord, ...]
    slot: int
    allotments: tuple[Allotment, ...] = ()
    """The devices of each, where any matter."""

    volumes: tuple[Choice, ...] = ()
    """What their claims are bound to."""

    reservation: str = ""
    """The reservation whose room they use."""

    grants: tuple[Grant, ...] = ()
    """What becomes of their resource claims."""

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """The devices that their resource claims get."""
        return tuple(device for grant in self.grants for device in grant.devices)

    @property
    def shares(self) -> tuple[Share, ...]:
        """What these get of devices that are shared."""
        return tuple(share for grant in self.grants for share in grant.shares)


@dataclass(slots=True)
class Trial:
    """The steps taken so far, newest last. ``room`` always shows them."""

    room: Room
    steps: list[Step] = field(default_factory=list)

    def place(self, records: Sequence[PodRecord], slot: int, reservation: str = "") -> None:
        """Put pods of one class and one group on a node, or into a reservation there; the caller knows that they fit."""
        if reservation:
            for record in records:
                record.reservation = reservation
        first, shape, devices = records[0], records[0].form.shape, self.room.table.devices
        self.room.occupy(records, slot, first.group.queue if first.ours else None)
        allotments: tuple[Allotment, ...] = ()
        if devices.concern(shape.devices):
            allotments = tuple([devices.allotted(slot, record.key) for record in records])
        grants: tuple[Grant, ...] = ()
        if shape.resource_claims:
            grants = tuple(grant for record in records for grant in self.room.claim_book.grants(record.pod))
        chosen = self.room.volumes.choices(shape.claims) if shape.claims else ()
        self.steps.append(Step(tuple(records), slot, allotments, chosen, reservation, grants))

    def checkpoint(self) -> int:
        """A mark to come back to."""
        return len(self.steps)

    def rollback(self, mark: int) -> None:
        """Take back all steps since ``mark``."""
        undone = self.steps[mark:][::-1]
        del self.steps[mark:]
        self.room.vacate_all([step.records for step in undone])
        for step in undone:
            for record in step.records if step.reservation else ():
                record.reservation = ""

    def since(self, mark: int) -> list[Step]:
        """The steps taken since ``mark``."""
        return self.steps[mark:]
