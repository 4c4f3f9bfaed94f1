"""Cards in MIG mode: which profiles fit together on one, which instance a pod gets, and what stays possible."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.columns.vectors import ALL
from gang_scheduler.domain.devices.device_needs import DeviceNeed
from gang_scheduler.domain.devices.devices import Devices
from gang_scheduler.domain.devices.mig_cards import MigCard, SliceNeed, mig_cards_of, places, slice_needs
from gang_scheduler.domain.devices.mig_room import MigRoom, Slice
from gang_scheduler.domain.devices.node_devices import Tenant
from gang_scheduler.domain.devices.node_inventory import NodeInventory
from kube import Key, Manifest
from kube.devices import device_variables

GIB = 1 << 30
H100 = MigCard(0, 80 * GIB)
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


def mig(profile: str, count: int = 1) -> dict[str, int]:
    return {f"nvidia.com/mig-{profile}": count}


ALL_PROFILES = {
    name: count
    for profile, count in zip(PROFILES, (14, 8, 6, 4, 2, 2), strict=True)
    for name, count in mig(profile, count).items()
}


@pytest.fixture
def node(toy: Any) -> Any:
    """One node with two cards that are split as pods ask for it."""
    gpus = [{"index": at, "memory": "80Gi", "model": "H100", "mig": True} for at in range(2)]
    toy.node("n1", cpu=64, memory="256Gi", inventory={"gpus": gpus}, **ALL_PROFILES)
    return toy


def given_to(toy: Any, name: str) -> list[tuple[int, int]]:
    """Card and first memory slice of each instance of a pod."""
    told = json.loads(toy.pod(name).annotations.get("tidegate.dev/devices", "{}"))
    return [(one["card"], one["start"]) for one in told.get("migSlices", [])]


@pytest.mark.parametrize(
    ("memory", "model", "profile", "starts"),
    [
        (40, "A100", "1g.5gb", [0, 1, 2, 3, 4, 5, 6]),
        (40, "A100", "1g.10gb", [0, 2, 4, 6]),
        (40, "A100", "2g.10gb", [0, 2, 4]),
        (40, "A100", "3g.20gb", [0, 4]),
        (40, "A100", "4g.20gb", [0]),
        (40, "A100", "7g.40gb", [0]),
        (80, "H100", "1g.10gb", [0, 1, 2, 3, 4, 5, 6]),
        (80, "H100", "1g.20gb", [0, 2, 4, 6]),
        (80, "H100", "3g.40gb", [0, 4]),
        (141, "H200", "1g.18gb", [0, 1, 2, 3, 4, 5, 6]),
        (141, "H200", "1g.35gb", [0, 2, 4, 6]),
        (141, "H200", "3g.71gb", [0, 4]),
        (141, "H200", "7g.141gb", [0]),
        (24, "A30", "1g.6gb", [0, 1, 2, 3]),
        (24, "A30", "2g.12gb", [0, 2]),
        (24, "A30", "4g.24gb", [0]),
        (96, "RTX PRO 6000", "2g.48gb", [0, 2]),
        (80, "H100", "1g.5gb", []),
        (80, "H100", "5g.40gb", []),
        (80, "H100", "large", []),
    ],
)
def test_a_profile_fits_where_the_driver_puts_it(memory: int, model: str, profile: str, starts: list[int]) -> None:
    """The places are those of NVIDIA's tables."""
    (card,) = mig_cards_of({"gpus": [{"memory": f"{memory}Gi", "model": model, "mig": True}]})
    assert [place.start for place in places(card, profile)] == starts


def test_one_instance_of_a_card_has_its_media_engines() -> None:
    room = MigRoom((H100,))
    assert (room.free("1g.10gb.me"), room.free("1g.10gb")) == (1, 7)
    room.move(room.choose([SliceNeed("1g.10gb.me", 1)]) or (), -1)
    assert (room.free("1g.10gb.me"), room.free("1g.10gb"), room.free("3g.40gb")) == (0, 6, 1)


def test_small_instances_share_a_card_at_its_end_so_that_large_ones_stay_possible(node: Any) -> None:
    node.pods("a", 3, requests=mig("1g.10gb"))
    node.settle()
    assert sorted(spot for at in range(3) for spot in given_to(node, f"a-{at}")) == [(0, 4), (0, 5), (0, 6)]
    node.pods("whole", requests=mig("7g.80gb"))
    node.pods("four", requests=mig("4g.40gb"))
    node.settle()
    assert (given_to(node, "whole"), given_to(node, "four")) == ([(1, 0)], [(0, 0)])


def test_a_card_is_never_split_into_more_than_it_has(node: Any) -> None:
    node.pods("three", 5, requests=mig("3g.40gb"))
    node.pods("two", requests=mig("2g.20gb"))
    node.settle()
    spots = sorted(spot for at in range(5) for spot in given_to(node, f"three-{at}"))
    assert (spots, node.where("two")) == ([(0, 0), (0, 4), (1, 0), (1, 4)], "")
    assert "1 Insufficient nvidia.com/mig-2g.20gb (no place on a card: needs 1)" in node.message("two")


