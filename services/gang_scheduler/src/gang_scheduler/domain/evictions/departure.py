"""The books as they will be: without those who leave, with those for whom room is kept. Undone to the last record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.line.claims import Claim, Claims
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.room.room import Room
from gang_scheduler.domain.room.trial import Step

_Place = tuple[PodRecord, int, str | None]


@dataclass(slots=True)
class Departures:
    """Pods taken off the books for a while, and where they were."""

    room: Room
    _gone: dict[int, _Place] = field(default_factory=dict)

    def take(self, records: Sequence[PodRecord]) -> None:
        """Off the books with them; those that are not on them stay as they are."""
        places = [(record, record.slot, record.charged) for record in records if record.slot >= 0]
        self._gone.update((id(place[0]), place) for place in places)
        batches = [[record for record, _, _ in batch] for batch in _alike(places)]
        self.room.vacate_all(batches)
        self.room.claim_book.leave(record.pod for batch in batches for record in batch if record.claim_keys)

    def slot_of(self, record: PodRecord) -> int:
        """The node where one that was taken off was."""
        return self._gone[id(record)][1]

    def put_back(self, records: Sequence[PodRecord]) -> None:
        """Back to where they were."""
        places = [self._gone.pop(id(record)) for record in records if id(record) in self._gone]
        batches = [([record for record, _, _ in batch], *batch[0][1:]) for batch in _alike(places)]
        self.room.claim_book.come_back(record.pod for batch, _, _ in batches for record in batch if record.claim_keys)
        self.room.occupy_all(batches)

    def adopt(self, others: "Departures") -> None:
        """Those whom ``others`` took are gone for these departures from now on."""
        self._gone |= others._gone
        others._gone = {}

    def undo(self) -> None:
        """All of them back."""
        self.put_back([record for record, _, _ in reversed(list(self._gone.values()))])


def _alike(places: Iterable[_Place]) -> Iterable[list[_Place]]:
    """Pods of one shape, at one place and charged to one queue, together: the books take them in one go."""
    batches: dict[tuple[int, int, str | None], list[_Place]] = {}
    for place in places:
        batches.setdefault((place[1], place[0].shape.index, place[2]), []).append(place)
    return batches.values()


@dataclass(slots=True)
class Future:
    """Enters the books of the future and leaves them again."""

    room: Room
    claims: Claims
    leaving: Departures = field(init=False)
    _come: list[PodRecord] = field(default_factory=list)
    _others: set[Unit] = field(default_factory=set)
    """Those for whom nothing was held back before, either."""

    def __post_init__(self) -> None:
        self.leaving = Departures(self.room)

    def enter(self, leaving: Sequence[PodRecord], reserved: Sequence[Claim] = ()) -> None:
        """Nothing is held back any more: those who leave are gone, those who come are there; ``reserved`` are claims to honour."""
        kept = self.claims.kept()
        self._others = {claim.unit for claim in self.claims.all()}.difference(kept)
        self.claims.lift(kept)
        self.leaving.take(leaving)
        for claim in (*self.claims.promises.values(), *reserved):
            for record, node in list(self.claims.waiting(claim)):
                slot = self.room.table.slots.get(node, -1)
                if slot >= 0:
                    self.room.occupy([record], slot, record.group.queue)
                    self._come.append(record)

    def keep(self, leaving: Departures, steps: Iterable[Step]) -> None:
        """Those who are ``leaving`` will be gone and what ``steps`` placed will have come, as the books show already."""
        self.leaving.adopt(leaving)
        for step in steps:
            self._come.extend(step.records)

    def leave(self) -> None:
        """Back to the present."""
        batches = _alike((record, record.slot, record.charged) for record in reversed(self._come))
        self.room.vacate_all([[record for record, _, _ in batch] for batch in batches])
        for record in self._come:
            record.reservation = ""
        self._come.clear()
        self.leaving.undo()
        self.claims.restore(claim.unit for claim in self.claims.all() if claim.unit not in self._others)
