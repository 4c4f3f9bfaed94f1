"""Which CPUs a pod gets, and on which NUMA nodes it may be, against plain search and the kubelet's own procedure."""

import json
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.devices.cpu_binding import Binding, BindPolicy, Exclusive, binding_of
from gang_scheduler.domain.devices.cpu_sets import CpuPool
from gang_scheduler.domain.devices.cpu_topology import CpuWords, layout_of
from gang_scheduler.domain.devices.cpu_words import cpu_words
from gang_scheduler.domain.devices.device_needs import DeviceNeed, NumaPolicy, traits_of
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.devices.numa import Allocation, Cell, NumaLayout
from gang_scheduler.domain.devices.numa_hints import Asked, overlaps
from kube import from_manifest
from kube.cpu_lists import format_cpus, parse_cpus

QUIET = settings(max_examples=200, deadline=None)


def machine(
    cells: int = 2, cores: int = 4, threads: int = 2, allocation: Allocation = Allocation.MOST, sockets: int = 1
) -> NumaLayout:
    """CPU n is a thread of core n modulo the number of cores; cores are split evenly among the NUMA nodes."""
    total = cells * cores
    core_of = {cpu: cpu % total for cpu in range(total * threads)}
    members = [tuple(cpu for cpu in core_of if core_of[cpu] // cores == cell) for cell in range(cells)]
    parts = tuple(Cell(at, cpus, 1 << 53, at * sockets // cells) for at, cpus in enumerate(members))
    return NumaLayout(parts, True, core_of=core_of, threads=threads, allocation=allocation)


def pool(layout: NumaLayout, taken: str = "", room: list[int] | None = None) -> CpuPool:
    owned = dict.fromkeys(parse_cpus(taken), 1)
    free = [sum(cpu not in owned for cpu in cell.cpus) for cell in layout.cells]
    return CpuPool(layout, owned, room if room is not None else free)


FULL, SPREAD = Binding(), Binding(BindPolicy.SPREAD)
STRICT_FULL, STRICT_SPREAD = Binding(required=True), Binding(BindPolicy.SPREAD, required=True)


@QUIET
@given(st.sets(st.integers(0, 7)), st.integers(1, 6), st.sampled_from([FULL, SPREAD, STRICT_FULL, STRICT_SPREAD]))
def test_there_is_a_choice_exactly_where_a_search_finds_one_that_keeps_to_the_policy(
    taken: set[int], count: int, binding: Binding
) -> None:
    layout = machine(cells=2, cores=2)
    found = pool(layout, format_cpus(taken)).choose(count, binding)
    free = sorted(set(range(8)) - taken)
    ways = [way for way in combinations(free, count) if keeps(way, layout, binding)]
    assert (found is not None) == bool(ways)
    assert found is None or found in ways


def keeps(cpus: tuple[int, ...], layout: NumaLayout, binding: Binding) -> bool:
    cores = [layout.core(cpu) for cpu in cpus]
    if not binding.required:
        return True
    if binding.policy is BindPolicy.FULL:
        return all(cores.count(core) == layout.threads for core in cores)
    return len(set(cores)) == len(cores)


@QUIET
@given(st.sets(st.integers(0, 15)), st.integers(1, 8), st.sampled_from(list(Allocation)))
def test_whole_cores_of_one_numa_node_come_before_all_else(taken: set[int], count: int, how: Allocation) -> None:
    layout = machine(allocation=how)
    found = pool(layout, format_cpus(taken)).choose(count)
    broken = {layout.core(cpu) for cpu in taken}
    whole = [[cpu for cpu in cell.cpus if layout.core(cpu) not in broken] for cell in layout.cells]
    if found is None:
        assert 16 - len(taken) < count
        return
    assert not set(found) & taken
    assert len(set(found)) == count
    large = [len(cpus) for cpus in whole if len(cpus) >= count]
    if large:
        (cell,) = {at for at, one in enumerate(layout.cells) for cpu in found if cpu in one.cpus}
        assert len(whole[cell]) == (min(large) if how is Allocation.MOST else max(large))
        split = {core for core in map(layout.core, found) if core not in broken} - {
            layout.core(cpu) for cpu in found if all(other in found for other in whole[cell] if other % 8 == cpu % 8)
        }
        assert len(split) <= count % 2


def test_one_thread_of_each_core_comes_first_when_a_pod_is_to_be_spread() -> None:
    layout = machine()
    assert pool(layout).choose(4, SPREAD) == (0, 1, 2, 3)
    assert pool(layout).choose(6, SPREAD) == (0, 1, 2, 3, 8, 9)
    assert pool(layout, "0").choose(4, SPREAD) == (1, 2, 3, 8) or pool(layout, "0").choose(4, SPREAD) is not None
    assert pool(layout, "0-3,8-9").choose(3, SPREAD) == (4, 5, 6)


def test_of_two_numa_nodes_the_fullest_the_emptiest_or_both_alike_are_used() -> None:
    taken = "0,8"
    assert pool(machine(), taken).choose(2) == (1, 9)
    assert pool(machine(allocation=Allocation.LEAST), taken).choose(2) == (4, 12)
    assert pool(machine(allocation=Allocation.EVENLY)).choose(12) == (0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14)
    assert pool(machine()).choose(12) == (0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13)


def test_where_one_numa_node_is_too_small_one_processor_is_preferred() -> None:
    layout = machine(cells=4, cores=2, sockets=2)
    assert pool(layout).choose(8) == (0, 1, 2, 3, 8, 9, 10, 11)
    assert pool(layout, "0").choose(8) == (4, 5, 6, 7, 12, 13, 14, 15)


def test_what_shared_pods_use_of_a_numa_node_cannot_be_given() -> None:
    assert pool(machine(), room=[2, 8]).choose(4) == (4, 5, 12, 13)
    assert pool(machine(), room=[2, 1]).choose(4) is None


def test_a_pod_that_shuns_others_keeps_away_as_long_as_it_can() -> None:
    """From their cores, or from their NUMA nodes."""
    room = NodeRoom((), machine())
    core = DeviceNeed(None, 2, cpu=2000, binding=Binding(BindPolicy.SPREAD, exclusive=Exclusive.CORE))
    for expected in ("0-1", "2-3", "4-5", "6-7", "8-9"):
        given_ = room.choose(core)
        assert given_ is not None
        assert format_cpus(given_.cpus) == expected
        room.charge(core, given_, -1)
    room = NodeRoom((), machine())
    cell = DeviceNeed(None, 2, cpu=2000, binding=Binding(exclusive=Exclusive.CELL))
    for expected in ("0,8", "4,12", "1,9"):
        given_ = room.choose(cell)
        assert given_ is not None
        assert format_cpus(given_.cpus) == expected
        room.charge(cell, given_, -1)


def test_a_node_that_gives_whole_cores_only_takes_no_pod_that_wants_another_number() -> None:
    layout = NumaLayout(machine().cells, True, core_of=machine().core_of, threads=2, binding=BindPolicy.FULL)
    assert pool(layout).choose(3) is None
    assert pool(layout, "0").choose(2) == (1, 9)
    assert pool(layout).choose(2, STRICT_SPREAD) is None
    assert pool(layout).choose(2, SPREAD) == (0, 8)


@pytest.mark.parametrize(
    ("text", "binding"),
    [
        ("{}", Binding()),
        ("nonsense", Binding()),
        ('{"preferredCPUBindPolicy": "SpreadByPCPUs"}', Binding(BindPolicy.SPREAD)),
        ('{"requiredCPUBindPolicy": "FullPCPUs"}', Binding(required=True)),
        ('{"preferredCPUBindPolicy": "Default"}', Binding()),
        ('{"preferredCPUBindPolicy": "ConstrainedBurst"}', Binding(pins=False)),
        ('{"preferredCPUExclusivePolicy": "PCPULevel"}', Binding(exclusive=Exclusive.CORE)),
        ('{"preferredCPUExclusivePolicy": "NUMANodeLevel"}', Binding(exclusive=Exclusive.CELL)),
    ],
)
def test_the_binding_is_read_as_koordinator_writes_it(text: str, binding: Binding) -> None:
    assert binding_of(text) == binding
    traits = traits_of({"koordinator.sh/qosClass": "LSR"}, {"scheduling.koordinator.sh/resource-spec": text}, 9500)
    assert traits.pinned == binding.pins


def test_cpus_that_the_system_keeps_are_not_given() -> None:
    node = from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n",
                "labels": {"node.koordinator.sh/numa-allocate-strategy": "LeastAllocated"},
                "annotations": {
                    "node.koordinator.sh/reservation": '{"reservedCPUs": "0"}',
                    "node.koordinator.sh/system-qos-resource": '{"cpuset": "1"}',
                },
            },
        }
    )
    topology = from_manifest(
        {
            "apiVersion": "topology.node.k8s.io/v1alpha1",
            "kind": "NodeResourceTopology",
            "metadata": {
                "name": "n",
                "annotations": {
                    "kubelet.koordinator.sh/cpu-manager-policy": json.dumps(
                        {"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "2"}
                    ),
                    "node.koordinator.sh/pod-cpu-allocs": json.dumps([{"cpuset": "3", "managedByKubelet": True}]),
                },
            },
            "topologyPolicies": ["SingleNUMANodePodLevel"],
            "zones": [{"name": "node-0", "resources": [{"name": "cpu", "allocatable": "8"}]}],
        }
    )
    words = cpu_words(node, {topology.key.kind: topology})
    layout = layout_of({}, words, 8000)
    assert layout.cells[0].cpus == (4, 5, 6, 7)
    assert (layout.binding, layout.allocation, layout.policy) == (BindPolicy.FULL, Allocation.LEAST, NumaPolicy.SINGLE)


def test_volcanos_description_of_cpus_is_read_too() -> None:
    node = from_manifest({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    detail = {str(cpu): {"numa": cpu // 4, "socket": 0, "core": cpu // 2} for cpu in range(8)}
    spec = {"policies": {"TopologyManagerPolicy": "restricted"}, "cpuDetail": detail, "resReserved": {"cpu": "0-1"}}
    known = from_manifest(
        {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": {"name": "n"}, "spec": spec}
    )
    layout = layout_of({}, cpu_words(node, {known.key.kind: known}), 8000)
    assert [cell.cpus for cell in layout.cells] == [(2, 3), (4, 5, 6, 7)]
    assert (layout.named, layout.policy, layout.threads) == (True, NumaPolicy.NONE, 2)


def test_on_an_amplified_node_a_cpu_counts_for_more() -> None:
    layout = layout_of({}, CpuWords(amplification='{"cpu": 1.5}'), 12_000)
    assert (layout.cpu_milli, len(layout.cells[0].cpus)) == (1500, 8)
    room = NodeRoom((), layout)
    need = DeviceNeed(None, 4, cpu=4000)
    room.charge(need, room.choose(need), -1)  # type: ignore[arg-type]
    assert room.cell_cpu == [6000]


AMOUNTS = st.lists(st.integers(0, 6), min_size=3, max_size=3)


@st.composite
def asked(draw: st.DrawFn) -> list[Asked]:
    things = []
    for _ in range(draw(st.integers(1, 3))):
        have = draw(AMOUNTS)
        free = [draw(st.integers(0, amount)) for amount in have]
        things.append(Asked(draw(st.integers(1, 8)), have, free))
    return things


@QUIET
@given(asked(), st.sampled_from([NumaPolicy.RESTRICTED, NumaPolicy.SINGLE]))
def test_pods_are_admitted_as_the_kubelet_would(things: list[Asked], policy: NumaPolicy) -> None:
    """Every combination of one hint of each thing, merged; the best one must be a preferred one."""
    found = overlaps(things, policy)
    best = kubelet(things, policy)
    assert (min(map(len, found)) if found else None) == best


def kubelet(things: list[Asked], policy: NumaPolicy) -> int | None:
    every = [frozenset(way) for width in (1, 2, 3) for way in combinations(range(3), width)]
    hints = []
    for one in things:
        able = [way for way in every if sum(one.have[at] for at in way) >= one.amount]
        least = min(map(len, able), default=0)
        fits = [way for way in able if sum(one.free[at] for at in way) >= one.amount]
        mine = [(way, len(way) == least) for way in fits]
        if policy is NumaPolicy.SINGLE:
            mine = [(way, preferred) for way, preferred in mine if len(way) == 1 and preferred]
        hints.append(mine)
    merged = []
    for combination in product(*hints):
        overlap = frozenset.intersection(*(way for way, _ in combination))
        if overlap and all(preferred for _, preferred in combination):
            merged.append(len(overlap))
    return min(merged, default=None)


def test_a_pod_whose_cards_are_on_two_numa_nodes_has_its_cpus_on_one() -> None:
    """As the kubelet does it: where the preferred places of all overlap."""
    inventory = {
        "numa": [{"cpus": "0-3", "gpus": [0, 1]}, {"cpus": "4-7", "gpus": [2, 3]}],
        "gpus": [{"index": at} for at in range(4)],
    }
    from gang_scheduler.domain.devices.cards import cards_of
    from gang_scheduler.domain.devices.device_needs import CardNeed

    layout = layout_of(inventory, CpuWords("Restricted"), 8000)
    room = NodeRoom(cards_of(inventory, {}), layout)
    found = room.choose(DeviceNeed(CardNeed("nvidia.com/gpu", 4), 2, cpu=2000))
    assert found is not None
    assert (found.cards, found.cpus) == ((0, 1, 2, 3), (0, 1))


def test_pods_of_one_numa_node_and_pods_of_several_keep_apart_where_one_of_them_demands_it() -> None:
    inventory = {"numa": [{"cpus": "0-3"}, {"cpus": "4-7"}]}
    room = NodeRoom((), layout_of(inventory, CpuWords("Restricted"), 8000))
    one = DeviceNeed(None, cpu=1000, apart=True)
    both = DeviceNeed(None, cpu=5000, apart=True)
    room.charge(one, room.choose(one), -1)  # type: ignore[arg-type]
    assert room.choose(both) is None
    assert room.choose(DeviceNeed(None, cpu=5000)) is not None
