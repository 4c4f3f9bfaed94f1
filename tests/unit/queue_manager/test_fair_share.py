"""What queues of a tree deserve: examples in words, and the arrays against a plain recursion on random trees."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_manager.domain import QueuePolicy
from queue_manager.domain.quotas.claims import CLAIMS
from queue_manager.domain.quotas.queue_tree import ROOT, Queue, QueueTree
from queue_manager.domain.shares.fair_share import deserved, lay_out
from queue_manager.domain.shares.max_min import Claimants, max_min

RESOURCES = ("cpu", "memory")


def shares(
    queues: list[Queue], request: dict[str, dict[str, int]], supply: dict[str, int], rule: str = "proportion"
) -> Any:
    tree = QueueTree()
    for queue in queues:
        tree.put(queue)
    layout = lay_out(tree, RESOURCES)
    asked = np.array([[request.get(name, {}).get(res, 0) for res in RESOURCES] for name in layout.names], np.int64)
    result = deserved(layout, asked, [supply.get(res, 0) for res in RESOURCES], CLAIMS[rule])
    return {
        name: dict(zip(RESOURCES, row, strict=True)) for name, row in zip(layout.names, result.tolist(), strict=True)
    }


def reference(tree: QueueTree, request: dict[str, dict[str, int]], supply: dict[str, int]) -> dict[str, dict[str, int]]:
    """Proportion by plain recursion, one resource and one parent at a time."""
    result: dict[str, dict[str, int]] = {name: {} for name in tree.queues}
    for res in RESOURCES:
        least, most = {}, {}

        def claim(name: str, res: str = res, least: dict[str, int] = least, most: dict[str, int] = most) -> None:
            children = tree.children_of(name)
            for child in children:
                claim(child)
            queue = tree.queues[name]
            promised = max(queue.guarantee.get(res, 0), sum(least[child] for child in children))
            cap = queue.capability.get(res, 1 << 60)
            if res in queue.deserved:
                least[name] = most[name] = min(max(promised, queue.deserved[res]), cap)
                return
            wanted = request.get(name, {}).get(res, 0) + sum(most[child] for child in children)
            least[name], most[name] = min(promised, cap), min(max(promised, wanted), cap)

        claim(ROOT)
        result[ROOT][res] = min(supply.get(res, 0), tree.queues[ROOT].capability.get(res, 1 << 60))
        for name in itertools.chain.from_iterable(tree.by_depth()):
            children = tree.children_of(name)
            if not children:
                continue
            columns = [[0, least[child], most[child], tree.queues[child].weight] for child in children]
            given_ = max_min(np.array([result[name][res]]), Claimants(*np.array(columns, np.int64).T))
            for child, amount in zip(children, given_.tolist(), strict=True):
                result[child][res] = amount
    return result


AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 20), max_size=2)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Queue], dict[str, dict[str, int]]]:
    names = [f"q{number}" for number in range(draw(st.integers(1, 12)))]
    queues = [
        Queue(
            name,
            parent=draw(st.sampled_from([ROOT, *names[:number]])),
            weight=draw(st.integers(1, 5)),
            guarantee=draw(AMOUNTS),
            deserved=draw(st.one_of(st.just({}), AMOUNTS)),
            capability=draw(st.one_of(st.just({}), AMOUNTS)),
        )
        for number, name in enumerate(names)
    ]
    return queues, {name: draw(AMOUNTS) for name in names}


@given(trees(), AMOUNTS)
@settings(max_examples=200, deadline=None)
def test_the_arrays_say_what_the_recursion_says(drawn: tuple[Any, Any], supply: dict[str, int]) -> None:
    """Siblings of all parents are shared out at once; the result is that of one parent after the other."""
    queues, request = drawn
    tree = QueueTree()
    for queue in queues:
        tree.put(queue)
    assert shares(queues, request, supply) == reference(tree, request, supply)


def test_a_given_share_stands_and_the_others_share_what_is_left() -> None:
    """Six of ten are given to a; b and c have two each, though nobody asks in a."""
    queues = [Queue("a", deserved={"cpu": 6}), Queue("b"), Queue("c")]
    found = shares(queues, {"b": {"cpu": 9}, "c": {"cpu": 9}}, {"cpu": 10})
    assert [found[name]["cpu"] for name in "abc"] == [6, 2, 2]


def test_siblings_share_what_their_parent_deserves() -> None:
    """Two departments have ten each, however many teams the second has."""
    queues = [Queue("x"), Queue("y"), *(Queue(f"y{i}", parent="y", weight=i) for i in (1, 4))]
    found = shares(queues, {"x": {"cpu": 90}, "y1": {"cpu": 90}, "y4": {"cpu": 90}}, {"cpu": 20})
    assert [found[name]["cpu"] for name in ("x", "y", "y1", "y4")] == [10, 10, 2, 8]


def test_a_guarantee_below_lifts_the_parent() -> None:
    """What a team is promised is promised to its department."""
    queues = [Queue("x"), Queue("y"), Queue("y1", parent="y", guarantee={"cpu": 7})]
    found = shares(queues, {"x": {"cpu": 90}, "y1": {"cpu": 1}}, {"cpu": 10})
    assert [found[name]["cpu"] for name in ("x", "y", "y1")] == [3, 7, 7]


def test_guarantees_below_that_the_parent_s_capability_has_no_room_for_take_nothing_from_others() -> None:
    """Sixteen are promised in a department that may have ten: the other ten are the other queue's."""
    teams = [Queue(name, parent="y", guarantee={"cpu": 8}) for name in ("y1", "y2")]
    queues = [Queue("x"), Queue("y", capability={"cpu": 10}), *teams]
    found = shares(queues, {"x": {"cpu": 90}, "y1": {"cpu": 90}, "y2": {"cpu": 90}}, {"cpu": 20})
    assert [found[name]["cpu"] for name in ("x", "y")] == [10, 10]


