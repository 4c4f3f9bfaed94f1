"""What elastic quotas may use: examples in words, and the arrays against a plain recursion on random trees."""

import time
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.elastic_quotas import ROOT_QUOTA
from queue_manager.domain.quotas.queue_tree import Queue, QueueTree
from queue_manager.domain.shares.share_rules import QuotaRule

RESOURCES = ("cpu", "memory")


def quota(name: str, least: int = 0, most: int = 100, *, parent: str = ROOT_QUOTA, **more: Any) -> Queue:
    weight = more.pop("weight", most)
    return Queue(
        name, "", parent, deserved={"cpu": least}, capability={"cpu": most}, shared_weight={"cpu": weight}, **more
    )


def usable(quotas: list[Queue], request: dict[str, int], supply: int) -> dict[str, int]:
    """What each quota may use of the cpu."""
    tree = QueueTree(ROOT_QUOTA, ())
    for item in quotas:
        tree.put(item)
    rule = QuotaRule()
    layout = rule.lay_out(tree, ("cpu",))
    asked = np.array([[request.get(name, 0)] for name in layout.names], np.int64)
    found = rule.shares(layout, asked, [supply])
    return {name: int(found[row, 0]) for name, row in layout.rows.items() if name != ROOT_QUOTA}


def test_an_idle_minimum_is_lent_to_those_who_ask_for_more() -> None:
    assert usable([quota("a", 50), quota("b", 50)], {"a": 30, "b": 90}, 100) == {"a": 30, "b": 70}


def test_a_minimum_that_is_not_lent_stays_free() -> None:
    assert usable([quota("a", 60), quota("b", 40, lends=False)], {"a": 100}, 100) == {"a": 60, "b": 40}


def test_what_is_left_is_shared_by_weight_on_top_of_the_minima() -> None:
    quotas = [quota("a", 20, 120, weight=1), quota("b", 20, 120, weight=3), quota("c", 20, 120, weight=1)]
    assert usable(quotas, {"a": 100, "b": 100, "c": 20}, 120) == {"a": 35, "b": 65, "c": 20}


def test_minima_beyond_what_there_is_are_scaled_in_proportion() -> None:
    quotas = [quota("a", 100, 300), quota("b", 50, 300), quota("c", 50, 300)]
    assert usable(quotas, {"a": 300, "b": 300, "c": 300}, 101) == {"a": 51, "b": 25, "c": 25}


