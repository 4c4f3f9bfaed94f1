"""Cards that a pod wants, or does not want: partitions of a node's table, models, names, labels, one switch or NUMA node."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.devices.card_wishes import CardWish, PartitionWish, Scope, wish_of
from gang_scheduler.domain.devices.cards import Card
from gang_scheduler.domain.devices.cpu_topology import NO_WORDS, layout_of
from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed
from gang_scheduler.domain.devices.node_room import NodeRoom
from gang_scheduler.domain.devices.partitions import Partitions, partitions_of
from kube import Manifest

GPU, VGPU = "nvidia.com/gpu", "volcano.sh/vgpu-number"
SPEC = "scheduling.koordinator.sh/gpu-partition-spec"
HINT = "scheduling.koordinator.sh/device-allocate-hint"
HONOR = {"node.koordinator.sh/gpu-partition-policy": "Honor"}
TABLE = {
    "4": [{"minors": [0, 1, 2, 3], "allocationScore": 1}],
    "2": [
        {"minors": [0, 1], "ringBusBandwidth": "200Gi", "allocationScore": 1},
        {"minors": [2, 3], "ringBusBandwidth": "400Gi", "allocationScore": 2},
        {"minors": [0, 2], "ringBusBandwidth": "100Gi"},
    ],
    "1": [{"minors": [at], "allocationScore": 1} for at in range(4)],
}


def describe(toy: Any, table: Any = TABLE, labels: Any = None, cards: int = 4, **more: Any) -> None:
    toy.node("n1", cpu=64, memory="256Gi", **{GPU: cards}, **more)
    toy.put(
        {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "Device",
            "metadata": {
                "name": "n1",
                "labels": labels or {},
                "annotations": {"scheduling.koordinator.sh/gpu-partitions": json.dumps(table)} if table else {},
            },
            "spec": {"devices": [device(at) for at in range(cards)]},
        }
    )


def device(at: int) -> Manifest:
    topology = {"nodeID": at // 2, "pcieID": "ab"[at // 2 % 2]}
    return {"type": "gpu", "minor": at, "id": f"GPU-{at}", "labels": {"half": str(at // 2)}, "topology": topology}


def ask(toy: Any, name: str, count: int, annotations: Any = None, resource: str = GPU, **parts: Any) -> list[int]:
    """The cards that a new pod gets."""
    toy.pods(name, requests={resource: count}, annotations=annotations or {}, **parts)
    toy.settle()
    told: list[int] = json.loads(toy.pod(name).annotations.get("tidegate.dev/devices", "{}")).get(resource, [])
    return told


def spec(**parts: str) -> dict[str, str]:
    return {SPEC: json.dumps(parts)}


def test_a_node_that_honours_its_table_gives_nothing_else(toy: Any) -> None:
    describe(toy, labels=HONOR)
    assert ask(toy, "three", 3) == []
    assert "too few cards free that are a partition of their node (needs 3 times a whole one)" in toy.message("three")
    toy.delete(toy.pod("three").key)
    assert ask(toy, "two", 2) == [2, 3]
    assert ask(toy, "one", 1) == [0]
    assert ask(toy, "pair", 2) == []
    toy.finish("one")
    toy.settle()
    assert toy.where("pair") == "n1"


def test_a_table_is_preferred_where_it_is_not_honoured(toy: Any) -> None:
    describe(toy)
    assert ask(toy, "two", 2) == [2, 3]
    assert ask(toy, "one", 1) == [0]
    assert ask(toy, "single", 1) == [1]
    toy.finish("two")
    assert ask(toy, "last", 2) == [2, 3]
    toy.finish("last", "one", "single")
    assert ask(toy, "three", 3) == [0, 1, 2]


def test_a_pod_may_demand_a_partition(toy: Any) -> None:
    describe(toy)
    assert ask(toy, "three", 3, spec(allocatePolicy="BestEffort")) == []
    assert ask(toy, "best", 2, spec(allocatePolicy="Restricted")) == [2, 3]
    assert ask(toy, "best-again", 2, spec(allocatePolicy="Restricted")) == []
    assert ask(toy, "good", 2, spec(allocatePolicy="BestEffort")) == [0, 1]


def test_a_partition_may_have_to_have_a_bandwidth(toy: Any) -> None:
    describe(toy)
    assert ask(toy, "fast", 2, spec(ringBusBandwidth="400Gi")) == [2, 3]
    assert ask(toy, "too-fast", 2, spec(ringBusBandwidth="300Gi")) == []
    assert "partition with a bandwidth of" in toy.message("too-fast")


def test_a_pod_that_demands_a_partition_finds_none_where_there_is_no_table(toy: Any) -> None:
    describe(toy, table=None)
    assert ask(toy, "p", 1, spec(allocatePolicy="BestEffort")) == []
    assert ask(toy, "q", 1) == [0]


def test_a_known_model_has_a_table_of_its_own(toy: Any) -> None:
    describe(toy, None, {**HONOR, "node.koordinator.sh/gpu-model": "H100"}, cards=8)
    toy.pods("held", requests={GPU: 1}, priority=9)
    toy.settle()
    assert ask(toy, "four", 4) == [4, 5, 6, 7]
    assert ask(toy, "two", 2) == [2, 3]
    assert ask(toy, "one", 1) == [1]


@pytest.mark.parametrize("text", ["[", "[]", '{"2": [{"minors": "x"}]}', '{"2": [5]}', ""])
def test_a_table_that_cannot_be_read_is_none(text: str) -> None:
    assert partitions_of(text, "", "Honor") == Partitions((), True)


def test_a_table_may_name_the_links(toy: Any) -> None:
    table = json.dumps({"2": [{"NVLINK": {"minors": [0, 1], "ringBusBandwidth": "1Ki", "allocationScore": "3"}}]})
    (one,) = partitions_of(table, "", "").sets
    assert (sorted(one.cards), one.score, one.bandwidth) == ([0, 1], 3, 1024)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=3), max_size=8),
    st.frozensets(st.integers(0, 5)),
    st.integers(1, 3),
)
def test_a_partition_is_found_exactly_where_one_is_free(
    sets: list[frozenset[int]], free: frozenset[int], count: int
) -> None:
    table = json.dumps({"x": [{"minors": sorted(one)} for one in sets]})
    chosen = partitions_of(table, "", "Honor").choose(free, count, None)
    possible = [one for one in sets if len(one) == count and one <= free]
    assert (chosen is None) == (not possible)
    assert chosen is None or frozenset(chosen) in possible


def models(toy: Any, *names: str) -> None:
    """A node for each model, with two cards that are split into ten."""
    for model in names:
        gpus = [{"index": at, "memory": "32Gi", "model": model, "uuid": f"{model}-{at}"} for at in range(2)]
        toy.node(f"n-{model.lower()}", cpu=8, inventory={"gpus": gpus}, **{VGPU: 20, "volcano.sh/vgpu-memory": 65536})


def test_a_pod_gets_cards_of_the_models_that_it_names(toy: Any) -> None:
    models(toy, "A100", "Tesla-V100", "T4")
    assert ask(toy, "a", 1, {"nvidia.com/use-gputype": "v100"}, VGPU) == [0]
    assert toy.where("a") == "n-tesla-v100"
    assert ask(toy, "b", 1, {"nvidia.com/use-gputype": "H100, t4"}, VGPU) == [0]
    assert toy.where("b") == "n-t4"
    assert ask(toy, "c", 1, {"nvidia.com/nouse-gputype": "A100,T4"}, VGPU) == [1]
    assert toy.where("c") == "n-tesla-v100"
    assert ask(toy, "d", 1, {"nvidia.com/use-gputype": "H100"}, VGPU) == []
    assert "too few cards free of a model like H100" in toy.message("d")


def test_models_hold_card_by_card_and_for_whole_ones_too(toy: Any) -> None:
    gpus = [{"index": at, "model": "A100" if at == 2 else "T4", "uuid": f"GPU-{at}"} for at in range(4)]
    toy.node("n1", cpu=8, inventory={"gpus": gpus}, **{GPU: 4})
    assert ask(toy, "a", 1, {"nvidia.com/use-gputype": "A100"}) == [2]
    assert ask(toy, "b", 1, {"nvidia.com/use-gputype": "A100"}) == []
    assert ask(toy, "c", 1, {"nvidia.com/nouse-gpuuuid": "GPU-0,GPU-1"}) == [3]
    assert ask(toy, "d", 1, {"nvidia.com/use-gpuuuid": "GPU-1"}) == [1]


def test_the_model_of_a_node_is_that_of_its_cards(toy: Any) -> None:
    for name, product in (("a", "NVIDIA-A100-SXM4-80GB"), ("b", "Tesla-T4")):
        toy.node(name, cpu=8, labels={"nvidia.com/gpu.product": product}, **{GPU: 1})
    ask(toy, "p", 1, {"nvidia.com/use-gputype": "t4"})
    assert toy.where("p") == "b"


def test_volcanos_device_plugin_says_what_the_cards_are(toy: Any) -> None:
    toy.put(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n1",
                "annotations": {
                    "volcano.sh/node-vgpu-register": "GPU-a,10,32768,NVIDIA-T4,true:GPU-b,10,81920,NVIDIA-A100,true:"
                    "GPU-c,10,81920,NVIDIA-A100,false:"
                },
            },
            "status": {"allocatable": {"pods": 110, "cpu": 8, VGPU: 30, "volcano.sh/vgpu-memory": 196608}},
        }
    )
    large = {VGPU: 1, "volcano.sh/vgpu-memory": 40000}
    toy.pods("large", requests=large)
    toy.pods("more", 2, requests=large)
    toy.settle()
    cards = [json.loads(toy.pod(one).annotations["tidegate.dev/devices"])[VGPU] for one in toy.bound()]
    assert (cards, len(toy.bound())) == ([[1], [1]], 2)
    assert ask(toy, "t4", 1, {"nvidia.com/use-gputype": "T4"}, VGPU) == [0]


def test_all_cards_of_a_pod_may_have_to_be_on_one_numa_node(toy: Any) -> None:
    describe(toy, table=None)
    wish = {HINT: json.dumps({"gpu": {"requiredTopologyScope": "NUMANode"}})}
    assert ask(toy, "three", 3, wish) == []
    assert "too few cards free on one NUMA node" in toy.message("three")
    assert ask(toy, "one", 1) == [0]
    assert ask(toy, "pair", 2, wish) == [2, 3]


def test_all_cards_of_a_pod_may_have_to_be_behind_one_switch(toy: Any) -> None:
    describe(toy, table=None, cards=8)
    wish = {HINT: json.dumps({"gpu": {"requiredTopologyScope": "PCIe"}})}
    assert ask(toy, "four", 4, wish) == [0, 1, 4, 5]
    assert ask(toy, "five", 5, wish) == []


def test_cards_may_be_selected_by_their_labels(toy: Any) -> None:
    describe(toy, table=None)
    wish = {HINT: json.dumps({"gpu": {"selector": {"matchLabels": {"half": "1"}}}})}
    assert ask(toy, "pair", 2, wish) == [2, 3]
    assert ask(toy, "late", 1, wish) == []


def test_a_reservation_reserves_the_cards_that_it_wishes(toy: Any) -> None:
    describe(toy, table=None)
    wish = {HINT: json.dumps({"gpu": {"selector": {"matchLabels": {"half": "1"}}}})}
    template = {"metadata": {"annotations": wish}, "spec": {"containers": [{"resources": {"requests": {GPU: 1}}}]}}
    toy.reservation("r", cpu=0, template=template)
    toy.settle()
    assert [ask(toy, f"p{at}", 1) for at in range(4)] == [[0], [1], [3], []]
    assert (ask(toy, "mine", 1, wish, labels={"app": "a"}), toy.core.check()) == ([2], [])


def test_what_cannot_be_read_is_no_wish() -> None:
    assert wish_of({HINT: "["}) is wish_of({HINT: '{"gpu": 1}'}) is wish_of({}) is None
    assert wish_of({SPEC: "["}) == CardWish(partition=PartitionWish())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["A100", "T4"]), st.integers(0, 1)), min_size=1, max_size=5), st.integers(1, 3)
)
def test_cards_are_found_exactly_where_enough_are_wanted(cards: list[tuple[str, int]], count: int) -> None:
    made = tuple(Card(at, 1 << 30, cell, at, model=model) for at, (model, cell) in enumerate(cards))
    room = NodeRoom(made, layout_of({}, NO_WORDS, 4000))
    wish = CardWish(use_types=("A100",), scope=Scope.NUMA_NODE)
    found = room.choose(DeviceNeed(CardNeed(GPU, count, wish=wish)))
    most = max(sum(one == ("A100", cell) for one in cards) for cell in (0, 1))
    assert (found is not None) == (most >= count)
    if found is not None:
        assert len({cards[at] for at in found.cards}) == 1 and cards[found.cards[0]][0] == "A100"
