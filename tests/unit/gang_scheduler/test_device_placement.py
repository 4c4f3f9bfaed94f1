"""Which cards, CPUs and NUMA nodes pods are given with their binding, and what becomes of that."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.core import SchedulerCore
from kube import Decision, Event, Key, Manifest, Outcome

CARDS = "tidegate.dev/devices"
GPU = "nvidia.com/gpu"
PAIRS = {"gpus": [{"index": at, "memory": "80Gi", "numa": at // 2} for at in range(4)], "nvlink": [[0, 1], [2, 3]]}
TWO_CELLS = {"numa": [{"cpus": "0-3", "memory": "16Gi"}, {"cpus": "4-7", "memory": "16Gi"}]}
SINGLE = {"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}
PINNED = {"koordinator.sh/qosClass": "LSR"}


def gpu_node(toy: Any, name: str = "n1", cards: int = 4, **parts: Any) -> None:
    toy.node(name, cpu=32, memory="128Gi", **{GPU: cards}, **parts)


def gpu_pods(toy: Any, name: str, cards: int, count: int = 1, **parts: Any) -> None:
    toy.pods(name, count, requests={GPU: cards}, **parts)


def cards_of(toy: Any, name: str) -> list[int]:
    """The cards that a pod was told to have."""
    told = toy.pod(name).annotations.get(CARDS)
    return [index for indexes in json.loads(told).values() for index in indexes] if told else []


def test_a_pod_is_told_its_cards_and_the_lowest_come_first(toy: Any) -> None:
    gpu_node(toy)
    gpu_pods(toy, "p", 1, count=2)
    gpu_pods(toy, "q", 2)
    toy.settle()
    assert [cards_of(toy, name) for name in ("p-0", "p-1", "q")] == [[0], [1], [2, 3]]
    assert json.loads(toy.pod("q").annotations[CARDS]) == {GPU: [2, 3]}


def test_a_pair_of_cards_is_one_that_nvlink_connects(toy: Any) -> None:
    gpu_node(toy, inventory=PAIRS)
    gpu_pods(toy, "one", 1)
    toy.settle()
    gpu_pods(toy, "pair", 2)
    toy.settle()
    assert (cards_of(toy, "one"), cards_of(toy, "pair")) == ([0], [2, 3])


def test_members_of_a_gang_get_different_cards_in_one_decision(toy: Any) -> None:
    gpu_node(toy)
    gpu_node(toy, "n2")
    toy.group("g", 4)
    gpu_pods(toy, "g", 2, count=4, group="g")
    decided = toy.settle()
    assert decided[0].name == "GangPlaced"
    given = sorted((toy.where(f"g-{at}"), cards_of(toy, f"g-{at}")) for at in range(4))
    assert given == [("n1", [0, 1]), ("n1", [2, 3]), ("n2", [0, 1]), ("n2", [2, 3])]


def test_cards_come_back_when_their_pod_is_done(toy: Any) -> None:
    gpu_node(toy)
    gpu_pods(toy, "p", 1, count=4)
    toy.settle()
    toy.finish("p-2")
    gpu_pods(toy, "next", 1)
    toy.settle()
    assert cards_of(toy, "next") == [2]


def test_an_unhealthy_card_is_never_chosen_even_if_the_node_still_counts_it(toy: Any) -> None:
    cards = [{"index": 0, "healthy": False}, {"index": 1}]
    gpu_node(toy, cards=2, inventory={"gpus": cards})
    gpu_pods(toy, "p", 1, count=2)
    toy.settle()
    assert cards_of(toy, "p-0") == [1]
    assert toy.where("p-1") == ""
    assert "1 Insufficient gpu devices (too few cards free: needs a whole one)" in toy.message("p-1")


def test_the_cards_of_a_node_are_known_from_koordinators_description_too(toy: Any) -> None:
    """And one that it calls sick is not chosen any more."""
    gpu_node(toy, cards=3)
    described = [{"type": "gpu", "minor": at, "health": at != 1, "topology": {"nodeID": 0}} for at in range(3)]
    device = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n1"}}
    toy.put({**device, "spec": {"devices": described}})
    gpu_pods(toy, "p", 1, count=3)
    toy.settle()
    assert [cards_of(toy, f"p-{at}") for at in range(3)] == [[0], [2], []]


def test_a_restart_loses_no_card(toy: Any) -> None:
    """Another core that reads the same facts gives the next pod the same card."""
    gpu_node(toy)
    gpu_pods(toy, "p", 1, count=3)
    toy.settle()
    toy.delete(Key("Pod", "default", "p-1"))
    toy.core = SchedulerCore()
    toy.heard = False
    toy.fold([Event(None, item) for item in toy.store.objects.values()])
    gpu_pods(toy, "next", 1)
    toy.settle()
    assert cards_of(toy, "next") == [1]


def test_a_running_pod_that_says_nothing_has_the_lowest_cards_that_no_other_pod_names(toy: Any) -> None:
    gpu_node(toy)
    told = {CARDS: json.dumps({GPU: [0]})}
    gpu_pods(toy, "silent", 2, node="n1")
    gpu_pods(toy, "known", 1, node="n1", annotations=told)
    gpu_pods(toy, "next", 1)
    toy.settle()
    assert cards_of(toy, "next") == [3]


def test_what_a_waiting_pod_says_of_its_cards_is_not_believed(toy: Any) -> None:
    """It may be a copy of a pod that ran."""
    gpu_node(toy)
    gpu_pods(toy, "first", 1)
    toy.settle()
    gpu_pods(toy, "copy", 1, annotations={CARDS: json.dumps({GPU: [0]})})
    toy.settle()
    assert cards_of(toy, "copy") == [1]


def test_a_refused_binding_gives_its_cards_back(toy: Any) -> None:
    gpu_node(toy, cards=1)
    gpu_pods(toy, "p", 1)
    toy.entitle()
    decision = next(item for item in toy.core.decide(toy.now, frozenset()) if item.name == "GangPlaced")
    toy.core.assume("d", decision)
    assert toy.core.check() == []
    toy.core.settle(Outcome("d", decision.name, decision.subject, False, {"": "changed"}))
    assert toy.core.check() == []
    toy.settle()
    assert cards_of(toy, "p") == [0]


def test_shares_fill_a_card_before_they_break_the_next_one(toy: Any) -> None:
    shares = {"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory-ratio": 200}
    toy.node("n1", cpu=8, inventory={"gpus": [{"index": 0}, {"index": 1}]}, **shares)
    toy.pods("p", 5, requests={"koordinator.sh/gpu-core": 40, "koordinator.sh/gpu-memory-ratio": 40})
    toy.settle()
    assert [cards_of(toy, f"p-{at}") for at in range(5)] == [[0], [0], [1], [1], []]
    assert "needs of one card 40 % of its cores and 40 % of its memory" in toy.message("p-4")


@pytest.mark.parametrize(
    ("offered", "asked", "cards"),
    [
        ({"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory-ratio": 200}, {"koordinator.sh/gpu": 60}, [0, 1]),
        ({"koordinator.sh/gpu": 200}, {"koordinator.sh/gpu-core": 60, "koordinator.sh/gpu-memory-ratio": 60}, [0, 1]),
        (
            {"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 32},
            {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 60},
            [0, 1],
        ),
        (
            {"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 32},
            {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1, "volcano.sh/vgpu-cores": 60},
            [0, 1],
        ),
    ],
)
def test_parts_of_cards_may_be_asked_for_in_other_words_than_a_node_offers_them(
    toy: Any, offered: dict[str, int], asked: dict[str, int], cards: list[int]
) -> None:
    toy.node("n1", cpu=8, inventory={"gpus": [{"index": 0}, {"index": 1}]}, **offered)
    toy.pods("p", 3, requests=asked)
    toy.settle()
    assert [cards_of(toy, f"p-{at}") for at in range(3)] == [[card] for card in cards] + [[]]


def test_shares_go_where_a_card_is_broken_already(toy: Any) -> None:
    """Although another node is fuller: there a whole card would be broken."""
    shares: dict[str, Any] = {"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory-ratio": 200}
    whole, half, three = (
        {"koordinator.sh/gpu-core": part, "koordinator.sh/gpu-memory-ratio": part} for part in (100, 50, 75)
    )
    toy.node("full", cpu=8, **shares)
    toy.node("half", cpu=8, **shares)
    toy.pods("old-0", requests=whole, node="full")
    toy.pods("old-1", requests=half, node="half")
    toy.group("g", 2)
    toy.pods("g", 2, requests=half, group="g")
    toy.settle()
    assert [toy.where(f"g-{at}") for at in range(2)] == ["half", "full"]
    toy.pods("whole", requests=whole)
    toy.pods("wide", requests=three)
    toy.settle()
    assert (toy.where("whole"), toy.where("wide")) == ("half", "")


def test_whole_cards_and_shares_of_one_node_know_of_each_other(toy: Any) -> None:
    shares: dict[str, Any] = {"koordinator.sh/gpu-core": 200, "koordinator.sh/gpu-memory-ratio": 200}
    gpu_node(toy, cards=2, **shares)
    toy.pods("half", requests={"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50})
    toy.settle()
    gpu_pods(toy, "whole", 1, count=2)
    toy.settle()
    assert (cards_of(toy, "half"), cards_of(toy, "whole-0"), toy.where("whole-1")) == ([0], [1], "")


def test_a_card_is_only_so_many_virtual_ones(toy: Any) -> None:
    amounts = {"volcano.sh/vgpu-number": 4, "volcano.sh/vgpu-memory": 64}
    toy.node(
        "n1", cpu=8, inventory={"gpus": [{"index": 0, "memory": "32Mi"}, {"index": 1, "memory": "32Mi"}]}, **amounts
    )
    toy.pods("p", 5, requests={"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1})
    toy.settle()
    assert [cards_of(toy, f"p-{at}") for at in range(5)] == [[0], [0], [1], [1], []]


def test_a_pod_with_cpus_of_its_own_is_told_them_and_its_numa_node(toy: Any) -> None:
    toy.node("n1", cpu=8, memory="32Gi", labels=SINGLE, inventory=TWO_CELLS)
    toy.pods("p", cpu=3, memory="4Gi", labels=PINNED)
    toy.pods("q", cpu=2, memory="4Gi")
    toy.settle()
    share = [{"node": 0, "resources": {"cpu": "3", "memory": "4Gi"}}]
    assert toy.place_of("p") == {"cpuset": "0-2", "numaNodeResources": share}
    assert toy.place_of("q")["numaNodeResources"][0]["node"] == 1


def test_a_pods_own_policy_keeps_it_off_nodes_that_name_no_numa_nodes(toy: Any) -> None:
    toy.node("n1", cpu=8, memory="32Gi")
    toy.pods("p", cpu=1, annotations={"volcano.sh/numa-topology-policy": "single-numa-node"})
    toy.settle()
    assert (
        toy.message("p") == "0/1 nodes are available: 1 node(s) NUMA Topology affinity error "
        "(no named NUMA nodes, or another NUMA policy than the pod)."
    )
    toy.node("n1", cpu=8, memory="32Gi", inventory=TWO_CELLS)
    toy.settle()
    assert toy.where("p") == "n1"


def test_no_numa_node_that_is_large_enough_is_told_at_once(toy: Any) -> None:
    toy.node("n1", cpu=8, memory="32Gi", labels=SINGLE, inventory=TWO_CELLS)
    toy.pods("p", cpu=5, memory="1Gi")
    toy.settle()
    assert "can never start" in toy.message("p")
    assert "1 has no NUMA node with enough free (needs cpu 5, memory 1Gi in one)" in toy.message("p")


def test_cards_and_cpus_of_a_strict_pod_are_of_one_numa_node(toy: Any) -> None:
    inventory = {**PAIRS, **TWO_CELLS}
    toy.node("n1", cpu=8, memory="32Gi", labels=SINGLE, inventory=inventory, **{GPU: 4})
    toy.pods("small", cpu=1, requests={GPU: 1})
    toy.pods("large", cpu="3500m", requests={GPU: 1})
    toy.settle()
    toy.pods("pair", cpu=0, requests={GPU: 2})
    toy.settle()
    assert (cards_of(toy, "small"), cards_of(toy, "large")) == ([2], [0])
    assert "no NUMA node with enough free: needs cpu 0, memory 0, gpu 2 in one" in toy.message("pair")


def test_pods_that_run_are_counted_when_a_node_becomes_strict(toy: Any) -> None:
    toy.node("n1", cpu=8, memory="32Gi", inventory=TWO_CELLS)
    toy.pods("p", 2, cpu=3, memory="1Gi")
    toy.settle()
    toy.node("n1", cpu=8, memory="32Gi", labels=SINGLE, inventory=TWO_CELLS)
    toy.pods("q", cpu=2, memory="1Gi")
    toy.settle()
    assert toy.where("q") == ""
    toy.node("n1", cpu=8, memory="32Gi", inventory=TWO_CELLS)
    toy.settle()
    assert toy.where("q") == "n1"


def test_a_label_that_gives_a_waiting_pod_cpus_of_its_own_counts(toy: Any) -> None:
    toy.pods("p", cpu=2)
    toy.settle()
    toy.pods("p", cpu=2, labels=PINNED)
    toy.node("n1", cpu=8)
    toy.settle()
    assert toy.place_of("p") == {"cpuset": "0-1"}


@pytest.mark.parametrize("lingering", [False, True])
def test_a_preemptor_gets_the_cards_of_its_victims(toy: Any, lingering: bool) -> None:
    """And nobody else gets them while the victims leave."""
    toy.lingering = lingering
    gpu_node(toy)
    gpu_pods(toy, "low", 1, count=4, priority=1)
    toy.settle()
    gpu_pods(toy, "high", 2, priority=9)
    toy.settle()
    assert len(toy.evicted) == 2
    gpu_pods(toy, "late", 1, priority=1)
    for name in toy.evicted if lingering else ():
        toy.gone(name)
        toy.settle()
    kept = {card for name in toy.bound("low") for card in cards_of(toy, name)}
    assert (toy.where("high"), toy.where("late")) == ("n1", "")
    assert set(cards_of(toy, "high")) == {0, 1, 2, 3} - kept


KINDS: list[Manifest] = [
    {"requests": {GPU: 1}},
    {"requests": {GPU: 2}},
    {"requests": {"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50}},
    {"cpu": 2, "memory": "1Gi", "labels": PINNED},
    {"cpu": 1, "memory": "1Gi", "annotations": {"volcano.sh/numa-topology-policy": "single-numa-node"}},
    {"cpu": 3, "memory": "2Gi"},
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "gang", "bound", "finish", "delete", "node", "refuse", "urgent"]), st.integers(0, 11)
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_whatever_happens_no_card_and_no_cpu_is_given_twice(new_toy: Any, steps: list[tuple[str, int]]) -> None:
    """The audit of the core runs after every decision and every change: it compares the books with rebuilt ones."""
    toy = new_toy()
    rich_node(toy, "n1", SINGLE)
    rich_node(toy, "n2", {})
    for number, (step, choice) in enumerate(steps):
        if not toy.heard:
            toy.entitle()
        happen(toy, step, number, choice)
        toy.settle()
    held = [(toy.where(name), card) for name in toy.bound() if running(toy, name) for card in cards_of(toy, name)]
    whole = [item for item in held if held.count(item) > 2]
    assert whole == []


def rich_node(toy: Any, name: str, labels: dict[str, str]) -> None:
    amounts = {GPU: 4, "koordinator.sh/gpu-core": 400, "koordinator.sh/gpu-memory-ratio": 400}
    toy.node(name, cpu=8, memory="32Gi", labels=labels, inventory={**PAIRS, **TWO_CELLS}, **amounts)


def running(toy: Any, name: str) -> bool:
    return bool(toy.pod(name).status.get("phase") == "Running")


def happen(toy: Any, step: str, number: int, choice: int) -> None:
    kind, node = KINDS[choice % len(KINDS)], f"n{1 + choice % 2}"
    pods = sorted(item.name for item in toy.store.of_kind("Pod").values())
    if step == "pod":
        toy.pods(f"p{number}", 1 + choice % 2, **dict(kind))
    elif step == "gang":
        toy.group(f"g{number}", 3)
        toy.pods(f"g{number}", 3, group=f"g{number}", **dict(kind))
    elif step == "urgent":
        toy.group(f"u{number}", 2)
        toy.pods(f"u{number}", 2, group=f"u{number}", priority=9000 + number, **dict(kind))
    elif step == "bound":
        toy.pods(f"b{number}", node=node, **dict(kind))
    elif step == "node":
        rich_node(toy, node, SINGLE if choice % 3 else {})
    elif step == "refuse":
        refuse(toy, toy.core.decide(toy.now, frozenset()))
    elif pods:
        name = pods[choice % len(pods)]
        if step == "finish" and toy.where(name):
            toy.finish(name)
        elif step == "delete":
            toy.delete(Key("Pod", "default", name))


def refuse(toy: Any, decisions: list[Decision]) -> None:
    """All that is decided is refused."""
    for number, decision in enumerate(decisions):
        toy.core.assume(f"r{number}", decision)
        assert toy.core.check() == []
    for number, decision in enumerate(decisions):
        toy.core.settle(Outcome(f"r{number}", decision.name, decision.subject, False, {"": "no"}))
    assert toy.core.check() == []
