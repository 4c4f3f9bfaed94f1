"""Packing or spreading is a choice of the gang, else of its queue, else of the cluster; it decides the order of nodes only."""

from typing import Any

import pytest

from gang_scheduler.domain.core import SchedulerCore

SPREAD = {"tidegate.dev/placement": "spread"}
PACK = {"tidegate.dev/placement": "binpack"}


def two_nodes(toy: Any) -> None:
    """One of them has work already."""
    toy.node("a", cpu=8)
    toy.node("b", cpu=8)
    toy.pods("runs", cpu=2, node="a")


def test_a_pod_goes_where_its_own_annotation_wants(toy: Any) -> None:
    two_nodes(toy)
    toy.pods("packed", cpu=1)
    toy.pods("spread", cpu=1, annotations=SPREAD)
    toy.settle()
    assert (toy.where("packed"), toy.where("spread")) == ("a", "b")


def test_the_members_of_a_gang_are_spread_as_their_group_says(toy: Any) -> None:
    for name in "abcd":
        toy.node(name, cpu=8)
    toy.group("g", 4, annotations=SPREAD)
    toy.pods("g", 4, group="g", cpu=1)
    toy.group("h", 4)
    toy.pods("h", 4, group="h", cpu=1)
    toy.settle()
    assert sorted(toy.where(f"g-{number}") for number in range(4)) == ["a", "b", "c", "d"]
    assert len({toy.where(f"h-{number}") for number in range(4)}) == 1


def test_a_queue_chooses_for_all_below_it_that_say_nothing(toy: Any) -> None:
    toy.queues = {
        "top": {"placement": "spread"},
        "low": {"parent": "top"},
        "own": {"parent": "top", "placement": "binpack"},
    }
    two_nodes(toy)
    toy.pods("low", cpu=1, queue="low")
    toy.settle()
    assert toy.where("low") == "b"
    toy.pods("own", cpu=1, queue="own")
    toy.pods("said", cpu=1, queue="low", annotations=PACK)
    toy.settle()
    assert (toy.where("own"), toy.where("said")) == ("a", "a")


def test_a_queue_that_changes_its_mind_is_followed(toy: Any) -> None:
    two_nodes(toy)
    toy.settle()
    toy.queues = {"default": {"placement": "spread"}}
    toy.entitle()
    toy.pods("later", cpu=1)
    toy.settle()
    assert toy.where("later") == "b"


def test_where_the_cluster_spreads_a_gang_may_be_packed(new_toy: Any) -> None:
    toy = new_toy(core=SchedulerCore(placement="spread"))
    two_nodes(toy)
    toy.pods("packed", cpu=1, annotations=PACK)
    toy.settle()
    assert toy.where("packed") == "a"


def test_where_cards_are_packed_with_foresight_some_are_spread(toy: Any) -> None:
    cards = {"gpus": [{"index": index, "model": "A", "memory": "16Gi"} for index in range(4)]}
    for name in "ab":
        toy.node(name, cpu=32, gpu=4, inventory=cards)
    toy.pods("runs", 2, cpu=4, gpu=1, node="a")
    toy.settle()
    toy.pods("spread", cpu=4, gpu=1, annotations=SPREAD)
    toy.pods("packed", cpu=4, gpu=1)
    toy.settle()
    assert (toy.where("spread"), toy.where("packed")) == ("b", "a")


@pytest.mark.parametrize(
    ("annotations", "queue", "said"),
    [
        ({}, {}, "nodes are packed, as the cluster says"),
        ({}, {"placement": "spread"}, "nodes are spread, as queue default says"),
        (SPREAD, {}, "nodes are spread, as Pod p says"),
        ({"tidegate.dev/placement": "sideways"}, {}, "nodes are packed, as the cluster says"),
    ],
)
def test_explain_says_which_was_used_and_who_chose_it(toy: Any, annotations: Any, queue: Any, said: str) -> None:
    toy.queues = {"default": queue}
    two_nodes(toy)
    toy.pods("p", cpu=1, annotations=annotations)
    toy.settle()
    assert said in toy.explain("Pod", "p")["message"]
