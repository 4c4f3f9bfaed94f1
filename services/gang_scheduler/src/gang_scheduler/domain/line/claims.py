"""Room that is kept for somebody who cannot take it yet: because victims still leave it, or because its turn has come.

The plain rule: of the room on a node, others may have what is left when everybody has gone whose room is counted on and
everybody has come for whom room is kept. So what is held back now is what is kept less what is still to be freed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gang_scheduler.domain.books.pod_books import PodBooks
from gang_scheduler.domain.dra.requests import Share
from gang_scheduler.domain.dra.slices import DeviceId
from gang_scheduler.domain.line.waiting_line import Unit
from gang_scheduler.domain.pods.pod_record import PodRecord, Standing
from gang_scheduler.domain.pods.pod_shape import PodShape
from kube import Key
from resources import Amounts


class Basis(StrEnum):
    """Why room is kept."""

    PROMISE = "promise"
    """Others were evicted, or leave by themselves, and it was decided who gets their room."""
    RESERVATION = "reservation"
    """A unit has waited too long at the head of its queue."""


@dataclass(slots=True, eq=False)
class Claim:
    """Room kept for a unit: where its pods will go, and the pods whose room is counted on."""

    unit: Unit
    basis: Basis
    places: dict[Key, tuple[str, str]]
    """For each pod its uid and its node."""

    awaited: dict[Key, str] = field(default_factory=dict)
    """The uids of those whose room is to come."""

    until: int | None = None
    """When it will be taken, in milliseconds since the epoch, where that is known."""

    earliest: int | None = None
    """Before then it cannot be taken, as somebody who is awaited runs so long: until then others may use its room."""

    devices: tuple[DeviceId, ...] = ()
    """What its pods' own claims of devices will get."""

    shares: tuple[Share, ...] = ()
    """And what of devices that are shared."""

    ordered: bool = False
    """Whether the evictions that it rests on have become facts."""