def test_capability_bounds_a_share() -> None:
    """A queue that may have four of 20 deserves four; the rest is the other's."""
    found = shares([Queue("a", capability={"cpu": 4}), Queue("b")], {"a": {"cpu": 90}, "b": {"cpu": 90}}, {"cpu": 20})
    assert [found[name]["cpu"] for name in "ab"] == [4, 16]


def test_under_capacity_a_queue_without_a_given_share_deserves_nothing() -> None:
    """It lives on what is idle."""
    queues = [Queue("a", deserved={"cpu": 6}), Queue("b")]
    found = shares(queues, {"a": {"cpu": 9}, "b": {"cpu": 9}}, {"cpu": 10}, "capacity")
    assert [found[name]["cpu"] for name in "ab"] == [6, 0]


def test_under_drf_all_that_want_anything_have_equal_parts_of_everything() -> None:
    """So that the most used resource, compared with the part, orders the queues."""
    queues = [Queue("a"), Queue("b"), Queue("idle")]
    found = shares(queues, {"a": {"cpu": 1}, "b": {"memory": 1}}, {"cpu": 8, "memory": 18}, "drf")
    assert found["a"] == found["b"] == {"cpu": 4, "memory": 9}
    assert found["idle"] == {"cpu": 0, "memory": 0}


def test_an_unknown_rule_is_refused_by_name() -> None:
    """The message lists the rules that there are."""
    with pytest.raises(ValueError, match=r"lottery.*proportion"):
        QueuePolicy(queueing="lottery")


def test_an_overcommit_factor_below_one_is_refused() -> None:
    """It would leave room idle for ever."""
    with pytest.raises(ValueError, match="below 1"):
        QueuePolicy(overcommit="0.5")


def test_queues_in_a_ring_hang_from_the_root() -> None:
    """What they run still counts, and nothing loops."""
    tree = QueueTree()
    for name, parent in (("a", "b"), ("b", "a"), ("c", "a"), ("d", "ghost"), ("e", "e")):
        tree.put(Queue(name, parent=parent))
    assert {name: tree.parent_of(name) for name in "abcde"} == {"a": ROOT, "b": ROOT, "c": "a", "d": ROOT, "e": ROOT}
    assert tree.check() == []


def test_a_supply_without_measure_is_as_much_as_can_be_counted() -> None:
    """Nodes that are added up may pass 64 bits."""
    found = shares([Queue("q", parent=ROOT)], {"q": {"cpu": 4}}, {"cpu": 1 << 70})
    assert found["q"]["cpu"] == 4
