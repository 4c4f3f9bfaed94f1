"""The vectors of free devices and the choice on one node against the plain search, and the choice of cards and CPUs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns.vectors import ALL
from gang_scheduler.domain.devices.allotments import NOTHING, Allotment, CellShare, allotment_of
from gang_scheduler.domain.devices.cards import Card, cards_of, choose_whole
from gang_scheduler.domain.devices.cpu_sets import CpuPool
from gang_scheduler.domain.devices.cpu_topology import CpuWords, layout_of
from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed, NumaPolicy, card_need, traits_of
from gang_scheduler.domain.devices.devices import Devices
from gang_scheduler.domain.devices.node_devices import Tenant
from gang_scheduler.domain.devices.node_inventory import NodeInventory
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.devices.numa import Cell, NumaLayout
from kube import Key
from kube.cpu_lists import format_cpus, parse_cpus

QUIET = settings(max_examples=150, deadline=None)
GIB = 1 << 30

PARTS = st.sampled_from(
    [
        CardNeed("whole", 1),
        CardNeed("whole", 2),
        CardNeed("half", 1, core=50, memory=0, ratio=50),
        CardNeed("thirds", 2, core=30, memory=0, ratio=30),
        CardNeed("bytes", 1, core=0, memory=3 * GIB, ratio=0),
        CardNeed("virtual", 1, core=0, memory=2 * GIB, ratio=0, virtual=True),
        CardNeed("virtual", 2, core=25, memory=4 * GIB, ratio=0, virtual=True),
    ]
)


@st.composite
def needs(draw: st.DrawFn, kept: NumaPolicy = NumaPolicy.SINGLE) -> DeviceNeed:
    """What one pod may ask for."""
    cards = draw(st.none() | PARTS)
    cpu = draw(st.sampled_from([0, 500, 1000, 2000, 3000, 6000]))
    cpus = cpu // 1000 if cpu % 1000 == 0 and draw(st.booleans()) else 0
    policy = draw(st.sampled_from([NumaPolicy.NONE, kept]))
    return DeviceNeed(cards, cpus, policy, cpu, draw(st.sampled_from([0, GIB, 3 * GIB])))


@st.composite
def inventories(draw: st.DrawFn, policy: str = "SingleNUMANode") -> NodeInventory:
    """A node of up to three NUMA nodes and four cards, some of whose places are not known."""
    cells = draw(st.integers(0, 3))
    numa = [{"cpus": f"{4 * at}-{4 * at + 3}", "memory": 6 * GIB} for at in range(cells)]
    known = draw(st.booleans())
    gpus = [
        {"index": at, "memory": 8 * GIB, "numa": draw(st.integers(0, cells - 1)) if cells and known else None}
        for at in range(draw(st.integers(0, 4)))
    ]
    strict = policy if draw(st.booleans()) else ""
    allocatable = ("cpu", 4000 * max(1, cells)), ("volcano.sh/vgpu-number", 3 * len(gpus))
    return NodeInventory(json.dumps({"numa": numa, "gpus": gpus}), allocatable, CpuWords(strict))


Free = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Parts that each card still holds, cpu and memory of each NUMA node."""


