"""What pods ask for together: added up by rules and by kinds, as plain sums over all of them have it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gang_scheduler.domain.nodes.filters import StaticMasks, static_filters, static_mask
from gang_scheduler.domain.pods.pod_shape import PodShape, ResourceRows, ShapeCatalog
from gang_scheduler.domain.score import look_kernel
from gang_scheduler.domain.score.basis import Basis
from gang_scheduler.domain.score.mixture import (
    PATIENCE,
    Ask,
    Asked,
    Census,
    Filling,
    ask_of,
    demands_of,
    filling_of,
    kinds_of,
)
from gang_scheduler.domain.score.prices import ALMOST, TOGETHER, Measures, Prices
from gang_scheduler.domain.terms.node_rules import NodeRules, Toleration
from gang_scheduler.domain.terms.selectors import Requirement

RULES = 4
CARDS: list[dict[str, str]] = [
    {},
    {"nvidia.com/gpu": "2"},
    {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi"},
]
GRAIN = 2.0**40
ASKED = st.lists(
    st.tuples(
        st.integers(0, RULES - 1),
        st.builds(Ask, st.integers(1, 8), st.integers(1, 100), st.integers(0, 96_000), st.integers(0, 1 << 40)),
        st.integers(1, 500),
    ),
    max_size=30,
)
LIKES: dict[str, Any] = {"matchExpressions": [{"key": "model", "operator": "In", "values": ["b"]}]}
PREFERRED = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": LIKES}]}}


def plain_filling(asks: Sequence[Asked], admitted: set[int]) -> Filling:
    """How a card is filled, pod by pod: each next pod fits or costs patience."""
    known = [(ask, count) for rule, ask, count in asks if rule in admitted]
    if not known:
        return Filling([round(free / 100 * GRAIN) / GRAIN for free in range(101)], 1.0, 1.0)
    pods = Counter[int]()
    for ask, count in known:
        pods[ask.percent] += count
    served = [0.0]
    for free in range(1, 101):
        gain = fits = 0.0
        for size in sorted(size for size in pods if size <= free):
            share = pods[size] / pods.total()
            gain += share * (size / 100 + PATIENCE * served[free - size])
            fits += share
        served.append(round(gain / (1 - PATIENCE * (1 - fits)) * GRAIN) / GRAIN)
    given = sum(ask.cards * ask.percent * count for ask, count in known)
    cpu = sum(ask.cpu * count for ask, count in known)
    memory = sum(ask.memory * count for ask, count in known)
    return Filling(served, max(100 * cpu / given, 1.0), max(100 * memory / given, 1.0))


SPOTS = st.lists(st.tuples(st.integers(0, 8), st.integers(-2, 4)), max_size=12)


@given(rounds=st.lists(st.tuples(SPOTS, st.sampled_from([16 << 30, 32 << 30])), max_size=5))
def test_what_is_asked_for_is_the_sum_over_all_pods_whoever_came_and_went_before(rounds: list[Any]) -> None:
    catalog, census, pods = ShapeCatalog(ResourceRows(), (100, 100)), Census(), Counter[PodShape]()
    specs = [
        {"containers": [{"resources": {"requests": {"cpu": str(1 + at % 2), **CARDS[at % 3]}}}], **where}
        for at in range(3)
        for where in ({}, {"affinity": PREFERRED}, {"nodeSelector": {"model": "a"}})
    ]
    shapes = [catalog.form_of(spec, "default", {}).shape for spec in specs]
    for moves, card_memory in rounds:
        for at, count in moves:
            count = max(count, -pods[shapes[at]])
            pods[shapes[at]] += count
            census.add(shapes[at], count)
        with_cards = {shape: count for shape, count in pods.items() if count and shape.devices.cards}
        by_rules, by_ask = Counter[NodeRules](), Counter[tuple[NodeRules, Ask]]()
        for shape, count in with_cards.items():
            rules = replace(shape.rules, preferred=())
            by_rules[rules] += count
            by_ask[rules, ask_of(shape, card_memory)] += count
        order = sorted(by_rules, key=lambda rules: (-by_rules[rules], repr(rules)))
        plain = sorted((order.index(rules), ask, count) for (rules, ask), count in by_ask.items())
        assert census.asked(card_memory) == (tuple(order), tuple(plain))
        assert census.with_cards == sum(with_cards.values())


@given(asks=ASKED, admitted=st.sets(st.integers(0, RULES - 1)))
def test_a_card_is_filled_as_pod_by_pod_to_the_last_bit(asks: list[Asked], admitted: set[int]) -> None:
    demands = demands_of(asks, RULES)
    here = [demands[rule] for rule in sorted(admitted)]
    assert filling_of(here) == filling_of(here, look_kernel.ready()[0]) == plain_filling(asks, admitted)


@given(
    asks=ASKED.filter(bool),
    nodes=st.lists(
        st.tuples(
            st.integers(0, 200_000), st.integers(0, 1 << 42), st.lists(st.integers(0, 100), min_size=3, max_size=3)
        ),
        max_size=20,
    ),
)
def test_copies_are_counted_in_vectors_as_by_compiled_code_and_one_by_one(asks: list[Asked], nodes: list[Any]) -> None:
    kinds = kinds_of(asks, RULES)
    measures = Measures.of(kinds)
    cpu, memory = (np.array([node[at] for node in nodes], np.float64) for at in (0, 1))
    cards = np.array([node[2] for node in nodes], np.int64).reshape(-1, 3).T
    found = measures.copies(cpu, memory, cards)
    assert np.array_equal(found, look_kernel.ready()[1](cpu, memory, np.ascontiguousarray(cards), *measures))
    for place, (has_cpu, has_memory, free) in enumerate(nodes):
        for kind, percent in enumerate(kinds.percent.tolist()):
            by_cards = sum(rest // percent for rest in free) * measures.cards[kind]
            fits = min(by_cards, has_cpu * measures.cpu[kind], has_memory * measures.memory[kind])
            assert found[place, kind] == (fits + ALMOST) // 1


@given(asks=ASKED.filter(bool))
def test_kinds_are_means_of_the_pods_that_are_alike(asks: list[Asked]) -> None:
    kinds = kinds_of(asks, RULES)
    assert kinds.weight.sum(axis=1).tolist() == [sum(n for at, _, n in asks if at == rule) for rule in range(RULES)]
    alike: dict[tuple[int, int, int], list[tuple[Ask, int]]] = {}
    for _, ask, count in asks:
        rounded = next(step for step in range(0, 105, 5) if step >= ask.percent)
        alike.setdefault((ask.cards, rounded, ask.cpu.bit_length() if ask.percent == 100 else 0), []).append(
            (ask, count)
        )
    for at, (_, found) in enumerate(sorted(alike.items())):
        pods = sum(count for _, count in found)
        assert kinds.weight[:, at].sum() == pods
        assert kinds.cpu[at] == float(sum(ask.cpu * count for ask, count in found)) / pods
        assert kinds.memory[at] == float(sum(ask.memory * count for ask, count in found)) / pods


@given(
    asks=ASKED.filter(bool),
    classes=st.lists(st.integers(0, (1 << RULES) - 1), min_size=1, max_size=6),
    worths=st.dictionaries(st.tuples(st.integers(0, RULES - 1), st.integers(0, 3)), st.integers(1, 1 << 36)),
)
def test_a_copy_is_worth_what_the_rules_say_that_admit_it(
    asks: list[Asked], classes: list[int], worths: dict[tuple[int, int], int]
) -> None:
    kinds = len(kinds_of(asks, RULES).cpu)
    found = tuple((rule, kind, worth) for (rule, kind), worth in worths.items() if kind < kinds)
    prices = Prices(Basis(0, 1, 1, (NodeRules(),) * RULES, tuple(asks), found, 1.0))
    numbers = prices.classes_of(np.array([[bits >> rule & 1 for bits in classes] for rule in range(RULES)], np.bool_))
    assert prices.per_copy.shape[1] % TOGETHER == 0 and not prices.per_copy[:, kinds:].any()
    for bits, number in zip(classes, numbers, strict=True):
        assert numbers[classes.index(bits)] == number
        for kind in range(kinds):
            plain = sum(worth for rule, of, worth in found if of == kind and bits >> rule & 1)
            assert prices.per_copy[number, kind] == plain


SPECS = [{}, {"unschedulable": True}, {"taints": [{"key": "own", "value": "x", "effect": "NoSchedule"}]}]


@given(
    models=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.sampled_from(SPECS)), max_size=8),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_masks_that_are_kept_follow_the_nodes(new_toy: Any, models: list[tuple[int, str, Any]]) -> None:
    toy = new_toy()
    table = toy.core.cluster.room.table
    masks = StaticMasks(table)
    wanted = [
        NodeRules(),
        NodeRules((Requirement("model", "In", ("a",)),)),
        NodeRules((Requirement("model", "In", ("b",)),)),
        NodeRules((Requirement("model", "In", ("a", "c")),), None, (), (Toleration("own", "Exists", "", ""),)),
    ]
    for node, model, spec in models:
        toy.node(f"n{node}", cpu=4, labels={"model": model}, spec=spec)
        for rules in wanted * 2:
            assert np.array_equal(masks.of(rules), static_mask(rules, table))
            left, failing = table.exists.copy(), []
            for words, mask in static_filters(rules, table):
                if (left & ~mask).any():
                    failing.append((words, int((left & ~mask).sum())))
                left &= mask
            assert masks.failing(rules) == tuple(failing)
            assert np.array_equal(masks.of(rules), left)