def test_instances_come_back(node: Any) -> None:
    node.pods("whole", 2, requests=mig("7g.80gb"), priority=9)
    node.pods("small", requests=mig("1g.10gb"))
    node.settle()
    assert node.where("small") == ""
    node.finish("whole-0")
    node.settle()
    assert (given_to(node, "small"), node.core.check()) == ([(0, 6)], [])


def test_a_pod_may_have_several_instances(node: Any) -> None:
    node.pods("mixed", requests={**mig("3g.40gb", 2), **mig("4g.40gb")})
    node.settle()
    assert sorted(given_to(node, "mixed")) == [(0, 0), (0, 4), (1, 4)]


def test_a_gang_gets_its_instances_whole_or_not_at_all(node: Any) -> None:
    node.group("g", 5)
    node.pods("w", 5, group="g", requests=mig("3g.40gb"))
    node.settle()
    assert node.bound("w") == []
    node.group("h", 4)
    node.pods("v", 4, group="h", requests=mig("3g.40gb"))
    node.settle()
    assert len(node.bound("v")) == 4


def test_cards_that_are_split_are_none_for_others(toy: Any) -> None:
    gpus = [{"index": 0, "memory": "80Gi", "mig": True}, {"index": 1, "memory": "80Gi"}]
    toy.node("n1", cpu=8, inventory={"gpus": gpus}, **{"nvidia.com/gpu": 1}, **mig("1g.10gb", 7))
    toy.pods("card", requests={"nvidia.com/gpu": 1})
    toy.settle()
    assert json.loads(toy.pod("card").annotations["tidegate.dev/devices"]) == {"nvidia.com/gpu": [1]}


def test_instances_that_are_there_already_are_given_by_their_names(toy: Any) -> None:
    instances = [{"profile": "3g.40gb", "uuid": "MIG-a"}, {"profile": "1g.10gb", "uuid": "MIG-b"}, "1g.10gb"]
    toy.node(
        "n1",
        cpu=8,
        inventory={"gpus": [{"index": 0, "memory": "80Gi", "mig": instances}]},
        **mig("3g.40gb"),
        **mig("1g.10gb", 2),
    )
    toy.pods("p", 3, requests=mig("1g.10gb"))
    toy.settle()
    seen = [device_variables(toy.pod(f"p-{at}").manifest(), "main")["NVIDIA_VISIBLE_DEVICES"] for at in range(3)]
    assert seen == ["MIG-b", "0:2", "void"]


def test_containers_see_their_own_instances() -> None:
    told = [{"card": 0, "start": at, "profile": "1g.10gb", "name": f"MIG-{at}"} for at in range(3)]
    containers = [
        {"name": name, "resources": {"limits": mig("1g.10gb", count)}} for name, count in (("one", 1), ("two", 2))
    ]
    annotations = {"tidegate.dev/devices": json.dumps({"migSlices": told})}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [*containers, {"name": "none"}]}}
    seen = [device_variables(pod, name)["CUDA_VISIBLE_DEVICES"] for name in ("one", "two", "none")]
    assert seen == ["MIG-0", "MIG-1,MIG-2", ""]


def device(minor: int, **instances: Any) -> Manifest:
    return {"type": "gpu", "minor": minor, "resources": {"koordinator.sh/gpu-memory": "80Gi", **instances}}


def test_koordinators_device_says_how_cards_are_split(toy: Any) -> None:
    toy.node("n1", cpu=8, **mig("3g.40gb", 2), **mig("1g.10gb", 8), **mig("7g.80gb"))
    fixed, choice = {**mig("3g.40gb"), **mig("1g.10gb", 3)}, {**mig("7g.80gb"), **mig("3g.40gb", 2)}
    toy.put(
        {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "Device",
            "metadata": {"name": "n1"},
            "spec": {"devices": [device(0, **fixed), device(1, **choice)]},
        }
    )
    toy.pods("small", 4, requests=mig("1g.10gb"))
    toy.settle()
    assert sorted(spot for at in range(4) for spot in given_to(toy, f"small-{at}")) == [(0, 1), (0, 2), (0, 3)]
    toy.pods("three", 2, requests=mig("3g.40gb"))
    toy.pods("whole", requests=mig("7g.80gb"))
    toy.settle()
    assert [given_to(toy, name) for name in ("three-0", "three-1", "whole")] == [[(0, 0)], [(1, 4)], []]


def test_nodes_that_do_not_tell_their_cards_are_known_by_amounts(toy: Any) -> None:
    toy.node("n1", cpu=8, **mig("1g.10gb", 2))
    toy.pods("p", 3, requests=mig("1g.10gb"))
    toy.settle()
    assert (len(toy.bound("p")), given_to(toy, "p-0")) == (2, [])