@dataclass
class Plain:
    """One pod after the other in every possible way; no vectors, no order of choice."""

    room: NodeRoom
    need: DeviceNeed
    known: dict[Free, int] = field(default_factory=dict)

    def most(self) -> int:
        """The largest number of copies that fit one after the other; -1 when nothing limits it."""
        kept = self.room.policy_for(self.need) is NumaPolicy.SINGLE and (self.need.cpu or self.need.memory)
        if not (self.need.cards or self.need.cpus or kept):
            return -1
        return self._most((self._parts(), tuple(self.room.cell_cpu), tuple(self.room.cell_memory)))

    def _parts(self) -> tuple[int, ...]:
        cards = self.need.cards
        return tuple(self.room.copies_on(at, cards) for at in range(len(self.room.cards))) if cards else ()

    def _most(self, free: Free) -> int:
        if free not in self.known:
            self.known[free] = max((1 + self._most(left) for left in self._ways(*free)), default=0)
        return self.known[free]

    def _ways(self, parts: tuple[int, ...], cpu: tuple[int, ...], memory: tuple[int, ...]) -> Iterator[Free]:
        kept = self.room.policy_for(self.need) is NumaPolicy.SINGLE
        count = self.need.cards.count if self.need.cards else 0
        known = all(card.cell in range(len(cpu)) for card in self.room.cards)
        for at in range(len(cpu)) if kept else [None]:
            near = [c for c in range(len(parts)) if not kept or not known or self.room.cards[c].cell == at]
            for chosen in combinations([c for c in near if parts[c]], count):
                rest = tuple(number - (c in chosen) for c, number in enumerate(parts))
                if at is not None:
                    if cpu[at] >= self.need.cpu and memory[at] >= self.need.memory:
                        yield rest, less(cpu, at, self.need.cpu), less(memory, at, self.need.memory)
                elif (left := self._without(cpu, self.need.cpus)) is not None:
                    yield rest, left, memory

    def _without(self, cpu: tuple[int, ...], cpus: int) -> tuple[int, ...] | None:
        for at in range(len(cpu)):
            take = min(cpus, cpu[at] // 1000)
            cpu, cpus = less(cpu, at, 1000 * take), cpus - take
        return None if cpus else cpu


def less(amounts: tuple[int, ...], at: int, amount: int) -> tuple[int, ...]:
    return tuple(have - amount * (place == at) for place, have in enumerate(amounts))


def tenant(number: int, need: DeviceNeed, *, given: Allotment = NOTHING, bound: bool = False) -> Tenant:
    name = f"p-{number}"
    return Tenant(Key("Pod", "default", name), need, given, bound, (0, "", "default", name))


def filled(inventory: NodeInventory, others: list[DeviceNeed]) -> Devices:
    """One node on which as many of the others are as there is room for."""
    devices = Devices()
    devices.put(0, inventory)
    for number, need in enumerate(others):
        if devices.copies(need, ALL)[0]:
            devices.take(0, [tenant(number, need)])
    return devices


@QUIET
@given(inventories(), st.lists(needs(), max_size=4), needs())
def test_as_many_copies_fit_as_the_plain_search_finds(
    inventory: NodeInventory, others: list[DeviceNeed], need: DeviceNeed
) -> None:
    devices = filled(inventory, others)
    devices.kept = max(1, devices.kept)  # so that the short cut for whole cards is not taken
    room = devices.room(0)
    most = Plain(room, need).most() if devices.agrees(need)[0] else 0
    copies = int(devices.copies(need, ALL)[0])
    assert copies == most or (most == -1 and copies >= 1 << 20)
    placed = 0
    while placed < most and (allotment := room.choose(need)):
        room.charge(need, allotment, -1)
        assert min([0, *room.core, *room.memory, *room.slots, *room.cell_cpu, *room.cell_memory]) == 0
        assert set(room.owned.values()) <= {1}
        placed += 1
    assert placed == max(0, most)
    assert most < 0 or not devices.agrees(need)[0] or room.choose(need) is None


@QUIET
@given(
    inventories(policy="Restricted"),
    st.lists(needs(kept=NumaPolicy.RESTRICTED), max_size=4),
    needs(kept=NumaPolicy.RESTRICTED),
)
def test_where_pods_may_be_on_several_numa_nodes_all_copies_that_are_counted_can_be_placed(
    inventory: NodeInventory, others: list[DeviceNeed], need: DeviceNeed
) -> None:
    """There the vectors may count too few copies, but never too many, and none only where there is none."""
    devices = filled(inventory, others)
    devices.kept = max(1, devices.kept)
    room = devices.room(0)
    copies = int(devices.copies(need, ALL)[0])
    assert bool(copies) == (room.choose(need) is not None and bool(devices.agrees(need)[0]))
    for _ in range(min(copies, 20)):
        allotment = room.choose(need)
        assert allotment is not None
        room.charge(need, allotment, -1)
        assert min([0, *room.core, *room.memory, *room.slots, *room.cell_cpu, *room.cell_memory]) == 0


@QUIET
@given(inventories(), st.lists(st.tuples(needs(), st.booleans()), min_size=1, max_size=6), st.data())
def test_what_pods_hold_follows_from_who_is_there_and_not_from_the_order_in_which_they_came(
    inventory: NodeInventory, pods: list[tuple[DeviceNeed, bool]], data: st.DataObject
) -> None:
    """Some say what they have, the others take what is left over."""
    first = Devices()
    first.put(0, inventory)
    tenants = []
    for number, (need, told) in enumerate(pods):
        allotment = (first.room(0).choose(need) or NOTHING) if told else NOTHING
        tenants.append(tenant(number, need, given=allotment, bound=True))
        first.take(0, [tenants[-1]])
    second = Devices()
    second.put(0, inventory)
    for number in data.draw(st.permutations(range(len(tenants)))):
        second.take(0, [tenants[number]])
    gone = data.draw(st.integers(0, len(tenants) - 1))
    for devices in (first, second):
        devices.give(0, [tenants[gone].key])
    assert first.room(0) == second.room(0)
    for item in tenants:
        first.give(0, [item.key])
    empty = NodeRoom(first.room(0).cards, first.room(0).layout)
    assert first.room(0) == empty
    assert first.free.core[: len(empty.cards), 0].tolist() == empty.core


@QUIET
@given(st.lists(inventories(), min_size=1, max_size=5), needs())
def test_the_short_cut_for_whole_cards_says_the_same(nodes: list[NodeInventory], need: DeviceNeed) -> None:
    devices = Devices()
    for slot, inventory in enumerate(nodes):
        devices.put(slot, inventory)
    slow = devices.copies(need, ALL)
    assert devices.copies_at(need, list(range(len(nodes)))) == slow[: len(nodes)].tolist()
    assert (devices.copies(need, np.arange(len(nodes))) == slow[: len(nodes)]).all()


def linked(*links: tuple[int, int], cells: tuple[int, ...] = (0, 0, 0, 0, 1, 1, 1, 1)) -> list[Card]:
    gpus = [{"index": at, "numa": cell} for at, cell in enumerate(cells)]
    return list(cards_of({"gpus": gpus, "nvlink": [list(pair) for pair in links]}, {}))


@pytest.mark.parametrize(
    ("taken", "count", "chosen"),
    [
        ((), 1, (0,)),
        ((), 2, (0, 1)),
        ((0,), 1, (1,)),
        ((0,), 2, (2, 3)),
        ((0, 2), 2, (4, 5)),
        ((0,), 3, (2, 3, 1)),
        ((0, 1, 2), 3, (4, 5, 6)),
        ((), 8, (0, 1, 2, 3, 4, 5, 6, 7)),
    ],
)
def test_whole_cards_come_from_one_group_that_nvlink_connects(
    taken: tuple[int, ...], count: int, chosen: tuple[int, ...]
) -> None:
    cards = [card for card in linked((0, 1), (2, 3), (4, 5), (6, 7)) if card.index not in taken]
    assert choose_whole(cards, count) == tuple(sorted(chosen))


def test_cards_of_one_large_group_come_from_one_numa_node() -> None:
    cards = linked(*((0, other) for other in range(1, 8)))
    assert choose_whole(cards[1:], 4) == (4, 5, 6, 7)
    assert choose_whole(cards[1:], 3) == (1, 2, 3)


def test_a_single_card_does_not_break_a_pair() -> None:
    assert choose_whole(linked((0, 1), (2, 3))[:5], 1) == (4,)


@pytest.mark.parametrize(
    ("inventory", "allocatable", "indexes"),
    [
        ({}, {"nvidia.com/gpu": 3}, [0, 1, 2]),
        ({"gpus": []}, {"nvidia.com/gpu": 2}, [0, 1]),
        ({"gpus": [{"index": 4}, {"index": 1}]}, {"nvidia.com/gpu": 2}, [1, 4]),
        ({"gpus": [{"index": 0, "healthy": False}, {"index": 1}]}, {"nvidia.com/gpu": 2}, [1]),
        ({"gpus": [{"index": "none"}]}, {"nvidia.com/gpu": 1}, [0]),
        ({"gpus": 7}, {"nvidia.com/gpu": 1}, [0]),
        ({}, {"koordinator.sh/gpu-core": 400}, [0, 1, 2, 3]),
        ({}, {"volcano.sh/vgpu-number": 20}, [0, 1]),
        ({}, {"cpu": 4000}, []),
    ],
)
def test_the_cards_of_a_node_are_the_healthy_ones_of_its_inventory_else_as_many_as_it_gives(
    inventory: dict[str, object], allocatable: dict[str, int], indexes: list[int]
) -> None:
    assert [card.index for card in cards_of(inventory, allocatable)] == indexes


def test_the_memory_of_a_card_is_its_own_else_its_part_of_what_the_node_gives() -> None:
    assert [card.memory for card in cards_of({"gpus": [{"memory": "80Gi"}]}, {})] == [80 * GIB]
    assert [card.memory for card in cards_of({}, {"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory": 8})] == [
        4,
        4,
    ]
    assert [card.memory for card in cards_of({}, {"volcano.sh/vgpu-number": 10, "volcano.sh/vgpu-memory": 2})] == [
        2 << 20
    ]


@pytest.mark.parametrize(
    ("requests", "count", "core", "memory", "ratio"),
    [
        ({"nvidia.com/gpu": 4}, 4, 100, 0, 100),
        ({"koordinator.sh/gpu": 50}, 1, 50, 0, 50),
        ({"koordinator.sh/gpu": 200}, 2, 100, 0, 100),
        ({"koordinator.sh/gpu-core": 60, "koordinator.sh/gpu-memory-ratio": 40}, 1, 60, 0, 40),
        ({"koordinator.sh/gpu-core": 300, "koordinator.sh/gpu-memory-ratio": 300}, 3, 100, 0, 100),
        ({"koordinator.sh/gpu-memory": 30}, 1, 0, 30, 0),
        ({"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": 8}, 2, 50, 4, 0),
        ({"volcano.sh/gpu-memory": 3}, 1, 0, 3 << 20, 0),
    ],
)
def test_requests_of_cards_are_parts_of_each_card(
    requests: dict[str, int], count: int, core: int, memory: int, ratio: int
) -> None:
    need = card_need({}, requests)
    assert need is not None
    assert (need.count, need.core, need.memory, need.ratio) == (count, core, memory, ratio)


def test_virtual_cards_are_as_large_as_the_largest_that_a_container_asks_for() -> None:
    limits = [{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": size} for size in (1024, 2048)]
    spec = {"containers": [{"resources": {"limits": item}} for item in limits]}
    assert card_need(spec, {"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 3072}) == CardNeed(
        "volcano.sh/vgpu-number", 2, 0, 2 * GIB, 0, virtual=True
    )
    assert card_need({}, {"volcano.sh/vgpu-number": 1}) == CardNeed(
        "volcano.sh/vgpu-number", 1, 0, 0, 100, virtual=True
    )


@pytest.mark.parametrize(
    ("free", "count", "chosen"),
    [
        ("0-7", 2, "0,4"),
        ("0-7", 3, "0-1,4"),
        ("1-7", 1, "4"),
        ("1-7", 2, "1,5"),
        ("1-7", 4, "1-2,5-6"),
        ("1-7", 3, "1,4-5"),
        ("1,4", 2, "1,4"),
    ],
)
def test_a_pod_gets_whole_cores_and_what_is_left_over_from_broken_ones(free: str, count: int, chosen: str) -> None:
    layout = NumaLayout((Cell(0, range(8), 0),), core_of={cpu: cpu % 4 for cpu in range(8)}, threads=2)
    taken = dict.fromkeys(set(range(8)) - set(parse_cpus(free)), 1)
    assert format_cpus(CpuPool(layout, taken, [8 - len(taken)]).choose(count) or ()) == chosen


def test_a_pod_that_may_be_on_several_numa_nodes_is_on_the_fewest_that_could_hold_it() -> None:
    """Restricted: what one empty NUMA node could hold does not go on two; what needs two gets two."""
    inventory = NodeInventory(json.dumps({"numa": [{"cpus": f"{4 * at}-{4 * at + 3}"} for at in range(3)]}))
    devices = Devices()
    devices.put(0, inventory)
    wide = DeviceNeed(None, 0, NumaPolicy.RESTRICTED, 6000, 0)
    narrow = DeviceNeed(None, 0, NumaPolicy.RESTRICTED, 3000, 0)
    devices.take(0, [tenant(1, wide)])
    assert devices.allotted(0, tenant(1, wide).key).shares == (CellShare(0, 4000, 0), CellShare(1, 2000, 0))
    assert int(devices.copies(wide, ALL)[0]) == 1
    devices.take(0, [tenant(2, narrow)])
    assert devices.allotted(0, tenant(2, narrow).key).shares == (CellShare(2, 3000, 0),)
    assert int(devices.copies(narrow, ALL)[0]) == 0
    assert int(devices.copies(wide, ALL)[0]) == 0


def test_an_allotment_survives_the_way_through_a_binding() -> None:
    allotment = Allotment("nvidia.com/gpu", (1, 3), (0, 1, 2, 8), (CellShare(0, 4500, 8 * GIB),))
    assert allotment_of(allotment.manifest()) == allotment
    assert allotment_of({"nvidia.com/gpu": "x", "cpuset": "a-b", "numaNodeResources": [{"node": {}}]}) == NOTHING


def test_only_production_pods_get_cpus_of_their_own() -> None:
    assert traits_of({"koordinator.sh/qosClass": "LSR"}, {}, 0).pinned
    assert traits_of({"koordinator.sh/qosClass": "LSE"}, {}, 9500).pinned
    assert not traits_of({"koordinator.sh/qosClass": "LSR"}, {}, 5500).pinned
    assert not traits_of({"koordinator.sh/qosClass": "LS"}, {}, 9500).pinned


def test_the_policy_of_a_pod_is_read_as_volcano_and_koordinator_write_it() -> None:
    assert traits_of({}, {"volcano.sh/numa-topology-policy": "single-numa-node"}, 0).policy is NumaPolicy.SINGLE
    spec = '{"numaTopologyPolicy": "Restricted"}'
    assert traits_of({}, {"scheduling.koordinator.sh/numa-topology-spec": spec}, 0).policy is NumaPolicy.RESTRICTED
    assert traits_of({}, {"scheduling.koordinator.sh/numa-topology-spec": "[]"}, 0).policy is NumaPolicy.NONE


def test_the_layout_is_read_from_what_koordinators_agent_reports() -> None:
    detail = ", ".join(f'{{"id": {cpu}, "core": {cpu % 2}, "node": {cpu % 2}}}' for cpu in range(4))
    layout = layout_of({}, CpuWords(topology=f'{{"detail": [{detail}]}}'), 4000)
    assert [cell.cpus for cell in layout.cells] == [(0, 2), (1, 3)]
    assert layout.core(0) == layout.core(2) != layout.core(1)
    assert tuple(layout_of({}, CpuWords(topology="nonsense"), 2500).cells[0].cpus) == (0, 1)


def test_parts_of_cards_near_the_cpus_are_given_up_where_they_cost_another_pod_its_room() -> None:
    numa = [{"cpus": f"{4 * at}-{4 * at + 3}", "memory": 6 * GIB} for at in range(2)]
    gpus = [{"index": index, "memory": 8 * GIB, "numa": cell} for index, cell in ((0, 0), (1, 0), (2, 1))]
    allocatable = ("cpu", 8000), ("volcano.sh/vgpu-number", 9)
    devices = filled(NodeInventory(json.dumps({"numa": numa, "gpus": gpus}), allocatable, CpuWords("")), [])
    devices.kept = 1
    need = DeviceNeed(CardNeed("thirds", 2, 30, 0, 30), 1, NumaPolicy.NONE, 1000, 0)
    room, chosen = devices.room(0), []
    while allotment := room.choose(need):
        room.charge(need, allotment, -1)
        chosen.append(allotment.cards)
    assert len(chosen) == int(devices.copies(need, ALL)[0]) == 4
    assert chosen[0] == (0, 1), "near its CPUs while that costs nobody anything"