@dataclass(slots=True)
class Claims:
    """All claims, and their effect on the books."""

    books: PodBooks
    promises: dict[Unit, Claim] = field(default_factory=dict)
    reservations: dict[Unit, Claim] = field(default_factory=dict)
    now: int = 0
    """The time of the pass, for what is expected to end by then."""

    _lifted: set[Unit] = field(default_factory=set)
    _by_node: dict[str, dict[Key, Claim]] = field(default_factory=dict)
    _awaited: dict[Key, dict[int, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.promises or self.reservations)

    def all(self) -> Iterator[Claim]:
        """Promises first, each in the order in which they were made."""
        yield from self.promises.values()
        yield from self.reservations.values()

    def add(self, claim: Claim) -> None:
        """Keep room from now on; a claim of the same unit and kind ends."""
        index = self.promises if claim.basis is Basis.PROMISE else self.reservations
        self._forget(index.get(claim.unit))
        index[claim.unit] = claim
        for key, (_, node) in claim.places.items():
            self._by_node.setdefault(node, {})[key] = claim
        for key, uid in claim.awaited.items():
            self._awaited.setdefault(key, {})[id(claim)] = uid
        self.renew(self._nodes_of(claim))

    def end(self, claim: Claim) -> None:
        """Keep nothing for it any more."""
        index = self.promises if claim.basis is Basis.PROMISE else self.reservations
        if index.get(claim.unit) is claim:
            del index[claim.unit]
            self._forget(claim)
            self.renew(self._nodes_of(claim))
            if claim.unit not in self.promises and claim.unit not in self.reservations:
                self._lifted.discard(claim.unit)

    def lift(self, units: Sequence[Unit]) -> None:
        """For a moment keep nothing for these units: one of them takes its room, or somebody may pass them."""
        if not units:
            return
        new = [unit for unit in units if unit not in self._lifted]
        self._lifted.update(new)
        self._renew_units(new)

    def restore(self, units: Iterable[Unit]) -> None:
        """Keep again what was kept before ``lift``."""
        found = list(units)
        if not found:
            return
        self._lifted.difference_update(found)
        self._renew_units(found)

    def kept(self) -> list[Unit]:
        """The units for which room is held back now."""
        return [claim.unit for claim in self.all() if claim.unit not in self._lifted]

    def renew(self, nodes: Iterable[str] | None = None) -> None:
        """Make the books hold back what they should, on these nodes (None: on all) and in the queues."""
        table = self.books.room.table
        if nodes is None:
            named = {table.names[slot] for slot in table.held} | self._by_node.keys()
            nodes = sorted(named)
        for node in nodes:
            slot = table.slots.get(node, -1)
            if slot >= 0:
                table.hold(slot, self._hold_on(node, slot))
        self._renew_queues()
        self._renew_devices()

    def waiting(self, claim: Claim) -> Iterator[tuple[PodRecord, str]]:
        """The pods for which room is still to be taken, with their nodes."""
        for key, (uid, node) in claim.places.items():
            record = self.books.pods.get(key)
            if record is not None and record.pod.uid == uid and record.slot < 0:
                yield record, node

    def comes(self, record: PodRecord) -> bool:
        """Whether the room of a pod on a node is counted on."""
        if record.standing is Standing.LEAVING or record.evicting:
            return True
        return any(uid == record.pod.uid for uid in self._awaited.get(record.key, {}).values())

    def holds(self, claim: Claim) -> bool:
        """Whether a claim still has a point: all its pods wait or are being bound, and none of it is a fact yet."""
        for key, (uid, _) in claim.places.items():
            record = self.books.pods.get(key)
            if record is None or record.pod.uid != uid:
                return False
            if not (record.assumed or record.standing is Standing.PENDING):
                return False
        return True

    def pending_room(self, claim: Claim) -> bool:
        """Whether room that the claim counts on is still to come."""
        for key, uid in claim.awaited.items():
            record = self.books.pods.get(key)
            if record is None or record.pod.uid != uid or record.slot < 0:
                continue
            if claim.basis is Basis.RESERVATION or not claim.ordered or self.leaves(record):
                return True
        if claim.awaited and self.books.room.claim_book.reserved_for(set(claim.awaited.values())):
            return True  # What they had of devices is not given back yet.
        nodes = {node for _, node in claim.places.values()}
        return any(self.leaves(record) for node in nodes for record in self.books.on_node.get(node, {}).values())

    @staticmethod
    def leaves(record: PodRecord) -> bool:
        """Whether a pod that is on a node is on its way out."""
        return record.slot >= 0 and (record.standing is Standing.LEAVING or record.evicting)

    def _hold_on(self, node: str, slot: int) -> dict[int, int]:
        counts: dict[PodShape, int] = {}
        until = 0
        for key, claim in self._by_node.get(node, {}).items():
            if claim.unit in self._lifted:
                continue
            record = self.books.pods.get(key)
            if record is None or record.slot >= 0:
                continue
            if record.pod.uid == claim.places[key][0]:
                until = max(until, claim.earliest or 0)
                counts[record.form.shape] = counts.get(record.form.shape, 0) + 1
        if not counts:
            return {}
        for record in self.books.on_node.get(node, {}).values():
            if record.slot == slot and (self.comes(record) or self._ends_by(record, until)):
                counts[record.form.shape] = counts.get(record.form.shape, 0) - 1
        kept: dict[int, int] = {}
        for shape, count in counts.items():
            _add(kept, zip(shape.rows, shape.needs, strict=True), count)
        return {row: amount for row, amount in kept.items() if amount > 0}

    def _ends_by(self, record: PodRecord, until: int) -> bool:
        """Whether a pod ends before a reservation is taken up."""
        end = self.books.run_times.expected_end(record, self.now) if until else None
        return end is not None and end <= until

    def _renew_queues(self) -> None:
        ledger = self.books.room.ledger
        if not self and not ledger.held:
            return
        kept: dict[str, Amounts] = {}
        for claim in self.all():
            if claim.unit in self._lifted:
                continue
            for record, _ in self.waiting(claim):
                if ledger.capped(record.group.queue):
                    for queue in ledger.chain(record.group.queue):
                        _add(kept.setdefault(queue, {}), record.shape.requests.items(), 1)
        counted: set[Key] = set()
        for claim in self.all() if kept else ():
            for key, uid in claim.awaited.items():
                found = self.books.pods.get(key)
                if key in counted or found is None or found.pod.uid != uid or found.charged is None:
                    continue
                counted.add(key)
                for queue in ledger.chain(found.charged):
                    if queue in kept:
                        _add(kept[queue], found.shape.requests.items(), -1)
        for queue in sorted(ledger.held.keys() | kept.keys()):
            amounts = kept.get(queue, {})
            ledger.hold(queue, {name: amount for name, amount in amounts.items() if amount > 0})

    def _renew_devices(self) -> None:
        kept = [
            claim
            for claim in self.all()
            if (claim.devices or claim.shares)
            and claim.unit not in self._lifted
            and any(True for _ in self.waiting(claim))
        ]
        devices = frozenset(device for claim in kept for device in claim.devices)
        self.books.room.claim_book.keep(devices, [share for claim in kept for share in claim.shares])

    def _renew_units(self, units: Iterable[Unit]) -> None:
        found = [index[unit] for unit in units for index in (self.promises, self.reservations) if unit in index]
        if found:
            self.renew(sorted({node for claim in found for _, node in claim.places.values()}))

    def _nodes_of(self, claim: Claim) -> list[str]:
        return sorted({node for _, node in claim.places.values()})

    def _forget(self, claim: Claim | None) -> None:
        if claim is None:
            return
        for key, (_, node) in claim.places.items():
            here = self._by_node.get(node, {})
            if here.get(key) is claim:
                del here[key]
                if not here:
                    del self._by_node[node]
        for key in claim.awaited:
            waits = self._awaited.get(key, {})
            waits.pop(id(claim), None)
            if not waits:
                self._awaited.pop(key, None)


def _add(total: dict[int, int] | dict[str, int], parts: Iterable[tuple[object, int]], sign: int) -> None:
    sums: dict[object, int] = total  # type: ignore[assignment]
    for name, amount in parts:
        sums[name] = sums.get(name, 0) + amount * sign
