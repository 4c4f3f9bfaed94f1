"""RDMA devices, and cards together with them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.devices.cards import Card
from gang_scheduler.domain.devices.cpu_topology import NO_WORDS, layout_of
from gang_scheduler.domain.devices.device_needs import CardNeed, DeviceNeed
from gang_scheduler.domain.devices.nics import Joint, Nic, NicNeed, joint_of, nic_need
from gang_scheduler.domain.devices.node_room import NodeRoom
from kube import Manifest
from kube.devices import visible_devices

GPU, RDMA = "nvidia.com/gpu", "koordinator.sh/rdma"
JOINT = "scheduling.koordinator.sh/device-joint-allocate"
SAME = {JOINT: json.dumps({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"})}
NEAR = {JOINT: json.dumps({"deviceTypes": ["gpu", "rdma"]})}


def device(kind: str, minor: int, pcie: str, cell: int = 0, **more: Any) -> Manifest:
    return {"type": kind, "minor": minor, "topology": {"nodeID": cell, "pcieID": pcie}, **more}


@pytest.fixture
def node(toy: Any) -> Any:
    """Four cards and two RDMA devices, two and one behind each of two switches."""
    toy.node("n1", cpu=32, memory="64Gi", **{GPU: 4, RDMA: 200})
    devices = [device("gpu", at, "ab"[at // 2], at // 2) for at in range(4)]
    devices += [device("rdma", at, "ab"[at], at) for at in range(2)]
    toy.put(
        {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "Device",
            "metadata": {"name": "n1"},
            "spec": {"devices": devices},
        }
    )
    return toy


def ask(toy: Any, name: str, cards: int = 0, rdma: int = 0, **parts: Any) -> None:
    requests = {name: amount for name, amount in ((GPU, cards), (RDMA, rdma)) if amount}
    toy.pods(name, requests=requests, **parts)


def has(toy: Any, name: str) -> tuple[list[int], list[int]]:
    told = json.loads(toy.pod(name).annotations.get("tidegate.dev/devices", "{}"))
    return told.get(GPU, []), told.get(RDMA, [])


def test_cards_and_rdma_devices_are_behind_the_same_switch(node: Any) -> None:
    ask(node, "one", cards=1, priority=9)
    ask(node, "pair", cards=2, rdma=100, annotations=SAME)
    node.settle()
    assert (has(node, "one"), has(node, "pair")) == (([0], []), ([2, 3], [1]))
    ask(node, "next", cards=1, rdma=100, annotations=SAME)
    node.settle()
    assert has(node, "next") == ([1], [0])


def test_a_pod_waits_rather_than_have_its_rdma_device_behind_another_switch(node: Any) -> None:
    ask(node, "three", cards=3, rdma=100, annotations=SAME)
    node.settle()
    said = "1 has too few RDMA devices free behind the PCIe switches of the cards (needs 100 % of 1)"
    assert (node.where("three"), said in node.message("three")) == ("", True)
    ask(node, "wide", cards=4, rdma=200, annotations=SAME)
    node.settle()
    assert has(node, "wide") == ([0, 1, 2, 3], [0, 1])


def test_near_is_a_wish(node: Any) -> None:
    ask(node, "three", cards=3, rdma=100, annotations=NEAR)
    node.settle()
    assert has(node, "three") == ([0, 1, 2], [0])


def test_parts_of_an_rdma_device_are_packed(node: Any) -> None:
    for at in range(4):
        ask(node, f"p{at}", rdma=40)
    node.settle()
    assert [has(node, f"p{at}")[1] for at in range(4)] == [[0], [0], [1], [1]]
    ask(node, "whole", rdma=100)
    node.settle()
    assert node.where("whole") == ""


def test_devices_come_back(node: Any) -> None:
    ask(node, "a", cards=2, rdma=100, annotations=SAME)
    ask(node, "b", cards=2, rdma=100, annotations=SAME)
    node.settle()
    node.finish("a")
    ask(node, "c", cards=2, rdma=100, annotations=SAME)
    node.settle()
    assert has(node, "c") == ([0, 1], [0])


def test_rdma_devices_are_no_cards_for_containers() -> None:
    told = {"tidegate.dev/devices": json.dumps({GPU: [2], RDMA: [0, 1]})}
    container = {"name": "c", "resources": {"limits": {GPU: "1"}}}
    pod = {"metadata": {"annotations": told}, "spec": {"containers": [container]}}
    assert visible_devices(pod, "c") == (2,)


def test_instances_of_cards_are_counted_and_keep_other_pods_off_their_nodes(toy: Any) -> None:
    toy.node("mig", cpu=8, memory="8Gi", **{"nvidia.com/mig-1g.5gb": 2})
    toy.node("plain", cpu=8, memory="8Gi")
    toy.pods("p", 3, requests={"nvidia.com/mig-1g.5gb": 1})
    toy.pods("web", requests={"cpu": 1})
    toy.settle()
    assert ([toy.where(f"p-{at}") for at in range(3)], toy.where("web")) == (["mig", "mig", ""], "plain")


@pytest.mark.parametrize(("percent", "count", "share"), [(100, 1, 100), (200, 2, 100), (40, 1, 40), (150, 2, 75)])
def test_a_request_is_in_percent(percent: int, count: int, share: int) -> None:
    assert nic_need({RDMA: percent}, Joint.NEAR) == NicNeed(count, share, Joint.NEAR)
    assert nic_need({}, Joint.NEAR) is None
    assert joint_of('{"deviceTypes": ["gpu"]}') is joint_of("[") is Joint.NONE


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_the_same_switches_are_found_exactly_where_a_plain_search_finds_some(
    cards: list[str], nics: list[str], count: int, wanted: int
) -> None:
    room = NodeRoom(
        tuple(Card(at, 1 << 30, group=at, pcie=pcie) for at, pcie in enumerate(cards)),
        layout_of({}, NO_WORDS, 4000),
        tuple(Nic(at, pcie) for at, pcie in enumerate(nics)),
    )
    need = DeviceNeed(CardNeed(GPU, count), nics=NicNeed(wanted, 100, Joint.SAME_PCIE))
    found = room.choose(need)
    assert (found is not None) == possible(cards, nics, count, wanted)
    if found is not None:
        assert (len(found.cards), len(found.nics)) == (count, wanted)
        assert {cards[at] for at in found.cards} == {nics[at] for at in found.nics}


def possible(cards: list[str], nics: list[str], count: int, wanted: int) -> bool:
    from itertools import combinations

    sets = {frozenset(way) for way in combinations(nics, wanted)}
    return any(frozenset(way) in sets for way in combinations(cards, count))


def test_a_reservation_holds_rdma_devices_and_cards_behind_one_switch_for_its_owners(node: Any) -> None:
    requests = {"cpu": 1, GPU: 2, RDMA: 100}
    pod = {"containers": [{"resources": {"requests": requests}}]}
    template = {"metadata": {"annotations": SAME}, "spec": pod}
    node.reservation("r", cpu=1, template=template, allocateOnce=False)
    node.settle()
    assert node.reserved("r")["phase"] == "Available"
    ask(node, "other", cards=2, rdma=100, annotations=SAME)
    node.settle()
    ask(node, "late", rdma=100)
    node.settle()
    assert (has(node, "other"), node.where("late")) == (([2, 3], [1]), "")
    ask(node, "mine", cards=1, rdma=100, labels={"app": "a"}, annotations=SAME)
    node.settle()
    assert (has(node, "mine")[1], node.core.check()) == ([0], [])