def test_a_node_whose_cards_are_split_already_comes_first(toy: Any) -> None:
    gpus = [{"index": 0, "memory": "80Gi", "mig": True}]
    for name in ("a", "b"):
        toy.node(name, cpu=8, inventory={"gpus": gpus}, **{name: count // 2 for name, count in ALL_PROFILES.items()})
    toy.pods("first", requests=mig("3g.40gb"), nodeSelector={"kubernetes.io/hostname": "b"})
    toy.settle()
    toy.pods("next", requests={"cpu": 1, **mig("1g.10gb")})
    toy.settle()
    assert toy.where("next") == "b"


def test_a_pod_stays_with_its_instances_within_one_numa_node(toy: Any) -> None:
    inventory = {
        "numa": [{"cpus": "0-3", "memory": "64Gi"}, {"cpus": "4-7", "memory": "64Gi"}],
        "gpus": [{"index": at, "memory": "80Gi", "numa": at, "mig": True} for at in range(2)],
    }
    toy.node(
        "n1",
        cpu=8,
        memory="128Gi",
        inventory=inventory,
        labels={"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"},
        **ALL_PROFILES,
    )
    toy.pods("cpus", requests={"cpu": 3, "memory": "1Gi"})
    toy.settle()
    toy.pods("near", requests={"cpu": 2, "memory": "1Gi", **mig("3g.40gb")})
    toy.settle()
    assert given_to(toy, "near") == [(1, 4)]


def test_a_reservation_holds_instances_for_its_owners(node: Any) -> None:
    pod = {"containers": [{"resources": {"requests": {"cpu": 1, **mig("7g.80gb")}}}]}
    node.reservation("r", cpu=1, pod=pod)
    node.settle()
    node.pods("other", 2, requests=mig("7g.80gb"))
    node.settle()
    assert len(node.bound("other")) == 1
    node.pods("mine", requests=mig("7g.80gb"), labels={"app": "a"})
    node.settle()
    assert (node.where("mine"), node.core.check()) == ("n1", [])


def test_higher_priority_takes_the_instances_that_it_needs(node: Any) -> None:
    node.pods("low", 4, requests=mig("3g.40gb"))
    node.settle()
    node.pods("high", requests=mig("7g.80gb"), priority=10)
    node.settle()
    assert (node.where("high"), len(node.bound("low"))) == ("n1", 2)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PROFILES), max_size=9), st.integers(1, 2), st.sampled_from(PROFILES))
def test_what_is_counted_as_free_is_what_a_plain_search_finds(asked: list[str], cards: int, profile: str) -> None:
    room = MigRoom(tuple(MigCard(at, 80 * GIB) for at in range(cards)))
    given: list[Slice] = []
    for one in asked:
        given += room.choose([SliceNeed(one, 1)]) or ()
        room = MigRoom(room.cards)
        room.move(given, -1)
    covered = {(one.card, at) for one in given for at in range(one.start, one.start + length(one.profile))}
    assert len(covered) == sum(length(one.profile) for one in given), "two instances overlap"
    assert room.free(profile) == sum(
        all((card, at + more) not in covered for more in range(length(profile)))
        for card in range(cards)
        for at in range(0, 8, length(profile))
        if at + int(profile[0]) <= 7
    )
    room.move(given, 1)
    assert room.taken == [0] * cards


def length(profile: str) -> int:
    """Memory slices of a profile of an 80 GiB card."""
    return int(profile.partition(".")[2].removesuffix("gb")) // 10


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([mig(one) for one in PROFILES] + [{**mig("3g.40gb"), **mig("1g.10gb", 2)}]), max_size=8)
)
def test_the_vectors_say_what_the_plain_rule_says(asked: list[dict[str, int]]) -> None:
    gpus = [{"index": at, "memory": "80Gi", "mig": True} for at in range(2)]
    devices = Devices()
    for slot in (0, 1):
        devices.put(slot, NodeInventory(json.dumps({"gpus": gpus})))
    for number, one in enumerate(asked):
        need = DeviceNeed(slices=slice_needs(one))
        copies = devices.copies(need, ALL)
        assert copies[1] == devices.room(1).count(need)
        assert copies[0] == devices.room(0).count(need)
        if copies[0]:
            key = Key("Pod", "", str(number))
            devices.take(0, [Tenant(key, need, devices.allotted(0, key), False, (0, "", "", ""))])
    assert np.all(devices.copies(DeviceNeed(slices=slice_needs(mig("7g.80gb"))), np.array([1])) == 2)


@pytest.mark.parametrize(
    "gpus",
    [
        "x",
        [5],
        [{"mig": 5}],
        [{"index": "x", "mig": True}],
        [{"mig": ["1g.10gb", None]}],
        [{"mig": {"x": "y"}}],
        [{"numa": "x", "mig": 1}],
    ],
)
def test_an_inventory_that_cannot_be_read_stops_nobody(toy: Any, gpus: Any) -> None:
    toy.node("n1", cpu=8, inventory={"gpus": gpus}, **mig("1g.10gb"))
    toy.pods("p", cpu=1)
    toy.settle()
    assert toy.where("p") == "n1"
