"""What is taken: on the nodes, of ports, of the queues, and of the space around pods. Changed by one pair of operations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gang_scheduler.domain.columns.vectors import Ints, Mask
from gang_scheduler.domain.dra.claim_book import ClaimBook
from gang_scheduler.domain.near.pod_affinity import NeighbourIndex
from gang_scheduler.domain.near.topology_spread import spread_bonus, spread_masks
from gang_scheduler.domain.nodes.filters import StaticMasks
from gang_scheduler.domain.nodes.host_ports import PortIndex
from gang_scheduler.domain.nodes.node_table import NodeTable
from gang_scheduler.domain.pods.pod_record import PodRecord
from gang_scheduler.domain.pods.pod_shape import PodShape
from gang_scheduler.domain.queues.queue_ledger import QueueLedger
from gang_scheduler.domain.reservations.reserved_room import ReservedRoom
from gang_scheduler.domain.room.shape_view import ShapeView, ShapeViews
from gang_scheduler.domain.room.standing import Standing
from gang_scheduler.domain.score.foresight import Foresight
from gang_scheduler.domain.score.outlook import Outlook
from gang_scheduler.domain.score.placement_choice import PlacementChoices
from gang_scheduler.domain.score.scoring import Placement
from gang_scheduler.domain.storage.volume_claims import VolumeBooks
from gang_scheduler.domain.topology.hyper_nodes import HyperNodes
from gang_scheduler.domain.topology.level_trees import LevelTrees
from kube import Key

PodClass = tuple[int, tuple[int, ...], tuple[str, ...]]
"""Pods of one class are alike to every rule: one shape, members of the same sets that other pods name, owners of the same
reservations."""


@dataclass(slots=True)
class _Sums:
    """What many pods take or leave, together: by slot and row, and by queue and shape."""

    amounts: dict[int, dict[int, int]] = field(default_factory=dict)
    counts: dict[tuple[str | None, PodShape], int] = field(default_factory=dict)

    def add(self, shape: PodShape, slot: int, queue: str | None, count: int) -> None:
        here = self.amounts.setdefault(slot, {})
        for row, need in zip(shape.rows, shape.needs, strict=True):
            here[row] = here.get(row, 0) + need * count
        self.counts[queue, shape] = self.counts.get((queue, shape), 0) + count


@dataclass(slots=True)
class Room:
    """The books of a cluster. A pod counts in all of them or in none."""

    table: NodeTable
    ledger: QueueLedger
    placement: Placement
    neighbours: NeighbourIndex = field(init=False)
    ports: PortIndex = field(init=False)
    static: StaticMasks = field(init=False)
    foresight: Outlook = field(init=False)
    choices: PlacementChoices = field(init=False)
    views: ShapeViews = field(init=False)
    hyper_nodes: HyperNodes = field(init=False)
    level_trees: LevelTrees = field(init=False)
    claim_book: ClaimBook = field(init=False)
    volumes: VolumeBooks = field(init=False)
    reserved: ReservedRoom = field(init=False)
    fence: Mask | None = None
    """While an attempt goes on inside a network domain: the nodes of the domain."""

    def __post_init__(self) -> None:
        self.neighbours = NeighbourIndex(self.table)
        self.ports = PortIndex(self.table)
        self.static = StaticMasks(self.table)
        self.foresight = Foresight(self.table, self.static, lambda: self.views.kernels())
        self.choices = PlacementChoices(self.placement, self.ledger)
        self.views = ShapeViews(self.table, self.placement, self.foresight, Standing(self.table, self.static))
        self.hyper_nodes = HyperNodes(self.table)
        self.level_trees = LevelTrees(self.table)
        self.claim_book = ClaimBook(self.table)
        self.volumes = VolumeBooks(self.table)
        self.reserved = ReservedRoom(self.table, self.ports)

    def occupy(self, records: Sequence[PodRecord], slot: int, queue: str | None) -> None:
        """Pods of one shape take room at ``slot`` and of ``queue`` (None: they are not charged)."""
        # What a reservation holds of the node's devices gives way before its owner takes some, and is held anew after.
        owners = [record for record in records if record.reservation] if self.reserved.by_name else ()
        for record in owners:
            self.reserved.give_way(record, slot)
        self._move(records, slot, 1)
        table, shape = self.table, records[0].form.shape
        if table.devices.concern(shape.devices):
            table.devices.take(slot, [record.tenant() for record in records])
        if slot in table.load.by_slot:
            table.load.take(slot, [record.newcomer() for record in records])
        if shape.resource_claims:
            self.claim_book.place([record.pod for record in records if not record.node], shape, slot)
        for record in records:
            record.slot, record.charged = slot, queue
        for record in owners:
            self.reserved.move(record, slot, 1)
        if queue is not None:
            self.ledger.charge(queue, shape.requests, len(records))

    def vacate(self, records: Sequence[PodRecord]) -> None:
        """Pods of one shape, at one place and charged to one queue, leave it."""
        slot, queue = records[0].slot, records[0].charged
        self._move(records, slot, -1)
        table, shape = self.table, records[0].shape
        if slot in table.devices.nodes:
            table.devices.give(slot, [record.key for record in records])
        if slot in table.load.by_slot:
            table.load.give(slot, [record.key for record in records])
        if shape.resource_claims:
            self.claim_book.take_back([record.pod for record in records])
        for record in records:
            record.slot, record.charged = -1, None
            if record.reservation:
                self.reserved.move(record, slot, -1)
        if queue is not None:
            self.ledger.charge(queue, shape.requests, -len(records))

    def occupy_all(self, batches: Iterable[tuple[Sequence[PodRecord], int, str | None]]) -> None:
        """``occupy`` for many batches at once. Those of which only amounts are in the books are added up before."""
        sums = _Sums()
        devices = self.table.devices
        for records, slot, queue in batches:
            shape = records[0].form.shape
            if self._intricate(shape, slot) or any(record.reservation for record in records):
                self.occupy(records, slot, queue)
                continue
            if devices.concern(shape.devices):
                devices.take(slot, [record.tenant() for record in records])
            sums.add(shape, slot, queue, len(records))
            for record in records:
                record.slot, record.charged = slot, queue
        self._book(sums)

    def vacate_all(self, batches: Iterable[Sequence[PodRecord]]) -> None:
        """``vacate`` for many batches at once, in the same way."""
        sums = _Sums()
        tenants: dict[int, list[Key]] = {}
        for records in batches:
            slot, shape, queue = records[0].slot, records[0].form.shape, records[0].charged
            if self._intricate(shape, slot) or any(record.reservation for record in records):
                self.vacate(records)
                continue
            if slot in self.table.devices.nodes:
                tenants.setdefault(slot, []).extend([record.key for record in records])
            sums.add(shape, slot, queue, -len(records))
            for record in records:
                record.slot, record.charged = -1, None
        for slot, keys in tenants.items():
            self.table.devices.give(slot, keys)
        self._book(sums)

    def _book(self, sums: "_Sums") -> None:
        for slot, amounts in sums.amounts.items():
            self.table.use(slot, amounts)
        for (queue, shape), count in sums.counts.items():
            self.foresight.census.add(shape, count)
            if queue is not None:
                self.ledger.charge(queue, shape.requests, count)

    def _intricate(self, shape: PodShape, slot: int) -> bool:
        """Whether more than amounts and devices is in the books of pods of a shape at a place."""
        if shape.coupled or self.neighbours.active:
            return True
        return slot in self.table.load.by_slot or self.table.devices.amplified > 0

    def look_ahead(self) -> None:
        """Learn from what runs what the room that is left is good for; of use only where nodes are packed."""
        if self.placement is Placement.BINPACK:
            self.foresight.renew()

    def placement_of(self, record: PodRecord) -> Placement:
        """Which nodes come first for a pod and for all of its gang."""
        return self.choices.of(record).placement

    def view(self, record: PodRecord) -> ShapeView:
        """The nodes as the pod's shape sees them, in the order that its gang, its queue or the cluster wants."""
        if self.placement is Placement.BINPACK:
            self.foresight.keep_up()
        view = self.views.of(record.form.shape, self.choices.of(record).placement)
        return view if self.fence is None else view.inside(self.fence)

    def class_of(self, record: PodRecord) -> PodClass:
        """The class of a pod."""
        matched = self.neighbours.matched(record) if self.neighbours.active else ()
        return record.form.shape.index, matched, self.reserved.matching(record) if self.reserved.standing else ()

    def classes_of(self, records: Iterable[PodRecord]) -> list[PodClass]:
        """The classes of many, of which mostly their shapes are all there is."""
        if self.neighbours.active or self.reserved.standing:
            return [self.class_of(record) for record in records]
        return [(record.form.shape.index, (), ()) for record in records]

    def coupled(self, record: PodRecord) -> bool:
        """Whether it matters to the pod which pods are where, so that its copies have to be placed one at a time."""
        if record.form.shape.coupled:
            return True
        return self.neighbours.active and any(True for _ in self.neighbours.repelled_by(record))

    def coupling_masks(self, record: PodRecord) -> Iterator[tuple[str, Mask]]:
        """Every rule that depends on the pods around, with the nodes that satisfy it now."""
        yield from self.volumes.masks(record.shape.claims)
        yield from self.claim_book.masks(record.shape)
        yield from self.ports.masks(record.shape)
        yield from self.neighbours.masks(record)
        yield from spread_masks(record, self.neighbours)

    def coupling_bonus(self, record: PodRecord) -> Ints | int:
        """The score that depends on the pods around."""
        return self.neighbours.bonus(record) + spread_bonus(record, self.neighbours)

    def _move(self, records: Sequence[PodRecord], slot: int, sign: int) -> None:
        shape = records[0].form.shape
        self.table.take(shape, slot, sign * len(records))
        self.foresight.census.add(shape, sign * len(records))
        if shape.ports:
            for _ in records:
                self.ports.move(shape.ports, slot, sign)
        if shape.claims:
            for _ in records:
                self.volumes.move(shape.claims, slot, sign)
        if self.neighbours.active:
            for record in records:
                self.neighbours.move(record, slot, sign)