def test_scaling_is_exact_for_amounts_of_bytes() -> None:
    quotas = [quota("a", 3 << 50, 1 << 55), quota("b", 5 << 50, 1 << 55)]
    supply = (1 << 50) + 7
    found = usable(quotas, {"a": 1 << 55, "b": 1 << 55}, supply)
    assert found["a"] + found["b"] == supply and abs(found["a"] - supply * 3 // 8) <= 1


def test_the_maximum_of_a_parent_holds_for_its_children_together() -> None:
    quotas = [quota("p", 20, 60), quota("x", 10, 60, parent="p"), quota("y", 10, 60, parent="p")]
    assert usable(quotas, {"x": 60, "y": 60}, 100) == {"p": 60, "x": 30, "y": 30}


def test_a_weight_of_nothing_takes_nothing_beyond_the_minimum() -> None:
    assert usable([quota("a", 10, weight=0), quota("b", 10)], {"a": 50, "b": 50}, 100) == {"a": 10, "b": 50}


def test_huge_weights_keep_their_proportion() -> None:
    quotas = [quota("a", 0, 1 << 50, weight=1 << 40), quota("b", 0, 1 << 50, weight=3 << 40)]
    assert usable(quotas, {"a": 1 << 50, "b": 1 << 50}, 1000) == {"a": 250, "b": 750}


def reference(tree: QueueTree, request: dict[str, int], supply: int) -> dict[str, int]:
    """The specification for one resource, by plain recursion in fractions."""
    asked: dict[str, int] = {}

    def ask(name: str) -> int:
        item = tree.queues[name]
        wanted = request.get(name, 0) + sum(ask(child) for child in tree.children_of(name))
        asked[name] = min(wanted, item.capability.get("cpu", 1 << 60))
        if not item.lends:
            asked[name] = max(asked[name], min(item.deserved.get("cpu", 0), item.capability.get("cpu", 1 << 60)))
        return asked[name]

    ask(tree.root)
    result = {tree.root: supply}
    for name in [name for depth in tree.by_depth() for name in depth]:
        children = [tree.queues[child] for child in tree.children_of(name)]
        result |= divided(children, asked, result[name])
    del result[tree.root]
    return result


def divided(children: list[Queue], asked: dict[str, int], total: int) -> dict[str, int]:
    least = {item.name: min(item.deserved["cpu"], item.capability["cpu"]) for item in children}
    if sum(least.values()) > total:
        parts = {name: Fraction(amount * total, sum(least.values())) for name, amount in least.items()}
        least = rounded(parts, total)
    want = {item.name: asked[item.name] if item.lends else max(asked[item.name], least[item.name]) for item in children}
    given = {item.name: min(want[item.name], least[item.name]) if item.lends else least[item.name] for item in children}
    rest = total - sum(given.values())
    weight = {item.name: item.shared_weight["cpu"] for item in children}
    open_ = {name for name in given if want[name] > given[name] and weight[name]}
    more = {name: Fraction(0) for name in given}
    while open_ and rest > sum(more.values()):
        left = (rest - sum(more.values())) / sum(weight[name] for name in open_)
        step = min([left, *((want[name] - given[name] - more[name]) / weight[name] for name in open_)])
        for name in open_:
            more[name] += step * weight[name]
        open_ = {name for name in open_ if more[name] < want[name] - given[name]}
    shares = rounded(more, min(rest, int(sum(more.values()))))
    return {name: given[name] + shares[name] for name in given}


def rounded(parts: dict[str, Fraction], total: int) -> dict[str, int]:
    """Whole parts that add up to ``total``: the largest remainders are rounded up, of equal ones the first."""
    floors = {name: int(part) for name, part in parts.items()}
    order = sorted(parts, key=lambda name: (floors[name] - parts[name], name))
    for name in order[: total - sum(floors.values())]:
        floors[name] += 1
    return floors


AMOUNT = st.integers(0, 40)


@st.composite
def forests(draw: st.DrawFn) -> list[Queue]:
    names = [f"q{number}" for number in range(draw(st.integers(1, 7)))]
    quotas = []
    for number, name in enumerate(names):
        most = draw(AMOUNT)
        parent = draw(st.sampled_from([ROOT_QUOTA, *names[:number]]))
        weight = draw(st.integers(0, 5))
        quotas.append(
            quota(name, draw(st.integers(0, most)), most, parent=parent, weight=weight, lends=draw(st.booleans()))
        )
    return quotas


@settings(max_examples=400, deadline=None)
@given(forests(), st.dictionaries(st.sampled_from([f"q{n}" for n in range(7)]), AMOUNT), st.integers(0, 120))
def test_any_tree_is_shared_as_the_specification_says(
    quotas: list[Queue], request: dict[str, int], supply: int
) -> None:
    tree = QueueTree(ROOT_QUOTA, ())
    for item in quotas:
        tree.put(item)
    assert usable(quotas, request, supply) == reference(tree, request, supply)


def test_ten_thousand_quotas_are_shared_at_once() -> None:
    """100 parents with 100 quotas each, four resources, minima above the supply; the time is printed, the result checked."""
    tree = QueueTree(ROOT_QUOTA, ())
    names = ("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage")
    rng = np.random.default_rng(1)
    for parent in range(100):
        tree.put(Queue(f"p{parent}", "", ROOT_QUOTA, deserved=dict.fromkeys(names, 1 << 40), capability={}))
        for child in range(100):
            amounts = dict(zip(names, rng.integers(1 << 20, 1 << 40, 4).tolist(), strict=True))
            most = {name: 4 * amount for name, amount in amounts.items()}
            item = Queue(f"p{parent}-{child}", "", f"p{parent}", deserved=amounts, capability=most, shared_weight=most)
            tree.put(item)
    rule = QuotaRule()
    layout = rule.lay_out(tree, names)
    request = rng.integers(0, 1 << 42, layout.shape)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        found = rule.shares(layout, request, [1 << 45] * 4)
        times.append(time.perf_counter() - start)
    print(f"\n10,000 quotas: {min(times) * 1000:.1f} ms")
    amount = found[:, : len(layout.resources)]
    assert (amount[layout.depths[1]].sum(axis=0) == 1 << 45).all()
