"""Network topology that gangs ask for by annotation: Koordinator's gather strategies, Volcano's mode and highest tier."""

import json
from typing import Any

import pytest

GATHERING = "gang.scheduling.koordinator.sh/network-topology-spec"
GANG = "gang.scheduling.koordinator.sh/"
MODE, TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"
BLOCK, SPINE = "net.example.com/b", "net.example.com/s"


def layers(toy: Any) -> None:
    """Spines s0 and s1 of two blocks each, with two nodes of 4 CPUs in every block; and what says so."""
    for index in range(8):
        labels = {BLOCK: f"b{index // 2}", SPINE: f"s{index // 4}"}
        toy.node(f"n{index}", labels=labels, cpu=4)
    spec = [
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "Block"},
        {"topologyLayer": "Block", "parentTopologyLayer": "Spine", "labelKey": [BLOCK]},
        {"topologyLayer": "Spine", "labelKey": [SPINE]},
    ]
    toy.put(
        {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "ClusterNetworkTopology",
            "metadata": {"name": "default"},
            "spec": {"networkTopologySpec": spec},
        }
    )


def gathering(**strategies: str) -> dict[str, str]:
    rules = [{"layer": layer, "strategy": strategy} for layer, strategy in strategies.items()]
    return {GATHERING: json.dumps({"gatherStrategy": rules})}


def gang_of_pods(toy: Any, name: str, count: int, annotations: dict[str, str], **parts: Any) -> None:
    told = {GANG + "name": name, GANG + "min-available": str(count), **annotations}
    toy.pods(name, count, annotations=told, **parts)


def domains(toy: Any, prefix: str, size: int) -> set[int]:
    """The numbers of the domains of ``size`` nodes in which the pods are."""
    return {int(toy.where(name)[1:]) // size for name in toy.bound(prefix)}


@pytest.mark.parametrize("by_group", [True, False])
def test_who_must_gather_in_a_layer_is_inside_one_of_its_domains(toy: Any, by_group: bool) -> None:
    layers(toy)
    toy.pods("used", cpu=4, node="n0")
    wish = gathering(Spine="MustGather", Block="PreferGather")
    if by_group:
        toy.group("g", 4, annotations=wish)
        toy.pods("g", 4, group="g", cpu=3)
    else:
        gang_of_pods(toy, "g", 4, wish, cpu=3)
    toy.settle()
    assert (len(toy.bound("g")), domains(toy, "g", 4)) == (4, {1})


def test_of_two_musts_the_narrower_counts(toy: Any) -> None:
    layers(toy)
    gang_of_pods(toy, "two", 2, gathering(Spine="MustGather", Block="MustGather"), cpu=3)
    gang_of_pods(toy, "three", 3, gathering(Block="MustGather", Spine="MustGather"), cpu=3)
    toy.settle()
    assert (len(domains(toy, "two", 2)), toy.bound("three")) == (1, [])
    assert "no network domain of tier Block and Spine or lower holds the 3 members of three" in toy.message("three-0")
    assert "even if it were empty" in toy.message("three-0")


def test_who_should_gather_does_so_as_far_as_there_is_room(toy: Any) -> None:
    layers(toy)
    for node in ("n1", "n3", "n4"):
        toy.pods(f"used-{node}", cpu=4, node=node)
    gang_of_pods(toy, "two", 2, gathering(Block="PreferGather"), cpu=4)
    toy.settle()
    assert domains(toy, "two", 2) == {3}
    gang_of_pods(toy, "three", 3, gathering(Block="PreferGather"), cpu=4)
    toy.settle()
    assert len(toy.bound("three")) == 3


def test_a_gang_may_ask_for_a_single_node(toy: Any) -> None:
    layers(toy)
    toy.pods("used", cpu=2, node="n0")
    gang_of_pods(toy, "g", 2, gathering(NodeTopologyLayer="MustGather"), cpu=2)
    gang_of_pods(toy, "large", 2, gathering(NodeTopologyLayer="MustGather"), cpu=3)
    gang_of_pods(toy, "soft", 2, gathering(NodeTopologyLayer="PreferGather"), cpu=3)
    toy.settle()
    assert len(domains(toy, "g", 1)) == 1 and len(toy.bound("g")) == 2
    assert toy.bound("large") == []
    assert "never" in toy.message("large-0")
    assert len(domains(toy, "soft", 2)) == 1 and len(toy.bound("soft")) == 2


def test_the_whole_cluster_is_no_limit_and_an_unknown_layer_is_never_there(toy: Any) -> None:
    layers(toy)
    gang_of_pods(toy, "wide", 5, gathering(ClusterTopologyLayer="MustGather"), cpu=3)
    gang_of_pods(toy, "lost", 2, gathering(Rack="MustGather"), cpu=1)
    toy.settle()
    assert (len(toy.bound("wide")), toy.bound("lost")) == (5, [])
    assert "no network domain of tier Rack or lower" in toy.message("lost-0")


def test_layers_that_come_later_wake_those_who_wait_for_them(toy: Any) -> None:
    gang_of_pods(toy, "g", 2, gathering(Block="MustGather"), cpu=3)
    toy.settle()
    assert toy.bound("g") == []
    layers(toy)
    toy.settle()
    assert len(domains(toy, "g", 2)) == 1


@pytest.mark.parametrize("by_group", [True, False])
def test_volcanos_annotations_are_as_good_as_the_field(toy: Any, by_group: bool) -> None:
    layers(toy)
    wish = {MODE: "hard", TIER: "1"}
    if by_group:
        toy.group("g", 3, annotations=wish)
        toy.pods("g", 3, group="g", cpu=3)
    else:
        gang_of_pods(toy, "g", 3, wish, cpu=3)
    gang_of_pods(toy, "soft", 3, {MODE: "soft", TIER: "1"}, cpu=1)
    toy.settle()
    assert (toy.bound("g"), len(toy.bound("soft"))) == ([], 3)
    assert "no network domain of tier 1 or lower" in toy.message("g-0")


def test_the_field_of_a_group_goes_before_its_annotations(toy: Any) -> None:
    layers(toy)
    toy.group("g", 3, annotations={TIER: "1"}, networkTopology={"mode": "hard", "highestTierAllowed": 2})
    toy.pods("g", 3, group="g", cpu=3)
    toy.settle()
    assert len(toy.bound("g")) == 3


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"gatherStrategy": 3}', '{"gatherStrategy": [7, {"strategy": "MustGather"}]}']
)
def test_what_cannot_be_read_asks_for_nothing(toy: Any, text: str) -> None:
    layers(toy)
    gang_of_pods(toy, "g", 5, {GATHERING: text}, cpu=3)
    toy.settle()
    assert len(toy.bound("g")) == 5
