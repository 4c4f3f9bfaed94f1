"""The devices of all nodes: how many copies of a pod they let each node take, as vectors; and the books behind them.

The plain rule is NodeRoom.choose, node by node. The vectors say the same for all nodes at once: row ``i`` of a matrix
is the i-th card or NUMA node, zeros where a node has fewer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from gang_scheduler.domain.columns.vectors import ALL, Ints, Mask, Slots
from gang_scheduler.domain.devices.allotments import NOTHING, Allotment
from gang_scheduler.domain.devices.card_room import MOST_COPIES
from gang_scheduler.domain.devices.device_columns import Columns, card_parts, cards_holding, grown, most_copies, times
from gang_scheduler.domain.devices.device_needs import DeviceNeed, NumaPolicy
from gang_scheduler.domain.devices.mig_copies import SplitNodes
from gang_scheduler.domain.devices.nics import RDMA, Joint
from gang_scheduler.domain.devices.node_devices import NodeDevices, Tenant
from gang_scheduler.domain.devices.node_inventory import Described, NodeInventory, described
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.devices.numa import WHOLE_CPU
from kube import Key
from resources import format_amounts


@dataclass(slots=True)
class Devices:
    """``nodes`` are those on which somebody has, or had, devices, by slot."""

    nodes: dict[int, NodeDevices] = field(default_factory=dict)
    free: Columns = field(default_factory=Columns)
    have: Columns = field(default_factory=Columns)
    kept: int = 0
    """How many nodes keep all pods within their NUMA nodes."""

    honouring: set[int] = field(default_factory=set)
    """The nodes that give whole cards as partitions only."""

    amplified: int = 0
    """On how many nodes CPUs count for more than one."""

    split: SplitNodes = field(default_factory=lambda: SplitNodes(0))
    _described: dict[int, Described] = field(default_factory=dict)
    _inventories: dict[int, NodeInventory] = field(default_factory=dict)
    _named: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    _policy: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _cells: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _milli: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """How much cpu one CPU of a node stands for."""

    _demanding: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Which nodes say how CPUs are to be bound."""

    _card_cell: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """The place of each card's NUMA node, -1 for all cards of a node on which one is not known."""

    def __post_init__(self) -> None:
        self.resize(16)

    def resize(self, nodes: int, cards: int = 0, cells: int = 0) -> None:
        """Make place for at least so many."""
        more = max(0, nodes - len(self._named))
        self.split.size = max(self.split.size, nodes)
        self._named = np.concatenate([self._named, np.zeros(more, np.bool_)])
        self._policy = np.concatenate([self._policy, np.zeros(more, np.int64)])
        self._cells = np.concatenate([self._cells, np.zeros(more, np.int64)])
        self._milli = np.concatenate([self._milli, np.full(more, WHOLE_CPU, np.int64)])
        self._demanding = np.concatenate([self._demanding, np.zeros(more, np.bool_)])
        self._card_cell = grown(self._card_cell, cards, len(self._named))
        for columns in (self.free, self.have):
            columns.grow(cards, cells, len(self._named))

    def put(self, slot: int, inventory: NodeInventory) -> None:
        """A node came, or its devices changed; whatever held some of them was taken out before."""
        self.remove(slot)
        found = self._described[slot] = described(inventory)
        cards, layout = found.cards, found.layout
        self.split.put(slot, found.split)
        self._inventories[slot] = inventory
        if len(cards) > len(self.free.core) or len(layout.cells) > len(self.free.cell_cpu):
            self.resize(len(self._named), len(cards), len(layout.cells))
        places = {cell.number: at for at, cell in enumerate(layout.cells)}
        near = [places.get(card.cell, -1) for card in cards]
        self._card_cell[: len(cards), slot] = -1 if -1 in near else near
        self._named[slot], self._policy[slot], self._cells[slot] = layout.named, layout.policy, len(layout.cells)
        self._milli[slot], self._demanding[slot] = layout.cpu_milli, layout.binding is not None
        self.kept += layout.strict
        if inventory.partitions.honoured:
            self.honouring.add(slot)
        self.amplified += layout.cpu_milli != WHOLE_CPU
        room = found.empty()
        self.have.put(slot, room)
        self.free.put(slot, room)

    def remove(self, slot: int) -> None:
        """A node is gone, or about to be put anew."""
        if slot not in self._described:
            return
        layout = self._described.pop(slot).layout
        self.split.put(slot, ())
        del self._inventories[slot]
        self.nodes.pop(slot, None)
        self.kept -= layout.strict
        self.honouring.discard(slot)
        self.amplified -= layout.cpu_milli != WHOLE_CPU
        self._milli[slot], self._demanding[slot] = WHOLE_CPU, False
        self._named[slot], self._policy[slot], self._cells[slot] = False, 0, 0
        self.free.clear(slot)
        self.have.clear(slot)

    def room(self, slot: int) -> NodeRoom:
        """What is free on a node, card by card."""
        node = self.nodes.get(slot)
        return node.room if node else self._described[slot].empty()

    def concern(self, need: DeviceNeed) -> bool:
        """Whether the devices of any node matter to a pod."""
        return need.special or self.kept > 0

    def take(self, slot: int, tenants: Sequence[Tenant]) -> None:
        """Pods of one need come to a node."""
        if not (tenants[0].need.special or self._described[slot].layout.strict):
            return
        node = self.nodes.get(slot)
        if node is None:
            node = self.nodes[slot] = NodeDevices(self._described[slot].empty())
        for tenant in tenants:
            node.take(tenant)
        self.free.follow(slot, node.room)

    def give(self, slot: int, keys: Sequence[Key]) -> None:
        """Pods leave a node."""
        node = self.nodes.get(slot)
        if node is None or not node.held:
            return
        for key in keys:
            node.give(key)
        self.free.follow(slot, node.room)

    def allotted(self, slot: int, key: Key) -> Allotment:
        """What a pod on a node has."""
        node = self.nodes.get(slot)
        held = node.held.get(key) if node else None
        return held[1] if held else NOTHING

    def surcharge(self, need: DeviceNeed, slot: int) -> int:
        """What a pod's own CPUs count on a node beyond what it asks for, in milli-cores."""
        return need.cpus * (int(self._milli[slot]) - WHOLE_CPU) if self.amplified and need.cpus else 0

    def surcharges(self, need: DeviceNeed, slots: Slots) -> Ints | None:
        """The same for many nodes; None where there is none."""
        if not self.amplified or not need.cpus:
            return None
        extra: Ints = need.cpus * (self._milli[slots] - WHOLE_CPU)
        return extra

    def copies(self, need: DeviceNeed, slots: Slots, columns: Columns | None = None) -> Ints:
        """How many pods of the kind the devices of each of ``slots`` have room for."""
        columns = columns or self.free
        if need.only_whole_cards and not self.kept and not self.honouring and need.cards:
            whole: Ints = columns.whole[slots] // need.cards.count
            return whole
        parts = card_parts(need.cards, columns, self.have, slots) if need.cards else None
        count = need.cards.count if need.cards else 1
        policy = np.where(self._named[slots], np.maximum(self._policy[slots], need.policy), 0)
        copies = np.full(policy.shape, MOST_COPIES, np.int64) if parts is None else most_copies(parts, count)
        copies = np.minimum(copies, self._free_cpus(need, slots, columns))
        if need.slices:
            copies = np.minimum(copies, self.split.copies(need.slices, slots, self._held(columns)))
        tried = np.full(policy.shape, need.intricate) | (self._demanding[slots] & (need.cpus > 0))
        if need.cards and need.cards.whole and self.honouring:
            tried |= np.isin(np.arange(len(self._named))[slots], list(self.honouring))
        if policy.max(initial=0) >= NumaPolicy.RESTRICTED:
            kept, narrow = self._kept_copies(need, slots, columns, parts), self._narrow(need, slots)
            kept = np.where(narrow, np.minimum(kept, copies), 0)
            copies = np.where(policy >= NumaPolicy.RESTRICTED, kept, copies)
            tried |= (policy == NumaPolicy.RESTRICTED) & ~narrow
            tried |= (policy >= NumaPolicy.RESTRICTED) & bool(need.slices)
        copies = np.where(self.agrees(need, slots), copies, 0)
        return self._tried(need, slots, columns, copies, tried) if tried.any() else copies

    def copies_at(self, need: DeviceNeed, slots: Sequence[int]) -> list[int]:
        """The same for a few nodes."""
        if need.only_whole_cards and not self.kept and not self.honouring and need.cards:
            count = need.cards.count
            return [int(self.free.whole[slot]) // count for slot in slots]
        found: list[int] = self.copies(need, np.array(slots, np.intp)).tolist()
        return found

    def spared(self, need: DeviceNeed, slots: Slots) -> Mask:
        """Where a pod that asks for shares fits on cards of which others have shares, so that whole ones stay whole."""
        if need.slices:
            return self.split.spared(need.slices, slots, self.nodes)
        if need.cards is None:
            return np.zeros(self._named[slots].shape, np.bool_)
        core, memory = self.free.core[:, slots], self.free.memory[:, slots]
        broken = (core < 100) | (memory < self.have.memory[:, slots])
        found: Mask = (broken & cards_holding(need.cards, self.free, self.have, slots)).sum(axis=0) >= need.cards.count
        return found

    def filters(
        self, need: DeviceNeed, columns: Columns | None = None, among: Mask | None = None
    ) -> Iterator[tuple[str, str, Mask]]:
        """What keeps a pod out for lack of devices: the resource, the words for such nodes, and those that pass.

        It matters only of the nodes ``among`` which somebody looks when a filter is asked for (None: all).
        """
        if not self.concern(need):
            return
        columns = columns or self.free
        if need.cards:
            fits = np.zeros(len(self._named), np.bool_)
            slots = ALL if among is None else np.flatnonzero(among)
            fits[slots] = cards_holding(need.cards, columns, self.have, slots).sum(axis=0) >= need.cards.count
            yield need.cards.resource, f"have too few cards free ({need.cards.words})", fits
            if need.cards.wish or (need.cards.whole and self.honouring):
                wish = need.cards.wish.words if need.cards.wish else "that are a partition of their node"
                words = f"have too few cards free {wish} ({need.cards.words})"
                yield need.cards.resource, words, self.copies(DeviceNeed(need.cards), ALL, columns) > 0
        yield from self.split.filters(need.slices, self._held(columns))
        if need.cpus:
            words = f"have too few CPUs that no other pod has for itself (needs {need.cpus})"
            yield "cpu", words, np.asarray(self._free_cpus(need, ALL, columns)) > 0
            if need.binding.required or self._demanding.any():
                words = (
                    f"have no {need.cpus} CPUs free that can be bound as {need.binding.words} and as the node demands"
                )
                yield "cpu", words, self._bindable(need, columns)
        if need.nics:
            where = " behind the PCIe switches of the cards" if need.nics.joint is Joint.SAME_PCIE else ""
            words = f"have too few RDMA devices free{where} (needs {need.nics.share} % of {need.nics.count})"
            yield RDMA, words, self.copies(need, ALL, columns) > 0
        asked = format_amounts({"cpu": need.cpu, "memory": need.memory})
        cards = f", gpu {need.cards.count}" if need.cards else ""
        words = f"have no NUMA node with enough free (needs cpu {asked['cpu']}, memory {asked['memory']}{cards} in one)"
        yield "cpu", words, self.copies(need, ALL, columns) > 0

    def agrees(self, need: DeviceNeed, slots: Slots = ALL) -> Mask:
        """Where the pod's own policy can hold: the node names its NUMA nodes and has no other policy."""
        if need.policy < NumaPolicy.RESTRICTED:
            return np.ones(self._named[slots].shape, np.bool_)
        policy = self._policy[slots]
        agrees: Mask = self._named[slots] & ((policy == 0) | (policy == need.policy))
        return agrees

    def _held(self, columns: Columns) -> dict[int, NodeDevices]:
        return self.nodes if columns is self.free else {}

    def _bindable(self, need: DeviceNeed, columns: Columns) -> Mask:
        """Where the CPUs could be bound as they must, wherever on the node they are."""
        plain = DeviceNeed(None, need.cpus, cpu=need.cpu, binding=need.binding)
        return self.copies(plain, ALL, columns) > 0

    def _free_cpus(self, need: DeviceNeed, slots: Slots, columns: Columns) -> Ints | int:
        if not need.cpus:
            return MOST_COPIES
        copies: Ints = (np.maximum(columns.cell_cpu[:, slots], 0) // self._milli[slots]).sum(axis=0) // need.cpus
        return copies

    def _kept_copies(self, need: DeviceNeed, slots: Slots, columns: Columns, parts: Ints | None) -> Ints:
        """The copies that fit if each stays on one NUMA node."""
        cpu, memory = np.maximum(columns.cell_cpu[:, slots], 0), np.maximum(columns.cell_memory[:, slots], 0)
        asked = self._cpu_of(need, slots)
        copies = np.zeros(self._cells[slots].shape, np.int64)
        near, count = self._card_cell[:, slots], need.cards.count if need.cards else 1
        placed = (near >= 0).any(axis=0)
        for at in range(len(cpu)):
            fits = np.minimum(times(cpu[at], asked), times(memory[at], need.memory))
            if parts is not None:
                fits = np.where(placed, np.minimum(fits, most_copies(np.where(near == at, parts, 0), count)), fits)
            copies += np.where(at < self._cells[slots], fits, 0)
        return copies

    def _cpu_of(self, need: DeviceNeed, slots: Slots) -> Ints | int:
        """What a pod's cpu counts for on each node."""
        return need.cpus * self._milli[slots] if need.cpus else need.cpu

    def _narrow(self, need: DeviceNeed, slots: Slots) -> Mask:
        """Where one NUMA node could hold any one thing that the pod asks for, if nothing were used."""
        cpu, memory = self.have.cell_cpu[:, slots], self.have.cell_memory[:, slots]
        fits = (cpu.max(axis=0, initial=0) >= self._cpu_of(need, slots)) & (
            memory.max(axis=0, initial=0) >= need.memory
        )
        if need.cards:
            near, holding = self._card_cell[:, slots], cards_holding(need.cards, self.have, self.have, slots)
            most = np.max([((near == at) & holding).sum(axis=0) for at in range(len(cpu))], axis=0, initial=0)
            fits &= (most >= need.cards.count) | (near < 0).all(axis=0)
        return np.asarray(fits, np.bool_)

    def _tried(self, need: DeviceNeed, slots: Slots, columns: Columns, copies: Ints, tried: Mask) -> Ints:
        """Replace the copies by what the plain rule says, where the vectors do not tell."""
        numbers = np.arange(len(self._named))[slots]
        for place in np.flatnonzero(tried & (self._cells[slots] > 0)).tolist():
            slot = int(numbers[place])
            node = self.nodes.get(slot) if columns is self.free else None
            count = node.room.count(need) if node else _count_empty(self._inventories[slot], need)
            copies[place] = count if self.agrees(need, np.array([slot]))[0] else 0
        return copies


@lru_cache(maxsize=4096)
def _count_empty(inventory: NodeInventory, need: DeviceNeed) -> int:
    """The copies on an empty node; nodes that are alike share the count."""
    return described(inventory).empty().count(need)
